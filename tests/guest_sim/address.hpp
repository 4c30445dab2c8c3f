// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.hpp"
#include "wire/ethernet.hpp"

namespace ernic::guest_sim {

/// Where a connection or datagram goes, as the driver knows it from the GID table and the address resolution.
struct Address {
    wire::MacAddress destination{};
    wire::MacAddress source{};
    bool ipv6 = false;
    /// VLAN tag control information.
    std::optional<std::uint16_t> vlan = std::nullopt;
};

/// The packed Ethernet, IP and UDP header that CREATE_AH and MODIFY_QP hand to the device (`ionic_rdma` 7.2,
/// ionic_build_hdr): lengths and checksums are placeholders.
std::vector<std::byte> header_template(const Address& address);

/// IPv4 addresses and the IPv6 address bytes the templates use.
inline constexpr std::uint32_t kSourceIpv4 = 0x0a000001;
inline constexpr std::uint32_t kDestinationIpv4 = 0x0a000002;

}  // namespace ernic::guest_sim
