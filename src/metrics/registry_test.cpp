// SPDX-License-Identifier: MIT
#include "metrics/registry.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

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
