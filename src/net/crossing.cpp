// SPDX-License-Identifier: MIT
#include "net/crossing.hpp"

#include <algorithm>
#include <array>

#include "base/bytes.hpp"

namespace ernic::net {
namespace {

/// Ethernet, IP, UDP, BTH, extended headers, ICRC and FCS of one RoCE packet, rounded up.
constexpr std::uint64_t kPacketOverhead = 80;
/// Ethernet, a tag, and the fixed part of an IP header.
constexpr std::size_t kLookedAt =
    sizeof(wire::EthernetHeader) + sizeof(wire::VlanTag) + sizeof(wire::Ipv6Header);

std::size_t header_bytes(const Frame& frame) {
    return frame.segmentation ? frame.segmentation->header.size() : 0;
}

bool is_atomic(const Message& message) {
    return message.kind == MessageKind::CompareSwap || message.kind == MessageKind::FetchAdd ||
           message.kind == MessageKind::AtomicResponse;
}

void read_protocol(ByteReader rest, Crossing& crossing) {
    if (crossing.ether_type == wire::kEtherTypeIpv4) {
        if (const auto ip = rest.read<wire::Ipv4Header>()) {
            crossing.protocol = ip->protocol;
        }
    } else if (crossing.ether_type == wire::kEtherTypeIpv6) {
        if (const auto ip = rest.read<wire::Ipv6Header>()) {
            crossing.protocol = ip->next_header;
        }
    }
}

}  // namespace

std::size_t Crossing::payload_bytes() const {
    if (frame != nullptr) {
        return frame->data.bytes() + header_bytes(*frame);
    }
    return message->payload != nullptr ? message->payload->bytes() : 0;
}

std::uint64_t Crossing::wire_bytes() const {
    if (frame != nullptr) {
        const std::uint64_t segment = frame->segmentation ? frame->segmentation->segment_size : 0;
        // Headers alone are one segment, too.
        const std::uint64_t more = segment != 0 && frame->data.bytes() != 0
                                       ? (frame->data.bytes() - 1) / segment * header_bytes(*frame)
                                       : 0;
        return payload_bytes() + more;
    }
    const std::uint64_t bytes = payload_bytes();
    const std::uint64_t packets =
        bytes == 0 || message->path_mtu == 0 ? 1 : (bytes + message->path_mtu - 1) / message->path_mtu;
    return bytes + packets * kPacketOverhead;
}

bool Crossing::has_data() const {
    return frame != nullptr ? payload_bytes() > sizeof(wire::EthernetHeader)
                            : payload_bytes() != 0 || is_atomic(*message);
}

void Crossing::deliver(Segment& segment) const {
    if (frame != nullptr) {
        segment.bridge().deliver(*frame, port);
    } else {
        segment.deliver(*message);
    }
}

Crossing crossing_of(const Message& message, Path path) {
    Crossing crossing;
    crossing.message = &message;
    crossing.path = path;
    crossing.source = message.route->source;
    crossing.destination = message.route->destination;
    return crossing;
}

Crossing crossing_of(const Frame& frame, MacTable::Port port, Path path) {
    Crossing crossing;
    crossing.frame = &frame;
    crossing.port = port;
    crossing.path = path;
    std::array<std::byte, kLookedAt> buffer;
    ByteReader reader(start_of(frame, buffer));
    const auto ethernet = reader.read<wire::EthernetHeader>();
    if (!ethernet) {
        return crossing;  // the bridge lets no such frame through
    }
    crossing.source = ethernet->source;
    crossing.destination = ethernet->destination;
    crossing.ether_type = ethernet->ether_type.get();
    crossing.tagged = frame.insert_vlan.has_value();
    if (crossing.ether_type == wire::kEtherTypeVlan) {
        crossing.tagged = true;
        if (const auto tag = reader.read<wire::VlanTag>()) {
            crossing.ether_type = tag->ether_type.get();
        }
    }
    read_protocol(reader, crossing);
    return crossing;
}

}  // namespace ernic::net
