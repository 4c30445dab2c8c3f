// SPDX-License-Identifier: MIT
#include "net/icrc.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstring>

#include "wire/ethernet.hpp"
#include "wire/roce.hpp"

namespace ernic::net {
namespace {

/// Tables for eight bytes a step: kTables[k][b] is the CRC of byte b followed by k zero bytes.
constexpr std::size_t kStep = 8;
using Tables = std::array<std::array<std::uint32_t, 256>, kStep>;

constexpr Tables make_tables() {
    constexpr std::uint32_t kReflectedPolynomial = 0xedb88320;
    Tables tables{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
        std::uint32_t crc = byte;
        for (int bit = 0; bit < 8; ++bit) {
            crc = (crc & 1U) != 0 ? crc >> 1U ^ kReflectedPolynomial : crc >> 1U;
        }
        tables[0][byte] = crc;
    }
    for (std::size_t k = 1; k < kStep; ++k) {
        for (std::size_t byte = 0; byte < 256; ++byte) {
            const std::uint32_t before = tables[k - 1][byte];
            tables[k][byte] = before >> 8U ^ tables[0][before & 0xffU];
        }
    }
    return tables;
}

constexpr Tables kTables = make_tables();

}  // namespace

std::uint32_t crc32(std::uint32_t crc, Bytes data) {
    while (data.size() >= kStep) {
        le32 low;
        le32 high;
        std::memcpy(&low, data.data(), sizeof(low));
        std::memcpy(&high, data.data() + sizeof(low), sizeof(high));
        const std::uint32_t a = crc ^ low.get();
        const std::uint32_t b = high.get();
        crc = kTables[7][a & 0xffU] ^ kTables[6][a >> 8U & 0xffU] ^ kTables[5][a >> 16U & 0xffU] ^
              kTables[4][a >> 24U] ^ kTables[3][b & 0xffU] ^ kTables[2][b >> 8U & 0xffU] ^
              kTables[1][b >> 16U & 0xffU] ^ kTables[0][b >> 24U];
        data = data.subspan(kStep);
    }
    for (const std::byte byte : data) {
        crc = crc >> 8U ^ kTables[0][(crc ^ std::to_integer<std::uint32_t>(byte)) & 0xffU];
    }
    return crc;
}

std::uint32_t invariant_crc(Bytes packet) {
    constexpr std::size_t kLinkHeader = 8;
    constexpr std::uint8_t kOnes = 0xff;
    constexpr std::uint32_t kTrafficClassAndFlow = 0x0fffffff;
    std::array<std::byte, kLinkHeader + sizeof(wire::Ipv6Header) + sizeof(wire::UdpHeader) +
                              sizeof(wire::roce::BaseHeader)>
        head{};
    std::fill_n(head.begin(), kLinkHeader, std::byte{0xff});
    std::size_t size = kLinkHeader;
    ByteReader reader(packet);
    const auto keep = [&head, &size](const auto& header) {
        std::memcpy(head.data() + size, &header, sizeof(header));
        size += sizeof(header);
    };
    if (std::to_integer<unsigned>(packet[0]) >> 4U == 4) {
        auto ip = reader.read<wire::Ipv4Header>();
        assert(ip);
        ip->tos = kOnes;
        ip->ttl = kOnes;
        ip->checksum.set(0xffff);
        keep(*ip);
    } else {
        auto ip = reader.read<wire::Ipv6Header>();
        assert(ip);
        ip->version_class_flow.set(ip->version_class_flow.get() | kTrafficClassAndFlow);
        ip->hop_limit = kOnes;
        keep(*ip);
    }
    auto udp = reader.read<wire::UdpHeader>();
    auto bth = reader.read<wire::roce::BaseHeader>();
    assert(udp && bth);
    udp->checksum.set(0xffff);
    bth->destination_qpn.set(bth->destination_qpn.get() | ~wire::roce::BaseHeader::kNumberMask);
    keep(*udp);
    keep(*bth);
    return ~crc32(crc32(kCrcStart, Bytes(head).first(size)), reader.rest());
}

}  // namespace ernic::net
