// SPDX-License-Identifier: MIT
#include "base/range.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace ernic {
namespace {

constexpr std::uint64_t kMax = UINT64_MAX;

TEST(RangeMake, AllowsEndsUpTo2Pow64) {
    EXPECT_TRUE(Range::make(kMax, 1).has_value());
    EXPECT_TRUE(Range::make(0, kMax).has_value());
    EXPECT_TRUE(Range::make(1, kMax).has_value());
    EXPECT_TRUE(Range::make(kMax, 0).has_value());
}

TEST(RangeMake, RefusesWrapAround) {
    EXPECT_FALSE(Range::make(kMax, 2).has_value());
    EXPECT_FALSE(Range::make(2, kMax).has_value());
    EXPECT_FALSE(Range::make(kMax, kMax).has_value());
}

TEST(RangeContains, TreatsBordersAsHalfOpen) {
    const Range range = *Range::make(100, 10);
    EXPECT_TRUE(range.contains(100, 10));
    EXPECT_TRUE(range.contains(109, 1));
    EXPECT_FALSE(range.contains(110, 1));
    EXPECT_FALSE(range.contains(99, 1));
    EXPECT_FALSE(range.contains(100, 11));
    EXPECT_FALSE(range.contains(105, kMax));
    EXPECT_TRUE(range.contains(110, 0)) << "an empty piece may sit at the end";
    EXPECT_FALSE(range.contains(111, 0));
}

TEST(RangeOverlaps, NeedsACommonNumber) {
    const Range range = *Range::make(100, 10);
    EXPECT_FALSE(range.overlaps(*Range::make(90, 10)));
    EXPECT_TRUE(range.overlaps(*Range::make(90, 11)));
    EXPECT_FALSE(range.overlaps(*Range::make(110, 10)));
    EXPECT_TRUE(range.overlaps(*Range::make(109, 10)));
    EXPECT_FALSE(range.overlaps(*Range::make(105, 0)));
    EXPECT_FALSE(range.overlaps(Range()));
}

/// Numbers near the places where 64-bit arithmetic goes wrong, and some anywhere.
std::vector<std::uint64_t> interesting_numbers() {
    std::vector<std::uint64_t> numbers;
    for (const std::uint64_t centre : {std::uint64_t{0}, std::uint64_t{1} << 32U, std::uint64_t{1} << 63U}) {
        for (std::uint64_t offset = 0; offset < 4; ++offset) {
            numbers.push_back(centre + offset);
            numbers.push_back(centre - offset);
        }
    }
    std::mt19937_64 random(7);
    for (int i = 0; i < 6; ++i) {
        numbers.push_back(random());
    }
    return numbers;
}

TEST(RangeProperty, AgreesWith128BitArithmetic) {
    __extension__ using Wide = unsigned __int128;
    const std::vector<std::uint64_t> numbers = interesting_numbers();
    const auto end = [](std::uint64_t start, std::uint64_t length) { return Wide{start} + length; };
    for (const std::uint64_t start : numbers) {
        for (const std::uint64_t length : numbers) {
            const auto range = Range::make(start, length);
            ASSERT_EQ(range.has_value(), end(start, length) <= Wide{1} << 64U) << start << "+" << length;
            if (!range) {
                continue;
            }
            for (const std::uint64_t other_start : numbers) {
                for (const std::uint64_t other_length : numbers) {
                    const Wide other_end = end(other_start, other_length);
                    const bool inside = other_start >= start && other_end <= end(start, length);
                    ASSERT_EQ(range->contains(other_start, other_length), inside)
                        << start << "+" << length << " contains " << other_start << "+" << other_length;
                    const auto other = Range::make(other_start, other_length);
                    if (other) {
                        const Wide low = std::max(start, other_start);
                        const Wide high = std::min(end(start, length), other_end);
                        const bool common = low < high;
                        ASSERT_EQ(range->overlaps(*other), common);
                        ASSERT_EQ(other->overlaps(*range), common);
                        ASSERT_EQ(range->contains(*other), inside);
                    }
                }
            }
        }
    }
}

}  // namespace
}  // namespace ernic
