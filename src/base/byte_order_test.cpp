// SPDX-License-Identifier: MIT
#include "base/byte_order.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace ernic {
namespace {

template <typename Wire>
std::array<unsigned, sizeof(Wire)> bytes(const Wire& value) {
    std::array<unsigned char, sizeof(Wire)> raw;
    std::memcpy(raw.data(), &value, sizeof(value));
    std::array<unsigned, sizeof(Wire)> widened;
    std::copy(raw.begin(), raw.end(), widened.begin());
    return widened;
}

TEST(ByteSwap, ReversesTheBytesOfEveryWidth) {
    EXPECT_EQ(byte_swap<std::uint8_t>(0x12), 0x12);
    EXPECT_EQ(byte_swap<std::uint16_t>(0x1234), 0x3412);
    EXPECT_EQ(byte_swap<std::uint32_t>(0x12345678U), 0x78563412U);
    EXPECT_EQ(byte_swap<std::uint64_t>(0x0102030405060708ULL), 0x0807060504030201ULL);
}

TEST(Ordered, StoresTheBytesInTheOrderOfItsName) {
    EXPECT_EQ(bytes(le16(0x0102)), (std::array<unsigned, 2>{2, 1}));
    EXPECT_EQ(bytes(be16(0x0102)), (std::array<unsigned, 2>{1, 2}));
    EXPECT_EQ(bytes(le32(0x01020304)), (std::array<unsigned, 4>{4, 3, 2, 1}));
    EXPECT_EQ(bytes(be32(0x01020304)), (std::array<unsigned, 4>{1, 2, 3, 4}));
    EXPECT_EQ(bytes(le64(0x0102030405060708ULL)), (std::array<unsigned, 8>{8, 7, 6, 5, 4, 3, 2, 1}));
    EXPECT_EQ(bytes(be64(0x0102030405060708ULL)), (std::array<unsigned, 8>{1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(Ordered, GivesBackWhatWasSet) {
    std::mt19937_64 random(1);
    for (int i = 0; i < 1000; ++i) {
        const std::uint64_t value = random();
        be64 big;
        le64 little;
        big.set(value);
        little.set(value);
        EXPECT_EQ(big.get(), value);
        EXPECT_EQ(little.get(), value);
        EXPECT_EQ(be32(static_cast<std::uint32_t>(value)).get(), static_cast<std::uint32_t>(value));
        EXPECT_EQ(le16(static_cast<std::uint16_t>(value)).get(), static_cast<std::uint16_t>(value));
    }
}

TEST(Ordered, StartsAsZeroAndComparesByValue) {
    EXPECT_EQ(be32().get(), 0U);
    EXPECT_EQ(le32(7), le32(7));
    EXPECT_NE(le32(7), le32(8));
}

// What makes it usable in wire structures: any address, no padding, no conversion by accident.
static_assert(alignof(be64) == 1 && sizeof(be64) == 8);
static_assert(!std::is_convertible_v<std::uint32_t, be32> && !std::is_convertible_v<be32, std::uint32_t>);
static_assert(be16(0x0102).get() == 0x0102);

}  // namespace
}  // namespace ernic
