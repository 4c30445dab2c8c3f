// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.hpp"
#include "net/ip_address.hpp"
#include "wire/dhcp.hpp"
#include "wire/ethernet.hpp"

namespace ernic::services {

/// What a DHCP client says, as far as a server needs it.
struct DhcpRequest {
    wire::dhcp::MessageType type{};
    std::uint32_t transaction = 0;
    wire::MacAddress client;
    bool broadcast = false;
    /// Came through a relay agent.
    bool relayed = false;
    /// ciaddr, when it is not 0.
    std::optional<net::IpAddress> client_ip;
    std::optional<net::IpAddress> requested_ip;
    std::optional<net::IpAddress> server;
};

/// Reads the payload of a UDP datagram. Looks into the file and server name fields too when the options go on
/// there (RFC 2132 9.3). Thread: any. Fails: nullopt when it is no request of an Ethernet client, cut short,
/// or has no message type or options of a wrong size.
[[nodiscard]] std::optional<DhcpRequest> parse_dhcp(Bytes message);

/// What a server tells about the network.
struct DhcpParameters {
    net::IpPrefix subnet;
    std::optional<net::IpAddress> router;
    std::vector<net::IpAddress> name_servers;
    std::optional<std::uint16_t> mtu;
};

/// What a server answers.
struct DhcpReply {
    wire::dhcp::MessageType type{};
    net::IpAddress server;
    /// Unset in a NAK and in the answer to an INFORM.
    std::optional<net::IpAddress> your_ip;
    std::optional<std::uint32_t> lease_seconds;
};

/// The payload of the datagram that answers `request`; `parameters` are left out of a NAK. Thread: any.
/// Fails: never.
[[nodiscard]] std::vector<std::byte> make_dhcp(const DhcpRequest& request, const DhcpReply& reply,
                                               const DhcpParameters& parameters);

}  // namespace ernic::services
