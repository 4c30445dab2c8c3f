// SPDX-License-Identifier: MIT
#include "ernicctl/render.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ernic::ctl {
namespace {

using nlohmann::json;
using testing::HasSubstr;

TEST(Render, TablesHaveColumnsAsWideAsNeeded) {
    const json ports = {{"ports",
                         {{{"name", "guest"}, {"connected", true}, {"link", true}, {"drops", 0}},
                          {{"name", "tap"}, {"connected", false}, {"link", false}, {"drops", 12345}}}}};
    EXPECT_EQ(render("ports", ports),
              "name   connected  link  drops\n"
              "guest  yes        yes       0\n"
              "tap    no         no    12345\n");
}

TEST(Render, StatisticsAreFlat) {
    const json stats = {{"a", {{"b", 1}, {"c", {{"d", 22}}}}},
                        {"queue_pairs", {{{"qpn", 2}, {"type", "RC"}, {"x", 5}}}}};
    EXPECT_EQ(render("stats", stats),
              "name   value\n"
              "a.b        1\n"
              "a.c.d     22\n"
              "\nqueue_pairs\n"
              "qpn  type  x\n"
              "  2  RC    5\n");
}

TEST(Render, TheLinkSaysWhoTakesItDown) {
    EXPECT_EQ(render("link", {{"up", true}, {"down_by", json::array()}}), "link up\n");
    EXPECT_EQ(render("link", {{"up", false}, {"down_by", {"tap", "operator"}}}),
              "link down (by tap, operator)\n");
}

TEST(Render, AnyObjectOfAnotherVersionIsShownSomehow) {
    for (const char* command :
         {"version", "status", "stats", "ports", "peers", "mac-table", "link", "pcap-start", "pcap-stop",
          "fault-add", "fault-list", "fault-clear", "log-level", "new"}) {
        EXPECT_FALSE(render(command, json::object()).empty());
        EXPECT_FALSE(render(command, json::array({1})).empty());
        EXPECT_FALSE(render(command, {{"up", "x"}, {"driver", 5}, {"link", 1}}).empty());
        EXPECT_FALSE(render(command, {{"ports", {1, 2}}, {"entries", "x"}, {"faults", {json()}}}).empty());
    }
}

TEST(Render, ChangesAreNumbersThatGrew) {
    const json before = {{"a", {{"b", 10}, {"same", 5}}}, {"list", {1}}};
    const json now = {{"a", {{"b", 30}, {"same", 5}, {"fresh", 1}}}, {"list", {2}}};
    EXPECT_EQ(render_changes(before, now, 2.0),
              "name  value  per second\n"
              "a.b      30        10.0\n");
}

}  // namespace
}  // namespace ernic::ctl
