// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.hpp"
#include "wire/ethernet.hpp"

namespace ernic::net {

/// Where a message goes and how it would look on a wire: the packet headers the guest handed over for an
/// address handle or a connected QP (ionic CREATE_AH / MODIFY_QP header template), checked and taken apart
/// once.
struct Route {
    wire::MacAddress destination;
    wire::MacAddress source;
    /// Tag control information, when the connection is on a VLAN.
    std::optional<std::uint16_t> vlan_tci;
    bool ipv4 = false;
    wire::Ipv4Header ip4{};
    wire::Ipv6Header ip6{};
    std::uint16_t udp_source_port = 0;
};

/// Reads a packed Ethernet [VLAN] IPv4|IPv6 UDP header (42, 46, 62 or 66 bytes).
/// Fails: nullopt when it is too short, of another ether type, or not UDP to port 4791.
std::optional<Route> parse_route(Bytes header);

/// The longest header of a route: Ethernet, VLAN tag, IPv6, UDP.
inline constexpr std::size_t kMaxRouteHeader = 66;

/// Writes `route` as the packed header that parse_route() reads back as the same; returns its size. Lengths
/// and checksums in it are those the guest gave, or 0.
std::size_t write_route(const Route& route, std::array<std::byte, kMaxRouteHeader>& out);

/// The 40 bytes that precede a datagram in a receive buffer (InfiniBand Annex A17, and the driver's
/// ib_get_rdma_header_version): the IPv6 header, or 20 zero bytes and the IPv4 header with a valid checksum.
/// `payload` is the number of UDP payload bytes (BTH, DETH, data, ICRC).
std::array<std::byte, 40> network_header(const Route& route, std::size_t payload);

}  // namespace ernic::net
