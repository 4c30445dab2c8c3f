// SPDX-License-Identifier: MIT
#include "net/stack/filter.hpp"

#include <algorithm>

#include "wire/ip_host.hpp"

namespace ernic::net::stack {
namespace {

/// RFC 4291 2.7.1: the group of all nodes of the link.
constexpr IpAddress kAllNodes = IpAddress::v6({0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1});

constexpr Classified take() {
    return {.verdict = Verdict::Take};
}
constexpr Classified between(const IpAddress& source, const IpAddress& destination, Classified what) {
    what.source = source;
    what.destination = destination;
    return what;
}
constexpr Classified not_for_us() {
    return {.verdict = Verdict::NotForUs};
}
constexpr Classified unwanted() {
    return {.verdict = Verdict::Unwanted};
}
constexpr Classified malformed() {
    return {.verdict = Verdict::Malformed};
}

/// No honest packet from a wire comes from there. An own address would make the stack talk to itself.
bool plausible_source(const IpAddress& source, const HostAddresses& host) {
    if (!source.unicast() || host.owns(source)) {
        return false;
    }
    return !source.is_v4() || host.ipv4->length > 30 || source != host.ipv4->last_v4();
}

Classified classify_arp(Bytes body, const HostAddresses& host) {
    const auto arp = read_value<wire::ArpPacket>(body);
    if (!arp) {
        return malformed();
    }
    if (arp->hardware_type.get() != wire::kArpEthernet || arp->protocol_type.get() != wire::kEtherTypeIpv4 ||
        arp->hardware_size != sizeof(wire::MacAddress) || arp->protocol_size != sizeof(be32) ||
        (arp->operation.get() != wire::kArpRequest && arp->operation.get() != wire::kArpReply) ||
        arp->sender_mac.multicast()) {
        return malformed();
    }
    if (!host.ipv4 || arp->target_ip.get() != host.ipv4->address.value_v4()) {
        return not_for_us();
    }
    const IpAddress sender = IpAddress::v4(arp->sender_ip.get());
    // A probe for a duplicate (RFC 5227) comes from 0.0.0.0, and shall hear that the address is taken.
    return sender.unspecified() || plausible_source(sender, host)
               ? between(sender, host.ipv4->address, take())
               : unwanted();
}

/// A transport header that starts a packet (`first`), or the middle of a fragmented one; with its data it has
/// `size` bytes, of which `transport` need not hold all.
Classified classify_transport(std::uint8_t protocol, bool first, Bytes transport, std::size_t size) {
    switch (protocol) {
        case wire::kIpProtocolTcp: {
            if (!first) {
                return unwanted();  // nobody fragments TCP
            }
            const auto tcp = read_value<wire::TcpHeader>(transport);
            const std::size_t header = tcp ? (tcp->data_offset >> 4U) * std::size_t{4} : 0;
            if (header < sizeof(wire::TcpHeader) || header > size) {
                return malformed();
            }
            // A host opens no connection itself, so nobody accepts one. Everything after a SYN acknowledges
            // (RFC 9293 3.10.7.4); lwIP would count the SYN of what does not as data.
            const bool opens = (tcp->flags & wire::kTcpSyn) != 0;
            if (opens ? (tcp->flags & (wire::kTcpAck | wire::kTcpFin)) != 0
                      : (tcp->flags & (wire::kTcpAck | wire::kTcpRst)) == 0) {
                return unwanted();
            }
            const std::uint32_t end = (tcp->flags & wire::kTcpFin) != 0 ? 1 : 0;
            return {.verdict = Verdict::Take,
                    .tcp = TcpSegment{.source_port = tcp->source_port.get(),
                                      .destination_port = tcp->destination_port.get(),
                                      .sequence = tcp->sequence.get(),
                                      .length = static_cast<std::uint32_t>(size - header) + end},
                    .opens_connection = opens};
        }
        case wire::kIpProtocolUdp:
            return !first || read_value<wire::UdpHeader>(transport) ? take() : malformed();
        case wire::kIpProtocolIcmp:
        case wire::kIpProtocolIcmpv6: {
            if (!first) {
                return take();
            }
            const auto icmp = read_value<wire::IcmpHeader>(transport);
            if (!icmp) {
                return malformed();
            }
            const bool echo = icmp->type == (protocol == wire::kIpProtocolIcmp ? wire::kIcmpEchoRequest
                                                                               : wire::kIcmpv6EchoRequest);
            return echo ? take() : unwanted();
        }
        default:
            return unwanted();
    }
}

Classified classify_ipv4(Bytes body, std::size_t size, const HostAddresses& host) {
    const auto ip = read_value<wire::Ipv4Header>(body);
    if (!ip || ip->version_ihl >> 4U != 4 || ip->total_length.get() > size ||
        ip->total_length.get() < sizeof *ip) {
        return malformed();
    }
    if (!host.ipv4 || ip->destination.get() != host.ipv4->address.value_v4()) {
        return not_for_us();
    }
    if ((ip->version_ihl & 0xfU) * std::size_t{4} != sizeof *ip ||
        !plausible_source(IpAddress::v4(ip->source.get()), host) || ip->protocol == wire::kIpProtocolIcmpv6) {
        return unwanted();
    }
    const std::uint16_t fragment = ip->flags_fragment.get();
    if (ip->protocol == wire::kIpProtocolTcp && (fragment & wire::kIpv4FragmentMask) != 0) {
        return unwanted();
    }
    const bool first = (fragment & wire::kIpv4FragmentOffsetMask) == 0;
    return between(IpAddress::v4(ip->source.get()), host.ipv4->address,
                   classify_transport(ip->protocol, first, body.subspan(sizeof *ip),
                                      ip->total_length.get() - sizeof *ip));
}

/// Neighbour discovery that hosts need. Routers, prefixes and redirects of a segment are not for us.
Classified classify_discovery(Bytes transport, const IpAddress& source, const IpAddress& destination,
                              const HostAddresses& host) {
    const auto message = read_value<wire::NeighbourMessage>(transport);
    if (!message) {
        return malformed();
    }
    const IpAddress target = IpAddress::v6(message->target);
    if (message->icmp.type == wire::kIcmpv6NeighbourSolicitation) {
        if (!host.owns(target)) {
            return not_for_us();
        }
        const bool to_us = host.owns(destination) || destination == solicited_node_of(target);
        return to_us && (source.unspecified() || plausible_source(source, host)) ? take() : unwanted();
    }
    const bool to_us = host.owns(destination) || destination == kAllNodes;
    return to_us && !host.owns(target) && plausible_source(source, host) ? take() : unwanted();
}

Classified classify_ipv6(Bytes body, std::size_t size, const HostAddresses& host) {
    const auto ip = read_value<wire::Ipv6Header>(body);
    if (!ip || ip->version_class_flow.get() >> 28U != 6 || sizeof *ip + ip->payload_length.get() > size) {
        return malformed();
    }
    const IpAddress source = IpAddress::v6(ip->source);
    const IpAddress destination = IpAddress::v6(ip->destination);
    const Bytes payload = body.subspan(sizeof *ip);
    if (host.ipv6.empty()) {
        return not_for_us();
    }
    if (ip->next_header == wire::kIpProtocolIcmpv6 && !payload.empty()) {
        const auto type = std::to_integer<std::uint8_t>(payload.front());
        if (type == wire::kIcmpv6NeighbourSolicitation || type == wire::kIcmpv6NeighbourAdvertisement) {
            return between(source, destination, classify_discovery(payload, source, destination, host));
        }
    }
    if (destination == kAllNodes && ip->next_header == wire::kIpProtocolHopByHop) {
        // Hop-by-hop header of 8 bytes with the router alert, then the query (RFC 2710 3).
        constexpr std::size_t kHopByHop = 8;
        constexpr std::uint8_t kListenerQuery = 130;
        const bool query = payload.size() > kHopByHop &&
                           std::to_integer<std::uint8_t>(payload[0]) == wire::kIpProtocolIcmpv6 &&
                           std::to_integer<std::uint8_t>(payload[1]) == 0 &&
                           std::to_integer<std::uint8_t>(payload[kHopByHop]) == kListenerQuery;
        return query && plausible_source(source, host)
                   ? Classified{.verdict = Verdict::Take, .source = source, .listener_query = true}
                   : not_for_us();
    }
    if (!host.owns(destination)) {
        return not_for_us();
    }
    if (!plausible_source(source, host)) {
        return unwanted();
    }
    if (ip->next_header == wire::kIpProtocolFragment) {
        const auto fragment = read_value<wire::Ipv6FragmentHeader>(payload);
        if (!fragment) {
            return malformed();
        }
        if (fragment->next_header == wire::kIpProtocolTcp) {
            return unwanted();
        }
        const bool first = (fragment->offset_flags.get() & wire::kIpv6FragmentOffsetMask) == 0;
        // TCP, whose size matters, is not among what may be fragmented.
        return between(
            source, destination,
            classify_transport(fragment->next_header, first, payload.subspan(sizeof *fragment), 0));
    }
    return ip->next_header == wire::kIpProtocolIcmp
               ? unwanted()
               : between(source, destination,
                         classify_transport(ip->next_header, true, payload, ip->payload_length.get()));
}

}  // namespace

bool HostAddresses::owns(const IpAddress& address) const {
    if (address.is_v4()) {
        return ipv4 && ipv4->address == address;
    }
    return std::find(ipv6.begin(), ipv6.end(), address) != ipv6.end();
}

Classified classify(Bytes head, std::size_t size, const HostAddresses& host) {
    const auto ethernet = read_value<wire::EthernetHeader>(head);
    if (!ethernet || ethernet->source.multicast()) {
        return malformed();
    }
    if (ethernet->source == host.mac) {
        return unwanted();
    }
    const Bytes body = head.subspan(sizeof *ethernet);
    const std::size_t body_size = size - sizeof *ethernet;
    const bool to_own_mac = ethernet->destination == host.mac;
    switch (ethernet->ether_type.get()) {
        case wire::kEtherTypeArp:
            return to_own_mac || ethernet->destination == wire::kBroadcastMac ? classify_arp(body, host)
                                                                              : not_for_us();
        case wire::kEtherTypeIpv4:
            return to_own_mac ? classify_ipv4(body, body_size, host) : not_for_us();
        case wire::kEtherTypeIpv6: {
            const auto ip = read_value<wire::Ipv6Header>(body);
            if (!ip) {
                return malformed();
            }
            const IpAddress destination = IpAddress::v6(ip->destination);
            const bool group = ip->destination[0] == 0xff;
            const bool mac_fits = group ? ethernet->destination == multicast_mac_of(destination) : to_own_mac;
            return mac_fits ? classify_ipv6(body, body_size, host) : not_for_us();
        }
        default:
            return not_for_us();
    }
}

}  // namespace ernic::net::stack
