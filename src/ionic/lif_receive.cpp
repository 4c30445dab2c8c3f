// SPDX-License-Identifier: MIT
/// From a frame on the wire to a receive queue: filters, VLAN stripping, hash and checksum.
#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

#include "ionic/lif.hpp"
#include "ionic/packet_info.hpp"
#include "net/checksum.hpp"

namespace ernic::ionic {
namespace {

using wire::ionic::PacketType;
namespace lif_feature = wire::ionic::lif_feature;
namespace rx_checksum = wire::ionic::rx_checksum;

constexpr std::uint16_t kVlanIdMask = 0x0fff;
/// The sum of an intact IPv4 header, and of any data that holds its own checksum.
constexpr std::uint16_t kIntactSum = 0xffff;

/// The completion's type tells the driver whether a hash covers ports (ionic 7.2, ionic_rx_clean).
PacketType reported_type(PacketType type, const Rss::Choice& choice) {
    if (!choice.hashed || choice.ports_hashed) {
        return type;
    }
    const bool ipv4 = type == PacketType::Ipv4Tcp || type == PacketType::Ipv4Udp;
    const bool ipv6 = type == PacketType::Ipv6Tcp || type == PacketType::Ipv6Udp;
    return ipv4 ? PacketType::Ipv4 : ipv6 ? PacketType::Ipv6 : type;
}

/// The sum of `frame` from `covered` on, whose transport checksum is known to be right: then transport header
/// and payload add up to the complement of the pseudo header, and nobody need look at the payload. Fails:
/// nullopt when the packet is not of a kind for which that holds.
std::optional<std::uint16_t> sum_of_valid(const PacketInfo& packet, const net::WireFrame& frame,
                                          std::size_t covered) {
    if (packet.port_bytes == 0) {
        return std::nullopt;
    }
    const bool ipv4 = packet.ipv4_header_size != 0;
    const std::size_t network_size = ipv4 ? packet.ipv4_header_size : sizeof(wire::Ipv6Header);
    const std::size_t transport = packet.network_offset + network_size;
    const Bytes network = frame.head.subspan(packet.network_offset);
    const std::size_t ip_length =
        ipv4 ? read_value<wire::Ipv4Header>(network)->total_length.get()
             : sizeof(wire::Ipv6Header) + read_value<wire::Ipv6Header>(network)->payload_length.get();
    if (packet.network_offset + ip_length != frame.size() || ip_length < network_size) {
        return std::nullopt;  // padded behind the packet
    }
    const bool tcp = packet.type == PacketType::Ipv4Tcp || packet.type == PacketType::Ipv6Tcp;
    const std::uint16_t pseudo = net::pseudo_header_sum(Bytes(packet.tuple).first(packet.address_bytes),
                                                        tcp ? wire::kIpProtocolTcp : wire::kIpProtocolUdp,
                                                        static_cast<std::uint32_t>(ip_length - network_size));
    // All headers in front of the transport's are of even size.
    return net::ones_complement_sum(frame.head.subspan(covered, transport - covered),
                                    static_cast<std::uint16_t>(~pseudo));
}

std::uint16_t sum_behind(const PacketInfo& packet, const net::WireFrame& frame, std::size_t covered) {
    if (frame.checksum_valid) {
        if (const auto sum = sum_of_valid(packet, frame, covered)) {
            return *sum;
        }
    }
    net::ChecksumAccumulator sum;
    sum.add(frame.head.subspan(covered));
    sum.add(frame.tail);
    return sum.sum();
}

}  // namespace

RxMetadata Lif::describe(const PacketInfo& packet, const net::WireFrame& frame, bool strip,
                         const Rss::Choice& choice) const {
    RxMetadata metadata;
    metadata.type = reported_type(packet.type, choice);
    metadata.hash = choice.hash;
    if (strip) {
        metadata.vlan_tci = *packet.vlan_tci;
        metadata.checksum_flags |= rx_checksum::kVlan;
    }
    if (has_feature(lif_feature::kRxChecksum)) {
        // Everything behind the Ethernet header of the frame as delivered; a tag that stays belongs to it.
        const std::size_t covered = sizeof(wire::EthernetHeader) + (strip ? sizeof(wire::VlanTag) : 0);
        metadata.checksum = sum_behind(packet, frame, covered);
        metadata.checksum_flags |= rx_checksum::kCalculated;
        if (packet.ipv4_header_size != 0) {
            const Bytes header = frame.head.subspan(packet.network_offset, packet.ipv4_header_size);
            metadata.checksum_flags |=
                net::ones_complement_sum(header) == kIntactSum ? rx_checksum::kIpOk : rx_checksum::kIpBad;
        }
    }
    return metadata;
}

bool Lif::receive(const net::WireFrame& frame) {
    const auto packet = parse_packet(frame.head);
    if (!packet || !initialized() || !link_.up) {
        return false;
    }
    const Cast cast = cast_of(packet->destination);
    std::optional<std::uint16_t> vlan_id;
    if (packet->vlan_tci) {
        vlan_id = static_cast<std::uint16_t>(*packet->vlan_tci & kVlanIdMask);
    }
    if (!filters_.accepts(packet->destination, vlan_id, has_feature(lif_feature::kVlanRxFilter))) {
        return false;
    }
    // A stripped frame is delivered as its MAC addresses and what follows the tag:
    //
    //   | destination, source | 8100 tci | type | payload |
    //   |<----- parts[0] ---->|          |<-- parts[1..] ->|
    const bool strip = packet->vlan_tci && has_feature(lif_feature::kVlanRxStrip);
    const std::array<Bytes, 3> parts = {
        strip ? frame.head.first(wire::kMacAddressesSize) : Bytes(),
        strip ? frame.head.subspan(wire::kMacAddressesSize + sizeof(wire::VlanTag)) : frame.head, frame.tail};

    const Rss::Choice choice = has_feature(lif_feature::kRxHash) ? rss_.choose(*packet) : Rss::Choice{};
    const RxMetadata metadata = describe(*packet, frame, strip, choice);
    auto outcome = RxQueue::Outcome::Disabled;
    if (choice.queue < rx_.size() && rx_[choice.queue]) {
        outcome = rx_[choice.queue]->deliver(parts, metadata);
    } else {
        stats_.add(wire::ionic::LifStat::RxQueueDisabled);
    }
    if (outcome != RxQueue::Outcome::Delivered) {
        stats_.receive_dropped(cast, frame.size());
        if (drop_handler_) {
            drop_handler_();
        }
        return false;
    }
    stats_.received(cast, frame.size());
    return true;
}

std::size_t Lif::receive_room() const {
    std::size_t least = SIZE_MAX;
    if (!initialized() || !link_.up) {
        return least;
    }
    for (const auto& queue : rx_) {
        if (queue) {
            least = std::min(least, queue->room());
        }
    }
    return least;
}

}  // namespace ernic::ionic
