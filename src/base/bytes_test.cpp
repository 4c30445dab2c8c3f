// SPDX-License-Identifier: MIT
#include "base/bytes.hpp"

#include <gtest/gtest.h>

#include <array>

#include "base/byte_order.hpp"

namespace ernic {
namespace {

struct Pair {
    be16 first;
    be16 second;
};
ERNIC_WIRE(Pair, 4);
ERNIC_WIRE_AT(Pair, second, 2);

constexpr std::array<std::byte, 5> kFive = {std::byte{0}, std::byte{1}, std::byte{0}, std::byte{2},
                                            std::byte{9}};

TEST(ReadValue, CopiesFromTheFront) {
    const auto pair = read_value<Pair>(kFive);
    ASSERT_TRUE(pair.has_value());
    EXPECT_EQ(pair->first.get(), 1);
    EXPECT_EQ(pair->second.get(), 2);
}

TEST(ReadValue, OfTooFewBytesIsNothing) {
    EXPECT_TRUE(read_value<Pair>(Bytes(kFive).first(4)).has_value());
    EXPECT_FALSE(read_value<Pair>(Bytes(kFive).first(3)).has_value());
    EXPECT_FALSE(read_value<Pair>(Bytes()).has_value());
}

TEST(BytesOf, ShowsTheValueItselfNotACopy) {
    Pair pair{be16(1), be16(2)};
    EXPECT_EQ(bytes_of(pair).size(), 4U);
    EXPECT_EQ(bytes_of(pair)[3], std::byte{2});
    mutable_bytes_of(pair)[3] = std::byte{5};
    EXPECT_EQ(pair.second.get(), 5);
}

TEST(ByteReader, ReadsInOrderUntilTheEnd) {
    ByteReader reader(kFive);
    EXPECT_EQ(reader.read<be16>()->get(), 1);
    EXPECT_EQ(reader.read<be16>()->get(), 2);
    EXPECT_EQ(reader.rest().size(), 1U);
    EXPECT_FALSE(reader.empty());
    EXPECT_EQ(reader.read<std::byte>(), std::byte{9});
    EXPECT_TRUE(reader.empty());
    EXPECT_FALSE(reader.read<std::byte>().has_value());
}

TEST(ByteReader, AFailedReadConsumesNothing) {
    ByteReader reader(Bytes(kFive).first(3));
    EXPECT_FALSE(reader.read<be32>().has_value());
    EXPECT_FALSE(reader.take(4).has_value());
    EXPECT_EQ(reader.rest().size(), 3U);
    EXPECT_EQ(reader.read<be16>()->get(), 1);
}

TEST(ByteReader, TakenBytesBelongToTheSource) {
    ByteReader reader(kFive);
    const auto taken = reader.take(2);
    ASSERT_TRUE(taken.has_value());
    EXPECT_EQ(taken->data(), kFive.data());
    EXPECT_EQ(reader.rest().data(), kFive.data() + 2);
    EXPECT_TRUE(reader.take(0).has_value());
    EXPECT_TRUE(reader.take(3).has_value());
    EXPECT_FALSE(reader.take(SIZE_MAX).has_value());
}

}  // namespace
}  // namespace ernic
