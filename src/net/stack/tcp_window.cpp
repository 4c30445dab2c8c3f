// SPDX-License-Identifier: MIT
#include "net/stack/tcp_window.hpp"

#include <optional>

#include "net/stack/lwip.hpp"
#include "wire/ip_host.hpp"

namespace ernic::net::stack {
namespace {

struct Segment {
    IpAddress from;
    IpAddress to;
    wire::TcpHeader header;
    /// Sequence numbers it takes up.
    std::uint32_t length;
};

std::optional<Segment> segment_of(const IpAddress& from, const IpAddress& to, Bytes transport) {
    const auto header = read_value<wire::TcpHeader>(transport);
    const std::size_t header_size = header ? (header->data_offset >> 4U) * std::size_t{4} : 0;
    if (!header || transport.size() < header_size) {
        return std::nullopt;
    }
    const std::uint32_t end = (header->flags & wire::kTcpFin) != 0 ? 1 : 0;
    return Segment{from, to, *header, static_cast<std::uint32_t>(transport.size() - header_size) + end};
}

std::optional<Segment> segment_of(Bytes frame) {
    const auto ethernet = read_value<wire::EthernetHeader>(frame);
    if (!ethernet) {
        return std::nullopt;
    }
    const Bytes body = frame.subspan(sizeof *ethernet);
    if (ethernet->ether_type.get() == wire::kEtherTypeIpv4) {
        const auto ip = read_value<wire::Ipv4Header>(body);
        if (!ip || ip->protocol != wire::kIpProtocolTcp || ip->total_length.get() > body.size() ||
            ip->total_length.get() < sizeof *ip) {
            return std::nullopt;
        }
        return segment_of(IpAddress::v4(ip->source.get()), IpAddress::v4(ip->destination.get()),
                          body.first(ip->total_length.get()).subspan(sizeof *ip));
    }
    const auto ip = read_value<wire::Ipv6Header>(body);
    if (ethernet->ether_type.get() != wire::kEtherTypeIpv6 || !ip ||
        ip->next_header != wire::kIpProtocolTcp || ip->payload_length.get() > body.size() - sizeof *ip) {
        return std::nullopt;
    }
    return segment_of(IpAddress::v6(ip->source), IpAddress::v6(ip->destination),
                      body.subspan(sizeof *ip, ip->payload_length.get()));
}

const tcp_pcb* connection_of(const Segment& segment) {
    // lwIP moves the connection it has worked for to the front.
    for (const tcp_pcb* pcb = tcp_active_pcbs; pcb != nullptr; pcb = pcb->next) {
        if (pcb->remote_port == segment.header.source_port.get() &&
            pcb->local_port == segment.header.destination_port.get() &&
            from_lwip(pcb->remote_ip) == segment.from && from_lwip(pcb->local_ip) == segment.to) {
            return pcb;
        }
    }
    return nullptr;
}

}  // namespace

bool overruns_window(Bytes frame) {
    const auto segment = segment_of(frame);
    const tcp_pcb* const pcb = segment ? connection_of(*segment) : nullptr;
    if (pcb == nullptr) {
        return false;
    }
    const std::uint32_t gap = segment->header.sequence.get() - pcb->rcv_nxt;
    return gap != 0 && gap <= INT32_MAX && gap + segment->length > pcb->rcv_wnd;
}

}  // namespace ernic::net::stack
