// SPDX-License-Identifier: MIT
#include "app/link_sources.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ernic::app {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(LinkSources, TheLinkIsUpWhenAllSayUpAndOnlyChangesAreTold) {
    std::vector<bool> told;
    LinkSources links([&](bool up) { told.push_back(up); });
    EXPECT_TRUE(links.up());
    links.set("tap", true);
    EXPECT_THAT(told, IsEmpty());
    links.set("tap", false);
    links.set("operator", false);
    links.set("operator", false);
    EXPECT_THAT(links.down(), ElementsAre("tap", "operator"));
    links.set("tap", true);
    EXPECT_FALSE(links.up());
    EXPECT_THAT(links.down(), ElementsAre("operator"));
    links.set("operator", true);
    EXPECT_TRUE(links.up());
    EXPECT_THAT(told, ElementsAre(false, true));
}

}  // namespace
}  // namespace ernic::app
