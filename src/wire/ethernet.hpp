// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/byte_order.hpp"

/// Ethernet (IEEE 802.3), IPv4 (RFC 791), IPv6 (RFC 8200), UDP (RFC 768) and TCP (RFC 9293) headers.
namespace ernic::wire {

struct MacAddress {
    std::array<std::uint8_t, 6> bytes{};

    [[nodiscard]] constexpr bool multicast() const { return (bytes[0] & 1U) != 0; }
    [[nodiscard]] constexpr bool zero() const { return *this == MacAddress{}; }
    friend constexpr auto operator<=>(const MacAddress&, const MacAddress&) = default;
};
ERNIC_WIRE(MacAddress, 6);

inline constexpr std::uint16_t kEtherTypeIpv4 = 0x0800;
inline constexpr std::uint16_t kEtherTypeVlan = 0x8100;
inline constexpr std::uint16_t kEtherTypeIpv6 = 0x86dd;
inline constexpr std::uint8_t kIpProtocolTcp = 6;
inline constexpr std::uint8_t kIpProtocolUdp = 17;
/// UDP destination port of RoCE v2 (InfiniBand Annex A17).
inline constexpr std::uint16_t kRoceUdpPort = 4791;

struct EthernetHeader {
    MacAddress destination;
    MacAddress source;
    be16 ether_type;
};
ERNIC_WIRE(EthernetHeader, 14);
/// What stands in front of a VLAN tag.
inline constexpr std::size_t kMacAddressesSize = 2 * sizeof(MacAddress);

struct VlanTag {
    be16 tci;
    be16 ether_type;
};
ERNIC_WIRE(VlanTag, 4);

struct Ipv4Header {
    std::uint8_t version_ihl;
    std::uint8_t tos;
    be16 total_length;
    be16 id;
    be16 flags_fragment;
    std::uint8_t ttl;
    std::uint8_t protocol;
    be16 checksum;
    be32 source;
    be32 destination;
};
ERNIC_WIRE(Ipv4Header, 20);
/// More-fragments flag and fragment offset.
inline constexpr std::uint16_t kIpv4FragmentMask = 0x3fff;

struct Ipv6Header {
    be32 version_class_flow;
    be16 payload_length;
    std::uint8_t next_header;
    std::uint8_t hop_limit;
    std::array<std::uint8_t, 16> source;
    std::array<std::uint8_t, 16> destination;
};
ERNIC_WIRE(Ipv6Header, 40);

struct UdpHeader {
    be16 source_port;
    be16 destination_port;
    be16 length;
    be16 checksum;
};
ERNIC_WIRE(UdpHeader, 8);

struct TcpHeader {
    be16 source_port;
    be16 destination_port;
    be32 sequence;
    be32 acknowledgement;
    std::uint8_t data_offset;  ///< upper four bits: header size in 32-bit words
    std::uint8_t flags;
    be16 window;
    be16 checksum;
    be16 urgent;
};
ERNIC_WIRE(TcpHeader, 20);
ERNIC_WIRE_AT(TcpHeader, flags, 13);
ERNIC_WIRE_AT(TcpHeader, checksum, 16);

inline constexpr std::uint8_t kTcpFin = 0x01;
inline constexpr std::uint8_t kTcpPush = 0x08;
inline constexpr std::uint8_t kTcpCwr = 0x80;

}  // namespace ernic::wire

template <>
struct std::hash<ernic::wire::MacAddress> {
    std::size_t operator()(const ernic::wire::MacAddress& mac) const noexcept {
        std::uint64_t value = 0;
        for (const std::uint8_t byte : mac.bytes) {
            value = value << 8U | byte;
        }
        return static_cast<std::size_t>(value * 0x9e3779b97f4a7c15ULL);
    }
};
