// SPDX-License-Identifier: MIT
#include "net/checksum.hpp"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

#include "base/byte_order.hpp"

namespace ernic::net {
namespace {

/// The definition of RFC 1071, one word at a time.
std::uint16_t slow_sum(Bytes data) {
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < data.size(); i += 2) {
        sum += std::to_integer<std::uint32_t>(data[i]);
        sum += i + 1 < data.size() ? std::to_integer<std::uint32_t>(data[i + 1]) << 8U : 0;
        sum = (sum & 0xffffU) + (sum >> 16U);
    }
    return static_cast<std::uint16_t>(sum);
}

std::vector<std::byte> random_bytes(std::size_t size) {
    std::mt19937 random(1);
    std::vector<std::byte> data(size);
    for (auto& byte : data) {
        byte = static_cast<std::byte>(random());
    }
    return data;
}

TEST(Checksum, SumAgreesWithTheDefinition) {
    std::mt19937 random(1);
    for (std::size_t size = 0; size < 300; ++size) {
        std::vector<std::byte> data(size);
        for (auto& byte : data) {
            byte = static_cast<std::byte>(random());
        }
        EXPECT_EQ(ones_complement_sum(data), slow_sum(data)) << size;
    }
    const std::vector<std::byte> ones(64, std::byte{0xff});
    EXPECT_EQ(ones_complement_sum(ones), 0xffff);
}

TEST(Checksum, ExampleOfRfc1071) {
    const std::array<std::uint8_t, 8> data = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};
    const le16 sum(ones_complement_sum(std::as_bytes(std::span(data))));
    EXPECT_EQ(read_value<be16>(bytes_of(sum))->get(), 0xddf2);
}

TEST(Checksum, PiecesOfAnyLengthAddUpToTheWhole) {
    const auto data = random_bytes(64);
    for (std::size_t first = 0; first <= data.size(); ++first) {
        for (std::size_t second = first; second <= data.size(); ++second) {
            ChecksumAccumulator sum;
            sum.add(Bytes(data).first(first));
            sum.add(Bytes(data).subspan(first, second - first));
            sum.add(Bytes(data).subspan(second));
            EXPECT_EQ(sum.sum(), ones_complement_sum(data)) << first << ' ' << second;
        }
    }
}

TEST(Checksum, ZeroIsWrittenAsAllOnes) {
    EXPECT_EQ(finished_checksum(0xffff), 0xffff);
    EXPECT_EQ(finished_checksum(0), 0xffff);
    EXPECT_EQ(finished_checksum(0x1234), 0xedcb);
}

TEST(Checksum, PseudoHeaderIsAddressesProtocolAndLength) {
    // 10.0.0.1 to 10.0.0.2, TCP, 20 bytes: 0a00+0001+0a00+0002+0006+0014 = 141d.
    const std::array<std::uint8_t, 8> addresses = {10, 0, 0, 1, 10, 0, 0, 2};
    const le16 sum(pseudo_header_sum(std::as_bytes(std::span(addresses)), 6, 20));
    EXPECT_EQ(read_value<be16>(bytes_of(sum))->get(), 0x141d);
}

}  // namespace
}  // namespace ernic::net
