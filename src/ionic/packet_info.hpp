// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/bytes.hpp"
#include "wire/ethernet.hpp"
#include "wire/ionic_ethernet.hpp"

namespace ernic::ionic {

/// What the receive path needs to know about a frame: addressing, type, and what receive-side scaling hashes.
struct PacketInfo {
    wire::MacAddress destination;
    /// 802.1Q tag control, if the frame carries one.
    std::optional<std::uint16_t> vlan_tci;
    wire::ionic::PacketType type = wire::ionic::PacketType::NonIp;
    /// Where the network header starts, and its size for IPv4 (0 otherwise).
    std::size_t network_offset = 0;
    std::size_t ipv4_header_size = 0;
    /// Source and destination addresses, then source and destination port, as they lie in the packet.
    std::array<std::byte, 36> tuple{};
    std::uint8_t address_bytes = 0;
    std::uint8_t port_bytes = 0;
};

/// Looks through Ethernet, one VLAN tag, IP and the ports of TCP and UDP. Fragments and packets with IPv6
/// extension headers count as plain IP. Fails: nullopt when the frame has no whole Ethernet header.
std::optional<PacketInfo> parse_packet(Bytes frame);

}  // namespace ernic::ionic
