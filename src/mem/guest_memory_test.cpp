// SPDX-License-Identifier: MIT
#include "mem/guest_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

namespace ernic::mem {
namespace {

constexpr std::size_t kSize = 4096;

/// Guest map of most tests (host memory of `low` and `next` is not adjacent):
///
///     0x1000 low (rw)   0x2000 next (rw)   0x3000 hole   0x4000 rom (r)   0x5000 fd-less (rw, no host)
class GuestMemoryTest : public testing::Test {
  protected:
    GuestMemoryTest() {
        memory_.publish({region(0x4000, &rom_, false), region(0x1000, &low_), region(0x2000, &next_),
                         Region{*Range::make(0x5000, kSize), nullptr, true, true}});
        memory_.set_enabled(true);
        std::iota(reinterpret_cast<std::uint8_t*>(low_.data()),
                  reinterpret_cast<std::uint8_t*>(low_.data()) + kSize, 0);
    }

    using Page = std::array<std::byte, kSize>;
    static Region region(std::uint64_t start, Page* host, bool writable = true) {
        return {*Range::make(start, kSize), host->data(), true, writable};
    }

    // A gap keeps `low_` and `next_` from being adjacent in host memory.
    Page low_{};
    std::array<std::byte, 64> gap_{};
    Page next_{};
    Page rom_{};
    GuestMemory memory_;
};

TEST_F(GuestMemoryTest, FindsBytesUpToTheBordersOfARegion) {
    EXPECT_EQ(memory_.at({0x1000}, 1, Access::Read), low_.data());
    EXPECT_EQ(memory_.at({0x1fff}, 1, Access::Write), low_.data() + kSize - 1);
    EXPECT_EQ(memory_.at({0x1000}, kSize, Access::Write), low_.data());
    EXPECT_EQ(memory_.at({0x2000}, kSize, Access::Read), next_.data());
}

TEST_F(GuestMemoryTest, FindsNothingOutside) {
    EXPECT_EQ(memory_.at({0}, 1, Access::Read), nullptr);
    EXPECT_EQ(memory_.at({0xfff}, 1, Access::Read), nullptr);
    EXPECT_EQ(memory_.at({0xfff}, 2, Access::Read), nullptr);
    EXPECT_EQ(memory_.at({0x3000}, 1, Access::Read), nullptr);
    EXPECT_EQ(memory_.at({UINT64_MAX}, 1, Access::Read), nullptr);
    EXPECT_EQ(GuestMemory().at({0}, 1, Access::Read), nullptr);
}

TEST_F(GuestMemoryTest, AtNeverCrossesARegionBorder) {
    EXPECT_EQ(memory_.at({0x1fff}, 2, Access::Read), nullptr);
    EXPECT_EQ(memory_.at({0x1000}, kSize + 1, Access::Read), nullptr);
}

TEST_F(GuestMemoryTest, SizesThatWouldWrapAroundFindNothing) {
    EXPECT_EQ(memory_.at({0x1000}, SIZE_MAX, Access::Read), nullptr);
    EXPECT_EQ(memory_.at({0x1800}, SIZE_MAX - 0x1800 + 2, Access::Read), nullptr);
    SpanList spans;
    EXPECT_FALSE(memory_.append({0x1800}, SIZE_MAX - 0x1800 + 2, Access::Read, spans));
    EXPECT_FALSE(memory_.append({UINT64_MAX}, 2, Access::Read, spans));
}

TEST_F(GuestMemoryTest, ARegionMayEndAt2Pow64) {
    const std::uint64_t start = UINT64_MAX - kSize + 1;
    memory_.publish({region(start, &low_)});
    EXPECT_EQ(memory_.at({UINT64_MAX}, 1, Access::Read), low_.data() + kSize - 1);
    EXPECT_EQ(memory_.at({start}, kSize, Access::Read), low_.data());
    EXPECT_EQ(memory_.at({UINT64_MAX}, 2, Access::Read), nullptr);
    SpanList spans;
    EXPECT_TRUE(memory_.append({start}, kSize, Access::Read, spans));
    EXPECT_FALSE(memory_.append({UINT64_MAX}, 2, Access::Read, spans));
}

TEST_F(GuestMemoryTest, RespectsAccessRights) {
    EXPECT_EQ(memory_.at({0x4000}, 1, Access::Read), rom_.data());
    EXPECT_EQ(memory_.at({0x4000}, 1, Access::Write), nullptr);
    // The region found last is remembered, its rights must still count.
    EXPECT_EQ(memory_.at({0x4000}, 1, Access::Read), rom_.data());
    EXPECT_EQ(memory_.at({0x4000}, 1, Access::Write), nullptr);
    Region write_only = region(0x8000, &rom_);
    write_only.readable = false;
    memory_.publish({write_only});
    EXPECT_EQ(memory_.at({0x8000}, 1, Access::Read), nullptr);
    EXPECT_EQ(memory_.at({0x8000}, 1, Access::Write), rom_.data());
}

TEST_F(GuestMemoryTest, MemoryWithoutHostBytesCannotBeReached) {
    EXPECT_EQ(memory_.at({0x5000}, 1, Access::Read), nullptr);
    SpanList spans;
    EXPECT_FALSE(memory_.append({0x5000}, 1, Access::Read, spans));
    EXPECT_FALSE(memory_.append({0x4fff}, 2, Access::Read, spans));
}

TEST_F(GuestMemoryTest, FailsEverywhereWhileDisabled) {
    EXPECT_NE(memory_.at({0x1000}, 1, Access::Read), nullptr);
    memory_.set_enabled(false);
    std::byte byte{};
    SpanList spans;
    EXPECT_EQ(memory_.at({0x1000}, 1, Access::Read), nullptr);
    EXPECT_FALSE(memory_.append({0x1000}, 1, Access::Read, spans));
    EXPECT_FALSE(memory_.append({0x1000}, 2 * kSize, Access::Read, spans));
    EXPECT_FALSE(memory_.read({0x1000}, {&byte, 1}));
    EXPECT_FALSE(memory_.write({0x1000}, {&byte, 1}));
    memory_.set_enabled(true);
    EXPECT_NE(memory_.at({0x1000}, 1, Access::Read), nullptr);
}

TEST_F(GuestMemoryTest, IsDisabledUntilEnabled) {
    EXPECT_FALSE(GuestMemory().enabled());
}

TEST_F(GuestMemoryTest, PublishReplacesTheMapAndChangesTheGeneration) {
    EXPECT_NE(memory_.at({0x2000}, 1, Access::Read), nullptr);
    const std::uint64_t before = memory_.generation();
    memory_.publish({region(0x1000, &next_)});
    EXPECT_NE(memory_.generation(), before);
    EXPECT_EQ(memory_.at({0x2000}, 1, Access::Read), nullptr);
    EXPECT_EQ(memory_.at({0x1000}, 1, Access::Read), next_.data());
    memory_.publish({});
    EXPECT_EQ(memory_.at({0x1000}, 1, Access::Read), nullptr);
}

TEST_F(GuestMemoryTest, GenerationsOfTwoMapsAreNeverEqual) {
    GuestMemory other;
    for (int i = 0; i < 10; ++i) {
        memory_.publish({});
        other.publish({});
        EXPECT_NE(memory_.generation(), other.generation());
    }
}

TEST_F(GuestMemoryTest, AppendSplitsAtRegionBorders) {
    SpanList spans;
    ASSERT_TRUE(memory_.append({0x1ff0}, 0x20, Access::Write, spans));
    ASSERT_EQ(spans.count(), 2U);
    EXPECT_EQ(spans.bytes(), 0x20U);
    EXPECT_EQ(spans.begin()[0].data, low_.data() + 0xff0);
    EXPECT_EQ(spans.begin()[0].size, 0x10U);
    EXPECT_EQ(spans.begin()[1].data, next_.data());
}

TEST_F(GuestMemoryTest, AppendMergesRegionsThatAreAdjacentInHostMemory) {
    std::array<std::byte, 2 * kSize> host{};
    memory_.publish({Region{*Range::make(0x2000, kSize), host.data() + kSize, true, true},
                     Region{*Range::make(0x1000, kSize), host.data(), true, true}});
    SpanList spans;
    ASSERT_TRUE(memory_.append({0x1000}, 2 * kSize, Access::Read, spans));
    EXPECT_EQ(spans.count(), 1U);
    EXPECT_EQ(spans.bytes(), 2 * kSize);
}

TEST_F(GuestMemoryTest, AppendFailsInAHoleAndWhereARightIsMissing) {
    SpanList spans;
    EXPECT_FALSE(memory_.append({0x2fff}, 2, Access::Read, spans));
    memory_.publish({region(0x1000, &low_), region(0x2000, &rom_, false)});
    spans.clear();
    EXPECT_TRUE(memory_.append({0x1fff}, 2, Access::Read, spans));
    spans.clear();
    EXPECT_FALSE(memory_.append({0x1fff}, 2, Access::Write, spans));
}

TEST_F(GuestMemoryTest, ReadAndWriteCrossRegionBorders) {
    std::array<std::byte, 4> bytes = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
    ASSERT_TRUE(memory_.write({0x1ffe}, bytes));
    EXPECT_EQ(low_[kSize - 2], std::byte{1});
    EXPECT_EQ(low_[kSize - 1], std::byte{2});
    EXPECT_EQ(next_[0], std::byte{3});
    EXPECT_EQ(next_[1], std::byte{4});
    std::array<std::byte, 4> back{};
    ASSERT_TRUE(memory_.read({0x1ffe}, back));
    EXPECT_EQ(back, bytes);
}

TEST_F(GuestMemoryTest, ReadAndWriteFailOutside) {
    std::array<std::byte, 2> bytes{};
    EXPECT_FALSE(memory_.read({0x2fff}, bytes));
    EXPECT_FALSE(memory_.write({0x2fff}, bytes));
    EXPECT_FALSE(memory_.write({0x4000}, bytes));
    EXPECT_FALSE(memory_.read({UINT64_MAX}, bytes));
}

TEST(Iova, PlusRefusesToWrapAround) {
    EXPECT_EQ(Iova{5}.plus(6), Iova{11});
    EXPECT_EQ(Iova{UINT64_MAX}.plus(0), Iova{UINT64_MAX});
    EXPECT_FALSE(Iova{UINT64_MAX}.plus(1).has_value());
    EXPECT_FALSE(Iova{1}.plus(UINT64_MAX).has_value());
}

TEST(SpanList, IgnoresEmptyPiecesAndMergesTouchingOnes) {
    std::array<std::byte, 8> host{};
    SpanList spans;
    EXPECT_TRUE(spans.add(host.data(), 0));
    EXPECT_EQ(spans.count(), 0U);
    EXPECT_TRUE(spans.add(host.data(), 2));
    EXPECT_TRUE(spans.add(host.data() + 2, 2));
    EXPECT_EQ(spans.count(), 1U);
    EXPECT_TRUE(spans.add(host.data() + 5, 1));
    EXPECT_EQ(spans.count(), 2U);
    EXPECT_EQ(spans.bytes(), 5U);
    spans.clear();
    EXPECT_EQ(spans.count(), 0U);
    EXPECT_EQ(spans.bytes(), 0U);
}

TEST(SpanList, RefusesMoreThanItsCapacityButStillMerges) {
    std::vector<std::byte> host(3 * SpanList::kCapacity);
    SpanList spans;
    for (std::size_t i = 0; i < SpanList::kCapacity; ++i) {
        ASSERT_TRUE(spans.add(host.data() + 2 * i, 1));
    }
    EXPECT_FALSE(spans.add(host.data() + 2 * SpanList::kCapacity, 1));
    EXPECT_EQ(spans.count(), SpanList::kCapacity);
    EXPECT_EQ(spans.bytes(), SpanList::kCapacity);
    EXPECT_TRUE(spans.add(host.data() + 2 * SpanList::kCapacity - 1, 1)) << "touches the last piece";
    EXPECT_EQ(spans.count(), SpanList::kCapacity);
}

/// Cuts `host` into pieces of `size` bytes with one unused byte between them.
SpanList pieces(std::vector<std::byte>& host, std::size_t size, std::size_t total) {
    SpanList spans;
    for (std::size_t at = 0; total != 0; at += size + 1) {
        const std::size_t piece = std::min(size, total);
        EXPECT_TRUE(spans.add(host.data() + at, piece));
        total -= piece;
    }
    return spans;
}

std::vector<std::byte> flatten(const SpanList& spans) {
    std::vector<std::byte> bytes;
    for (const SpanList::Piece& piece : spans) {
        bytes.insert(bytes.end(), piece.data, piece.data + piece.size);
    }
    return bytes;
}

TEST(Copy, MovesTheSameBytesHoweverBothSidesAreCut) {
    constexpr std::size_t kTotal = 60;
    std::vector<std::byte> source(2 * kTotal);
    for (std::size_t i = 0; i < source.size(); ++i) {
        source[i] = static_cast<std::byte>(i);
    }
    for (std::size_t from_size = 1; from_size <= kTotal; ++from_size) {
        const SpanList from = pieces(source, from_size, kTotal);
        for (std::size_t to_size = 1; to_size <= kTotal; ++to_size) {
            std::vector<std::byte> target(2 * kTotal);
            const SpanList to = pieces(target, to_size, kTotal);
            ASSERT_EQ(copy(to, from), kTotal);
            ASSERT_EQ(flatten(to), flatten(from)) << from_size << " " << to_size;
        }
    }
}

TEST(Copy, StopsAtTheEndOfTheShorterSide) {
    std::vector<std::byte> source(8, std::byte{1});
    std::vector<std::byte> target(8);
    SpanList from;
    SpanList to;
    from.add(source.data(), 5);
    to.add(target.data(), 8);
    EXPECT_EQ(copy(to, from), 5U);
    EXPECT_EQ(target[4], std::byte{1});
    EXPECT_EQ(target[5], std::byte{0});
    EXPECT_EQ(copy(from, SpanList()), 0U);
    EXPECT_EQ(copy(SpanList(), from), 0U);
}

TEST(Copy, OverlappingPiecesKeepTheirBytes) {
    std::vector<std::byte> host(8);
    for (std::size_t i = 0; i < host.size(); ++i) {
        host[i] = static_cast<std::byte>(i);
    }
    SpanList from;
    SpanList to;
    from.add(host.data(), 6);
    to.add(host.data() + 2, 6);
    EXPECT_EQ(copy(to, from), 6U);
    for (std::size_t i = 0; i < 6; ++i) {
        EXPECT_EQ(host[i + 2], static_cast<std::byte>(i));
    }
}

TEST(SpanList, BytesAreReadFromAnyOffsetAcrossPieces) {
    std::array<std::byte, 10> bytes{};
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = std::byte(i);
    }
    SpanList list;
    list.add(bytes.data() + 6, 4);
    list.add(bytes.data(), 3);
    // The list reads 6 7 8 9 0 1 2.
    std::array<std::byte, 4> into{};
    EXPECT_EQ(copy(into, list, 2), 4U);
    EXPECT_EQ(into, (std::array{std::byte{8}, std::byte{9}, std::byte{0}, std::byte{1}}));
    EXPECT_EQ(copy(into, list, 5), 2U);
    EXPECT_EQ(into, (std::array{std::byte{1}, std::byte{2}, std::byte{0}, std::byte{1}}));
    EXPECT_EQ(copy(into, list, 7), 0U);
    EXPECT_EQ(copy(into, list, 70), 0U);
    EXPECT_EQ(copy(into, SpanList()), 0U);
}

}  // namespace
}  // namespace ernic::mem
