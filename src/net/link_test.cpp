// SPDX-License-Identifier: MIT
#include "net/link.hpp"

#include <gtest/gtest.h>

#include <array>
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

TEST(Link, EachOfThemCanTakeItDown) {
    Link link;
    std::vector<bool> heard;
    link.on_change([&heard](bool up) { heard.push_back(up); });
    constexpr std::array kAll = {Link::Source::Cable, Link::Source::Mesh, Link::Source::Fault,
                                 Link::Source::Operator};
    for (const Link::Source source : kAll) {
        ASSERT_TRUE(link.up());
        link.set(source, false);
        EXPECT_FALSE(link.up());
        EXPECT_FALSE(link.up(source));
        link.set(source, true);
    }
    EXPECT_EQ(heard.size(), 2 * kAll.size());
    link.set(Link::Source::Cable, false);
    link.set(Link::Source::Mesh, false);
    link.set(Link::Source::Cable, true);
    EXPECT_FALSE(link.up()) << "the other one still says no";
    EXPECT_EQ(heard.size(), 2 * kAll.size() + 1);
}

}  // namespace
}  // namespace ernic::net
