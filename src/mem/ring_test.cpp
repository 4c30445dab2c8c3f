// SPDX-License-Identifier: MIT
#include "mem/ring.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <utility>

#include "base/byte_order.hpp"
#include "mem/test_support.hpp"

namespace ernic::mem {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::uint8_t kPageLog2 = 12;

/// Four pages of guest memory at 0x10000; the first holds page tables.
class RingTest : public testing::Test {
  protected:
    RingTest() {
        memory_.publish({Region{*Range::make(kBase, host_.size()), host_.data(), true, true}});
        memory_.set_enabled(true);
    }

    static constexpr std::uint64_t kBase = 0x10000;
    static constexpr std::uint64_t page(unsigned number) { return kBase + number * kPage; }

    /// Writes a page table at `kBase`.
    void put_table(std::initializer_list<std::uint64_t> pages) {
        std::size_t at = 0;
        for (const std::uint64_t address : pages) {
            const le64 entry(address);
            std::memcpy(host_.data() + at, &entry, sizeof(entry));
            at += sizeof(entry);
        }
    }
    std::byte* host(std::uint64_t address) { return host_.data() + (address - kBase); }

    alignas(kPage) std::array<std::byte, 4 * kPage> host_{};
    GuestMemory memory_;
    TablePool pool_;
};

TEST_F(RingTest, APageListFollowsItsTable) {
    put_table({page(3), page(1)});
    const auto list = test::copy_table(memory_, {kBase}, 2, kPageLog2, pool_);
    ASSERT_TRUE(list.has_value());
    EXPECT_EQ(list->at(0)->iova.value, page(3));
    EXPECT_EQ(list->at(0)->contiguous, kPage);
    EXPECT_EQ(list->at(kPage - 1)->contiguous, 1U);
    EXPECT_EQ(list->at(kPage + 5)->iova.value, page(1) + 5);
    EXPECT_FALSE(list->at(2 * kPage).has_value());
    EXPECT_FALSE(list->at(UINT64_MAX).has_value());
}

TEST_F(RingTest, ATableWithoutEntriesIsNoList) {
    put_table({page(3)});
    EXPECT_FALSE(test::copy_table(memory_, {kBase}, 0, kPageLog2, pool_).has_value());
}

TEST_F(RingTest, APageListIsACopy) {
    put_table({page(3)});
    const auto list = test::copy_table(memory_, {kBase}, 1, kPageLog2, pool_);
    put_table({page(2)});
    EXPECT_EQ(list->at(0)->iova.value, page(3)) << "the guest changed its table afterwards";
}

TEST_F(RingTest, APageTableThatCannotBeReadIsRefused) {
    EXPECT_FALSE(test::copy_table(memory_, {0}, 1, kPageLog2, pool_).has_value());
    EXPECT_FALSE(test::copy_table(memory_, {page(4) - 8}, 2, kPageLog2, pool_).has_value());
    EXPECT_FALSE(test::copy_table(memory_, {UINT64_MAX - 7}, 2, kPageLog2, pool_).has_value());
    EXPECT_FALSE(test::copy_table(memory_, {kBase}, UINT32_MAX, kPageLog2, pool_).has_value());
    EXPECT_FALSE(test::copy_table(memory_, {kBase}, 1, 11, pool_).has_value());
    EXPECT_FALSE(test::copy_table(memory_, {kBase}, 1, 64, pool_).has_value());
}

TEST_F(RingTest, PagesNearTheEndOfTheAddressSpaceDoNotWrap) {
    put_table({UINT64_MAX - 15});
    const auto list = test::copy_table(memory_, {kBase}, 1, kPageLog2, pool_);
    ASSERT_TRUE(list.has_value());
    EXPECT_TRUE(list->at(15).has_value());
    EXPECT_FALSE(list->at(16).has_value());
    EXPECT_FALSE(PageList::contiguous({UINT64_MAX}).at(1).has_value());
}

TEST_F(RingTest, AppendWalksThePagesOfTheTable) {
    put_table({page(3), page(1)});
    const auto list = test::copy_table(memory_, {kBase}, 2, kPageLog2, pool_);
    SpanList spans;
    ASSERT_TRUE(list->append(memory_, kPage - 4, 8, Access::Read, spans));
    ASSERT_EQ(spans.count(), 2U);
    EXPECT_EQ(spans.begin()[0].data, host(page(3)) + kPage - 4);
    EXPECT_EQ(spans.begin()[1].data, host(page(1)));
    EXPECT_FALSE(list->append(memory_, kPage, kPage + 1, Access::Read, spans));
}

TEST_F(RingTest, LimitsOfDepthAndStride) {
    EXPECT_TRUE(Ring::make(PageList::contiguous({kBase}), 16, 6).has_value());
    EXPECT_FALSE(Ring::make(PageList::contiguous({kBase}), 17, 6).has_value());
    EXPECT_FALSE(Ring::make(PageList::contiguous({kBase}), 255, 6).has_value());
    EXPECT_FALSE(Ring::make(PageList::contiguous({kBase}), 4, 1).has_value());
    EXPECT_FALSE(Ring::make(PageList::contiguous({kBase}), 4, 13).has_value());
    const auto ring = Ring::make(PageList::contiguous({kBase}), 4, 6);
    EXPECT_EQ(ring->depth(), 16U);
    EXPECT_EQ(ring->mask(), 15U);
    EXPECT_EQ(ring->stride(), 64U);
}

TEST_F(RingTest, PublishThenReadGivesTheEntryBackAtItsPlace) {
    const auto ring = Ring::make(PageList::contiguous({page(1)}), 2, 5);
    std::array<std::byte, 32> entry{};
    entry.front() = std::byte{0xaa};
    entry.back() = std::byte{0xbb};
    ASSERT_TRUE(ring->publish(memory_, 3, entry));
    EXPECT_EQ(host(page(1))[3 * 32], std::byte{0xaa});
    EXPECT_EQ(host(page(1))[3 * 32 + 31], std::byte{0xbb});
    std::array<std::byte, 32> back{};
    ASSERT_TRUE(ring->read(memory_, 3, back));
    EXPECT_EQ(back, entry);
}

TEST_F(RingTest, ABlockThatReachesTheEndOfAllAddressesStopsThere) {
    const auto pages = PageList::contiguous({UINT64_MAX - 3});
    EXPECT_EQ(pages.at(3)->contiguous, 1U);
    EXPECT_FALSE(pages.at(4).has_value());
    SpanList out;
    EXPECT_FALSE(pages.append(memory_, 3, 1, Access::Read, out)) << "nothing is mapped there";
    EXPECT_FALSE(pages.append(memory_, 0, 5, Access::Read, out)) << "there is no fifth byte";
}

TEST_F(RingTest, ARunIsReadAtOnceWhenItLiesInOnePiece) {
    const auto ring = Ring::make(PageList::contiguous({kBase + 4 * kPage - 64}), 2, 5);
    std::array<std::byte, 32> entry{};
    for (std::uint32_t i = 0; i < 2; ++i) {
        entry.front() = std::byte(i + 1);
        ASSERT_TRUE(ring->publish(memory_, i, entry));
    }
    std::array<std::byte, 64> run{};
    ASSERT_TRUE(ring->read_run(memory_, 0, run));
    EXPECT_EQ(run[0], std::byte{1});
    EXPECT_EQ(run[32], std::byte{2});
    EXPECT_FALSE(ring->read_run(memory_, 1, run)) << "the third entry is beyond what is mapped";
}

TEST_F(RingTest, ARunDoesNotPassTheEndOfAPage) {
    put_table({page(3), page(1)});
    auto list = test::copy_table(memory_, {kBase}, 2, kPageLog2, pool_);
    const auto ring = Ring::make(std::move(*list), 8, 5);
    std::array<std::byte, 64> run{};
    EXPECT_TRUE(ring->read_run(memory_, 126, run));
    EXPECT_FALSE(ring->read_run(memory_, 127, run));
}

TEST_F(RingTest, IndexesWrapAtTheDepth) {
    const auto ring = Ring::make(PageList::contiguous({page(1)}), 2, 5);
    std::array<std::byte, 32> entry{};
    entry.front() = std::byte{7};
    ASSERT_TRUE(ring->publish(memory_, 5, entry));
    EXPECT_EQ(host(page(1))[32], std::byte{7});
    ASSERT_TRUE(ring->publish(memory_, UINT32_MAX, entry));
    EXPECT_EQ(host(page(1))[3 * 32], std::byte{7});
}

TEST_F(RingTest, AMisalignedRingStillGetsItsData) {
    const auto ring = Ring::make(PageList::contiguous({page(1) + 1}), 2, 5);
    std::array<std::byte, 32> entry{};
    entry.back() = std::byte{9};
    ASSERT_TRUE(ring->publish(memory_, 0, entry));
    EXPECT_EQ(host(page(1))[32], std::byte{9});
}

TEST_F(RingTest, AShortReadCopiesOnlyItsSize) {
    const auto ring = Ring::make(PageList::contiguous({page(1)}), 2, 5);
    std::array<std::byte, 4> four{};
    EXPECT_TRUE(ring->read(memory_, 0, four));
    std::array<std::byte, 64> more;
    more.fill(std::byte{1});
    EXPECT_TRUE(ring->read(memory_, 0, more));
    EXPECT_EQ(more[31], std::byte{0});
    EXPECT_EQ(more[32], std::byte{1}) << "an entry is 32 bytes";
}

TEST_F(RingTest, FailsWhenTheMemoryIsGone) {
    const auto ring = Ring::make(PageList::contiguous({page(3)}), 8, 6);
    std::array<std::byte, 64> entry{};
    EXPECT_TRUE(ring->read(memory_, 63, entry));
    EXPECT_FALSE(ring->read(memory_, 64, entry)) << "past the mapped memory";
    EXPECT_FALSE(ring->publish(memory_, 64, entry));
    memory_.publish({});
    EXPECT_FALSE(ring->read(memory_, 0, entry));
    EXPECT_FALSE(ring->publish(memory_, 0, entry));
}

TEST_F(RingTest, PublishRefusesAnEntryOfTheWrongSize) {
    const auto ring = Ring::make(PageList::contiguous({page(1)}), 2, 5);
    const std::array<std::byte, 31> entry{};
    EXPECT_FALSE(ring->publish(memory_, 0, entry));
}

}  // namespace
}  // namespace ernic::mem
