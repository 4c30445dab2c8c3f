// SPDX-License-Identifier: MIT
#include "nvmeof/ram_store.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace ernic::nvmeof {
namespace {

constexpr std::uint64_t kMiB = 1U << 20U;

class NvmeofRamStore : public testing::Test {
  protected:
    NvmeofRamStore() { std::memset(store->memory(), 0x77, 8 * kMiB); }

    [[nodiscard]] bool is(std::uint64_t begin, std::uint64_t end, std::uint8_t value) const {
        return std::all_of(store->memory() + begin, store->memory() + end,
                           [value](std::byte b) { return b == std::byte{value}; });
    }

    WorkQueue work;
    std::unique_ptr<RamStore> store = std::move(RamStore::make(8 * kMiB, work).value());
};

TEST_F(NvmeofRamStore, WhatWasCutOffIsGivenBackInPieces) {
    ASSERT_TRUE(store->resize(3 * kMiB));
    int pieces = 0;
    while (!work.empty()) {
        (void)work.step();
        ++pieces;
    }
    EXPECT_EQ(pieces, 5);
    EXPECT_TRUE(is(0, 3 * kMiB, 0x77));
    EXPECT_TRUE(is(3 * kMiB, 8 * kMiB, 0));
}

TEST_F(NvmeofRamStore, WhatIsAddedReadsAsZeroesHoweverSoonItComes) {
    for (const int steps : {0, 2}) {
        ASSERT_TRUE(store->resize(3 * kMiB + 512));
        for (int i = 0; i < steps; ++i) {
            (void)work.step();
        }
        ASSERT_TRUE(store->resize(16 * kMiB));
        EXPECT_TRUE(work.empty());
        EXPECT_TRUE(is(3 * kMiB, 3 * kMiB + 512, 0x77));
        EXPECT_TRUE(is(3 * kMiB + 512, 16 * kMiB, 0));
        std::memset(store->memory(), 0x77, 16 * kMiB);
    }
}

TEST_F(NvmeofRamStore, BlocksNeedNotEndWherePagesDo) {
    for (const std::uint64_t size : {7 * kMiB + 512, kMiB}) {
        ASSERT_TRUE(store->resize(size));
        while (!work.empty()) {
            (void)work.step();
        }
    }
    ASSERT_TRUE(store->resize(8 * kMiB));
    EXPECT_TRUE(is(0, kMiB, 0x77));
    EXPECT_TRUE(is(kMiB, 8 * kMiB, 0));
}

TEST_F(NvmeofRamStore, GrowingALittleDoesNotHurryTheRest) {
    ASSERT_TRUE(store->resize(kMiB));
    ASSERT_TRUE(store->resize(2 * kMiB));
    EXPECT_TRUE(is(kMiB, 2 * kMiB, 0));
    EXPECT_TRUE(is(2 * kMiB, 8 * kMiB, 0x77)) << "not yet";
    while (!work.empty()) {
        (void)work.step();
    }
    EXPECT_TRUE(is(2 * kMiB, 8 * kMiB, 0));
    ASSERT_TRUE(store->resize(4 * kMiB));
    std::memset(store->memory(), 0x77, 4 * kMiB);
    ASSERT_TRUE(store->resize(3 * kMiB));
    while (!work.empty()) {
        (void)work.step();
    }
    EXPECT_TRUE(is(0, 3 * kMiB, 0x77));
    EXPECT_TRUE(is(3 * kMiB, 4 * kMiB, 0));
}

TEST_F(NvmeofRamStore, ItMayBecomeSmallerAgainAndAgain) {
    ASSERT_TRUE(store->resize(6 * kMiB));
    (void)work.step();
    ASSERT_TRUE(store->resize(2 * kMiB));
    ASSERT_TRUE(store->resize(kMiB));
    while (!work.empty()) {
        (void)work.step();
    }
    EXPECT_TRUE(is(0, kMiB, 0x77));
    EXPECT_TRUE(is(kMiB, 8 * kMiB, 0));
}

TEST_F(NvmeofRamStore, AnotherMayUnmapIt) {
    std::uint64_t unmapped = 0;
    store->set_unmapper([&unmapped](std::byte* memory, std::uint64_t size) {
        EXPECT_EQ(memory[0], std::byte{0x77});
        unmapped = size;
    });
    store.reset();
    EXPECT_EQ(unmapped, 8 * kMiB * RamStore::kGrowth);
}

}  // namespace
}  // namespace ernic::nvmeof
