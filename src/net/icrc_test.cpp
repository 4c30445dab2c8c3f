// SPDX-License-Identifier: MIT
#include "net/icrc.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/byte_order.hpp"

namespace ernic::net {
namespace {

std::vector<std::byte> from_hex(std::string_view digits) {
    const auto value = [](char digit) { return digit <= '9' ? digit - '0' : digit - 'a' + 10; };
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
        bytes.push_back(static_cast<std::byte>(value(digits[i]) << 4 | value(digits[i + 1])));
    }
    return bytes;
}

/// Checks that the last four bytes of `packet`, an IP packet, are its ICRC.
void expect_icrc(const std::vector<std::byte>& packet) {
    const Bytes whole(packet);
    const le32 icrc(invariant_crc(whole.first(whole.size() - 4)));
    EXPECT_EQ(std::memcmp(&icrc, whole.last(4).data(), 4), 0) << std::hex << icrc.get();
}

TEST(Icrc, MatchesAPacketCapturedFromHardware) {
    // A congestion notification of a ConnectX-4 Lx, as published in Scapy's test/contrib/roce.uts.
    expect_icrc(
        from_hex("45c2003c718c4000401191610a0011010a001201000012b700280000"
                 "8100ffff4000011800000000"
                 "00000000000000000000000000000000"
                 "82fd002a"));
}

TEST(Icrc, RoutersMayChangeTheirFieldsAndNothingElse) {
    const auto packet = from_hex(
        "45c2003c718c4000401191610a0011010a001201000012b700280000"
        "8100ffff4000011800000000"
        "00000000000000000000000000000000");
    const std::uint32_t icrc = invariant_crc(packet);
    const auto changed = [&packet](std::size_t at) {
        auto copy = packet;
        copy[at] ^= std::byte{0x5a};
        return invariant_crc(copy);
    };
    // Type of service, TTL, checksum of IPv4; checksum of UDP; congestion bits of the BTH.
    for (const std::size_t at : {1, 8, 10, 11, 26, 27, 32}) {
        EXPECT_EQ(changed(at), icrc) << at;
    }
    for (const std::size_t at : {2, 4, 9, 12, 16, 20, 22, 24, 28, 29, 30, 33, 36, 37, 40, 55}) {
        EXPECT_NE(changed(at), icrc) << at;
    }
}

TEST(Icrc, OverIpv6LeavesOutTrafficClassFlowLabelAndHopLimit) {
    std::vector<std::byte> packet(40 + 8 + 12 + 8, std::byte{0x11});
    packet[0] = std::byte{0x60};
    const std::uint32_t icrc = invariant_crc(packet);
    const auto changed = [&packet](std::size_t at, unsigned mask) {
        auto copy = packet;
        copy[at] ^= static_cast<std::byte>(mask);
        return invariant_crc(copy);
    };
    EXPECT_EQ(changed(0, 0x0f), icrc);
    for (const std::size_t at : {1, 2, 3, 7, 46, 47, 52}) {
        EXPECT_EQ(changed(at, 0xff), icrc) << at;
    }
    for (const std::size_t at : {4, 6, 8, 24, 40, 44, 48, 53, 67}) {
        EXPECT_NE(changed(at, 0xff), icrc) << at;
    }
}

TEST(Crc32, AgreesWithTheDefinitionBitByBitAtEveryLengthAndSplit) {
    const auto by_bit = [](std::uint32_t crc, Bytes data) {
        for (const std::byte byte : data) {
            for (unsigned bit = 0; bit < 8; ++bit) {
                const std::uint32_t in = std::to_integer<std::uint32_t>(byte) >> bit & 1U;
                crc = ((crc ^ in) & 1U) != 0 ? crc >> 1U ^ 0xedb88320U : crc >> 1U;
            }
        }
        return crc;
    };
    std::vector<std::byte> data(67);
    for (std::size_t i = 0; i < data.size(); ++i) {
        data[i] = static_cast<std::byte>(i * 37 + 11);
    }
    for (std::size_t size = 0; size <= data.size(); ++size) {
        const Bytes part = Bytes(data).first(size);
        const std::uint32_t expected = by_bit(kCrcStart, part);
        EXPECT_EQ(crc32(kCrcStart, part), expected) << size;
        const std::size_t cut = size / 3;
        EXPECT_EQ(crc32(crc32(kCrcStart, part.first(cut)), part.subspan(cut)), expected) << size;
    }
    // The check value of CRC-32/ISO-HDLC.
    EXPECT_EQ(~crc32(kCrcStart, std::as_bytes(std::span(std::string_view("123456789")))), 0xcbf43926U);
}

}  // namespace
}  // namespace ernic::net
