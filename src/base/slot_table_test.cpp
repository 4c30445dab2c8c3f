// SPDX-License-Identifier: MIT
#include "base/slot_table.hpp"

#include <gtest/gtest.h>

namespace ernic {
namespace {

TEST(SlotTable, ASlotHoldsOneObject) {
    SlotTable<int> table(4);
    EXPECT_TRUE(table.free(3));
    EXPECT_FALSE(table.free(4));
    EXPECT_TRUE(table.put(3, std::make_unique<int>(7)));
    EXPECT_FALSE(table.put(3, std::make_unique<int>(8)));
    EXPECT_FALSE(table.put(4, std::make_unique<int>(8)));
    EXPECT_EQ(*table.at(3), 7);
    EXPECT_EQ(table.at(2), nullptr);
    EXPECT_EQ(table.at(4), nullptr);
    EXPECT_EQ(table.count(), 1U);
    table.remove(3);
    table.remove(3);
    table.remove(4);
    EXPECT_EQ(table.count(), 0U);
    EXPECT_TRUE(table.free(3));
}

TEST(SlotTable, WhatIsForgottenIsDestroyedPieceByPiece) {
    const auto witness = std::make_shared<int>(0);
    SlotTable<std::shared_ptr<int>> table(100);
    for (std::uint32_t index = 0; index < 100; ++index) {
        table.put(index, std::make_unique<std::shared_ptr<int>>(witness));
    }
    table.clear();
    EXPECT_EQ(table.count(), 0U);
    EXPECT_EQ(table.at(5), nullptr);
    EXPECT_EQ(witness.use_count(), 101) << "forgetting is quick";
    EXPECT_TRUE(table.sweep(10));
    EXPECT_EQ(witness.use_count(), 91);
    EXPECT_TRUE(table.put(5, std::make_unique<std::shared_ptr<int>>(witness))) << "a new one need not wait";
    EXPECT_EQ(witness.use_count(), 91);
    EXPECT_FALSE(table.sweep(90));
    EXPECT_EQ(witness.use_count(), 2);
    EXPECT_NE(table.at(5), nullptr) << "and survives the sweep";
    EXPECT_FALSE(table.sweep(90));
    table.clear();
    EXPECT_TRUE(table.sweep(1)) << "the sweep starts anew";
}

}  // namespace
}  // namespace ernic
