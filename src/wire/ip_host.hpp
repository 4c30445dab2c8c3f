// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/byte_order.hpp"
#include "wire/ethernet.hpp"

/// What an IP host needs besides the headers of ethernet.hpp: ARP (RFC 826), fragments (RFC 791, RFC 8200),
/// ICMP (RFC 792, RFC 4443) and neighbour discovery (RFC 4861).
namespace ernic::wire {

inline constexpr MacAddress kBroadcastMac{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
inline constexpr std::uint16_t kEtherTypeArp = 0x0806;
inline constexpr std::uint8_t kIpProtocolHopByHop = 0;
inline constexpr std::uint8_t kIpProtocolIcmp = 1;
inline constexpr std::uint8_t kIpProtocolFragment = 44;
inline constexpr std::uint8_t kIpProtocolIcmpv6 = 58;
/// ARP for IPv4 over Ethernet.
struct ArpPacket {
    be16 hardware_type;
    be16 protocol_type;
    std::uint8_t hardware_size;
    std::uint8_t protocol_size;
    be16 operation;
    MacAddress sender_mac;
    be32 sender_ip;
    MacAddress target_mac;
    be32 target_ip;
};
ERNIC_WIRE(ArpPacket, 28);
inline constexpr std::uint16_t kArpEthernet = 1;
inline constexpr std::uint16_t kArpRequest = 1;
inline constexpr std::uint16_t kArpReply = 2;

inline constexpr std::uint16_t kIpv4FragmentOffsetMask = 0x1fff;
/// IPv6 extension header of a fragment.
struct Ipv6FragmentHeader {
    std::uint8_t next_header;
    std::uint8_t reserved;
    be16 offset_flags;  ///< upper 13 bits: offset in units of 8 bytes
    be32 id;
};
ERNIC_WIRE(Ipv6FragmentHeader, 8);
inline constexpr std::uint16_t kIpv6FragmentOffsetMask = 0xfff8;

struct IcmpHeader {
    std::uint8_t type;
    std::uint8_t code;
    be16 checksum;
    be32 rest;  ///< identifier and sequence number of an echo
};
ERNIC_WIRE(IcmpHeader, 8);
inline constexpr std::uint8_t kIcmpEchoReply = 0;
inline constexpr std::uint8_t kIcmpEchoRequest = 8;
inline constexpr std::uint8_t kIcmpv6EchoRequest = 128;
inline constexpr std::uint8_t kIcmpv6EchoReply = 129;
inline constexpr std::uint8_t kIcmpv6NeighbourSolicitation = 135;
inline constexpr std::uint8_t kIcmpv6NeighbourAdvertisement = 136;

/// Neighbour solicitation or advertisement, without options.
struct NeighbourMessage {
    IcmpHeader icmp;
    std::array<std::uint8_t, 16> target;
};
ERNIC_WIRE(NeighbourMessage, 24);

inline constexpr std::uint8_t kTcpSyn = 0x02;
inline constexpr std::uint8_t kTcpRst = 0x04;
inline constexpr std::uint8_t kTcpAck = 0x10;

}  // namespace ernic::wire
