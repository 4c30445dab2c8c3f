// SPDX-License-Identifier: MIT
/// From a frame on the wire to a receive queue: filters, VLAN stripping, hash and checksum.
#include <cstddef>

#include "ionic/lif.hpp"
#include "ionic/packet_info.hpp"

namespace ernic::ionic {
namespace {

using wire::ionic::PacketType;
namespace lif_feature = wire::ionic::lif_feature;
namespace rx_checksum = wire::ionic::rx_checksum;

constexpr std::uint16_t kVlanIdMask = 0x0fff;
constexpr std::size_t kMacAddresses = 2 * sizeof(wire::MacAddress);
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

}  // namespace

RxMetadata Lif::describe(const PacketInfo& packet, Bytes frame, bool strip, const Rss::Choice& choice) const {
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
        metadata.checksum = ones_complement_sum(frame.subspan(covered));
        metadata.checksum_flags |= rx_checksum::kCalculated;
        if (packet.ipv4_header_size != 0) {
            const Bytes header = frame.subspan(packet.network_offset, packet.ipv4_header_size);
            metadata.checksum_flags |=
                ones_complement_sum(header) == kIntactSum ? rx_checksum::kIpOk : rx_checksum::kIpBad;
        }
    }
    return metadata;
}

bool Lif::receive(Bytes frame) {
    const auto packet = parse_packet(frame);
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
    //   |<------ head ------->|          |<---- tail ---->|
    const bool strip = packet->vlan_tci && has_feature(lif_feature::kVlanRxStrip);
    const Bytes head = strip ? frame.first(kMacAddresses) : Bytes();
    const Bytes tail = strip ? frame.subspan(kMacAddresses + sizeof(wire::VlanTag)) : frame;

    const Rss::Choice choice = has_feature(lif_feature::kRxHash) ? rss_.choose(*packet) : Rss::Choice{};
    const RxMetadata metadata = describe(*packet, frame, strip, choice);
    auto outcome = RxQueue::Outcome::Disabled;
    if (choice.queue < rx_.size() && rx_[choice.queue]) {
        outcome = rx_[choice.queue]->deliver(head, tail, metadata);
    } else {
        stats_.add(wire::ionic::LifStat::RxQueueDisabled);
    }
    if (outcome != RxQueue::Outcome::Delivered) {
        stats_.receive_dropped(cast, frame.size());
        return false;
    }
    stats_.received(cast, frame.size());
    return true;
}

}  // namespace ernic::ionic
