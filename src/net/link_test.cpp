// SPDX-License-Identifier: MIT
#include "net/link.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace ernic::net {
namespace {

TEST(Link, IsUpWhileEverybodySaysSo) {
    Link link;
    std::vector<bool> heard;
    link.on_change([&heard](bool up) { heard.push_back(up); });
    EXPECT_TRUE(link.up());
    link.set(Link::Source::Fault, false);
    link.set(Link::Source::Cable, false);
    link.set(Link::Source::Fault, true);
    EXPECT_FALSE(link.up());
    EXPECT_TRUE(link.up(Link::Source::Fault));
    link.set(Link::Source::Operator, true);
    link.set(Link::Source::Cable, true);
    EXPECT_TRUE(link.up());
    EXPECT_EQ(heard, (std::vector<bool>{false, true})) << "only changes of the whole";
}

}  // namespace
}  // namespace ernic::net
