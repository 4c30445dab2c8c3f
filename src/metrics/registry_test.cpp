// SPDX-License-Identifier: MIT
#include "metrics/registry.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "metrics/report.hpp"

namespace ernic::metrics {
namespace {

TEST(Counter, CountsByOneOrMore) {
    Counter counter;
    EXPECT_EQ(counter.value(), 0U);
    counter.add();
    counter.add(41);
    EXPECT_EQ(counter.value(), 42U);
}

TEST(Counter, IsReadableWhileItIsWritten) {
    Counter counter;
    constexpr std::uint64_t kCount = 100'000;
    std::thread writer([&counter] {
        for (std::uint64_t i = 0; i < kCount; ++i) {
            counter.add();
        }
    });
    std::uint64_t last = 0;
    while (last != kCount) {
        const std::uint64_t now = counter.value();
        ASSERT_GE(now, last);
        last = now;
    }
    writer.join();
}

TEST(Registry, NestsNumbersByTheDotsOfTheirNames) {
    Counter messages;
    messages.add(3);
    Registry registry;
    registry.add({"vfio_user.messages", "messages", "read from the socket"}, messages);
    registry.add({"vfio_user.errors.short", "messages", "too short"}, [] { return std::uint64_t{5}; });
    registry.add({"uptime", "s", "since the start"}, [] { return std::uint64_t{9}; });
    const nlohmann::json expected = {{"vfio_user", {{"messages", 3}, {"errors", {{"short", 5}}}}},
                                     {"uptime", 9}};
    EXPECT_EQ(registry.to_json(), expected);
}

TEST(Registry, ReadsAtTheTimeOfAsking) {
    Counter counter;
    Registry registry;
    registry.add({"n", "", ""}, counter);
    registry.add_section("list", [&] { return nlohmann::json::array({counter.value()}); });
    counter.add(7);
    EXPECT_EQ(registry.to_json(), (nlohmann::json{{"n", 7}, {"list", {7}}}));
}

TEST(Registry, ListsFollowTheNumbersRowByRow) {
    Registry registry;
    registry.add({"n", "", ""}, [] { return std::uint64_t{1}; });
    registry.add_list("empty", [] { return [](Row&) { return false; }; });
    registry.add_list("odd", [] {
        return [i = std::uint64_t{0}](Row& row) mutable {
            if (i % 2 != 0) {
                row.add("i", i);
                row.add("name", "odd");
            }
            return ++i < 6;
        };
    });
    const nlohmann::json odd = {
        {{"i", 1}, {"name", "odd"}}, {{"i", 3}, {"name", "odd"}}, {{"i", 5}, {"name", "odd"}}};
    EXPECT_EQ(registry.to_json(),
              (nlohmann::json{{"n", 1}, {"empty", nlohmann::json::array()}, {"odd", odd}}));
}

TEST(Registry, AListAloneIsAnObjectToo) {
    Registry registry;
    registry.add_list("empty", [] { return [](Row&) { return false; }; });
    EXPECT_EQ(registry.to_json(), (nlohmann::json{{"empty", nlohmann::json::array()}}));
}

TEST(Report, IsLaidOutForReaders) {
    Registry registry;
    registry.add({"a.b", "", ""}, [] { return std::uint64_t{2}; });
    registry.add_section("who", [] { return nlohmann::json("\xff"); });
    registry.add_list("rows", [] {
        return [i = std::uint64_t{0}](Row& row) mutable {
            row.add("i", i);
            row.add("j", 18446744073709551615U);
            return ++i < 2;
        };
    });
    Report report(registry);
    std::string text;
    while (report.step(text)) {
    }
    EXPECT_EQ(text, nlohmann::ordered_json::parse(text).dump(2) + "\n");
    EXPECT_NE(text.find("\xef\xbf\xbd"), std::string::npos) << "what is not UTF-8 is replaced";
}

TEST(Report, MayBeOneLineAndAPart) {
    Registry registry;
    registry.add({"a.b", "", ""}, [] { return std::uint64_t{2}; });
    registry.add({"b.c", "", ""}, [] { return std::uint64_t{3}; });
    registry.add_section("who", [] { return nlohmann::json("x\ny"); });
    registry.add_list("rows", [] {
        return [i = std::uint64_t{0}](Row& row) mutable {
            row.add("i", i);
            row.add("j", "x");
            return ++i < 2;
        };
    });
    const auto text = [&registry](const std::string& match) {
        Report report(registry, Style::Compact, match);
        std::string made;
        while (report.step(made)) {
        }
        return made;
    };
    EXPECT_EQ(text(""), R"({"a":{"b":2},"b":{"c":3},"who":"x\ny","rows":[{"i":0,"j":"x"},{"i":1,"j":"x"}]})");
    EXPECT_EQ(text("a."), R"({"a":{"b":2}})");
    EXPECT_EQ(text("rows"), R"({"rows":[{"i":0,"j":"x"},{"i":1,"j":"x"}]})");
    EXPECT_EQ(text("z"), "{}");
    EXPECT_EQ(value_of(registry, "b.c"), 3U);
    EXPECT_EQ(value_of(registry, "b"), std::nullopt);
}

TEST(Report, ReadsALongListInManySteps) {
    constexpr std::uint64_t kRows = 4096;
    std::uint64_t rows = 0;
    Registry registry;
    registry.add_list("rows", [&] {
        return [&](Row& row) {
            row.add("number", rows);
            row.add("text", "fills the line");
            return ++rows != kRows;
        };
    });
    Report report(registry);
    std::string text;
    std::uint64_t before = 0;
    std::size_t steps = 0;
    for (; report.step(text); ++steps) {
        EXPECT_LE(rows - before, 200U);
        before = rows;
    }
    EXPECT_GT(steps, 20U);
    EXPECT_EQ(nlohmann::json::parse(text)["rows"].size(), kRows);
}

TEST(Registry, KeepsDescriptionsInTheOrderTheyWereAdded) {
    Counter counter;
    Registry registry;
    registry.add({"b", "bytes", "first"}, counter);
    registry.add({"a", "us", "second"}, counter);
    ASSERT_EQ(registry.numbers().size(), 2U);
    EXPECT_EQ(registry.numbers().front().description.name, "b");
    EXPECT_EQ(registry.numbers().front().description.unit, "bytes");
    EXPECT_EQ(registry.numbers().back().description.help, "second");
}

TEST(Registry, WithoutNumbersIsAnEmptyObject) {
    EXPECT_EQ(Registry().to_json(), nlohmann::json::object());
}

}  // namespace
}  // namespace ernic::metrics
