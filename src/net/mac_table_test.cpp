// SPDX-License-Identifier: MIT
#include "net/mac_table.hpp"

#include <gtest/gtest.h>

namespace ernic::net {
namespace {

wire::MacAddress mac(std::uint32_t number) {
    return {{0x02, 0, static_cast<std::uint8_t>(number >> 24U), static_cast<std::uint8_t>(number >> 16U),
             static_cast<std::uint8_t>(number >> 8U), static_cast<std::uint8_t>(number)}};
}

TEST(MacTable, RemembersWhereAnAddressWasSeenLast) {
    MacTable table;
    EXPECT_FALSE(table.find(mac(1), 0));
    table.learn(mac(1), 3, 0);
    EXPECT_EQ(table.find(mac(1), 0), 3);
    table.learn(mac(1), 4, 1);
    EXPECT_EQ(table.find(mac(1), 1), 4);
    EXPECT_EQ(table.count(1), 1U);
}

TEST(MacTable, GroupAndZeroAddressesAreNotLearned) {
    MacTable table;
    table.learn({{0x01, 0, 0x5e, 0, 0, 1}}, 1, 0);
    table.learn({{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}, 1, 0);
    table.learn({}, 1, 0);
    EXPECT_EQ(table.count(0), 0U);
    EXPECT_FALSE(table.find({}, 0));
}

TEST(MacTable, AddressesAgeUnlessSeenAgain) {
    MacTable table;
    table.learn(mac(1), 1, 0);
    table.learn(mac(2), 1, 0);
    table.learn(mac(2), 1, MacTable::kAgeing - 1);
    EXPECT_TRUE(table.find(mac(1), MacTable::kAgeing - 1));
    EXPECT_FALSE(table.find(mac(1), MacTable::kAgeing));
    EXPECT_TRUE(table.find(mac(2), MacTable::kAgeing));
}

TEST(MacTable, AFloodOfAddressesStaysWithinTheTable) {
    MacTable table;
    std::size_t evicted = 0;
    for (std::uint32_t i = 0; i < 100'000; ++i) {
        evicted += table.learn(mac(i), 1, i) ? 1U : 0U;
        ASSERT_TRUE(table.find(mac(i), i)) << "the newest address is always there";
    }
    EXPECT_LE(table.count(100'000), MacTable::kCapacity);
    EXPECT_EQ(evicted, 100'000 - table.count(100'000));
}

TEST(MacTable, AFewHundredAddressesNeedNoEviction) {
    MacTable table;
    std::size_t evicted = 0;
    for (std::uint32_t i = 0; i < 256; ++i) {
        evicted += table.learn(mac(i), 1, i) ? 1U : 0U;
    }
    EXPECT_EQ(evicted, 0U);
}

TEST(MacTable, AgedAddressesMakeRoomWithoutCounting) {
    MacTable table;
    for (std::uint32_t i = 0; i < 100'000; ++i) {
        table.learn(mac(i), 1, 0);
    }
    EXPECT_FALSE(table.learn(mac(200'000), 1, MacTable::kAgeing));
}

TEST(MacTable, APortThatLeavesIsForgotten) {
    MacTable table;
    table.learn(mac(1), 1, 0);
    table.learn(mac(2), 2, 0);
    table.forget(1);
    EXPECT_FALSE(table.find(mac(1), 0));
    EXPECT_EQ(table.find(mac(2), 0), 2);
}

}  // namespace
}  // namespace ernic::net
