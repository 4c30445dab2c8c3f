// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.hpp"
#include "net/ip_address.hpp"
#include "wire/ethernet.hpp"

/// What of a segment's traffic may reach an IP host. The stack behind it would forward packets, and answer
/// for the addresses of every host of the process; it gets to see only what this lets through.
namespace ernic::net::stack {

/// Whom a host answers for.
struct HostAddresses {
    wire::MacAddress mac;
    std::optional<IpPrefix> ipv4;
    /// With the link-local one; empty when the host does not speak IPv6.
    std::vector<IpAddress> ipv6;

    /// `address` is one of them.
    [[nodiscard]] bool owns(const IpAddress& address) const;
};

enum class Verdict : std::uint8_t {
    Take,
    NotForUs,   ///< another host's, or of a kind that hosts need not listen to
    Unwanted,   ///< ours, but a protocol or a source that no honest peer needs here
    Malformed,  ///< cut short or contradicting itself
};

/// Where a TCP segment belongs.
struct TcpSegment {
    std::uint16_t source_port = 0;
    std::uint16_t destination_port = 0;
    std::uint32_t sequence = 0;
    /// Sequence numbers of data and FIN.
    std::uint32_t length = 0;
};

struct Classified {
    Verdict verdict = Verdict::Malformed;
    /// Of what is taken.
    IpAddress source{};
    IpAddress destination{};
    std::optional<TcpSegment> tcp{};
    /// Asks for a connection (TCP SYN).
    bool opens_connection = false;
    /// A multicast listener query (RFC 2710), which wants an answer.
    bool listener_query = false;
};

/// Looks at a whole untagged frame, or at the first 128 bytes of a longer one of `size` bytes. Lets through:
///
/// - ARP for an own address;
/// - IPv4 without options, TCP as clients speak it, UDP and ICMP echo requests, from a unicast address to an
/// own one;
/// - IPv6 likewise, behind at most a fragment header; solicitations of own addresses, advertisements, and
///   listener queries.
///
/// Thread: any. Fails: never.
[[nodiscard]] Classified classify(Bytes head, std::size_t size, const HostAddresses& host);

}  // namespace ernic::net::stack
