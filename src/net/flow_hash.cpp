// SPDX-License-Identifier: MIT
#include "net/flow_hash.hpp"

#include "wire/ethernet.hpp"

namespace ernic::net {
namespace {

constexpr std::size_t kPortsSize = 4;

/// FNV-1a of bytes, continued from `hash`.
std::uint32_t mix(std::uint32_t hash, Bytes bytes) {
    for (const std::byte byte : bytes) {
        hash = (hash ^ static_cast<std::uint32_t>(byte)) * 16777619U;
    }
    return hash;
}

/// Addresses, and ports when the protocol has some and `frame` reaches that far.
std::uint32_t of_packet(Bytes addresses, std::uint8_t protocol, Bytes transport) {
    std::uint32_t hash = mix(2166136261U, addresses);
    const bool ports = protocol == wire::kIpProtocolTcp || protocol == wire::kIpProtocolUdp;
    if (ports && transport.size() >= kPortsSize) {
        hash = mix(hash, transport.first(kPortsSize));
    }
    // The low bits choose the queue, and FNV's low bits depend on little.
    return hash ^ hash >> 16U;
}

}  // namespace

std::uint32_t flow_hash(Bytes frame) {
    const auto header = read_value<wire::EthernetHeader>(frame);
    if (!header) {
        return 0;
    }
    std::uint16_t type = header->ether_type.get();
    Bytes packet = frame.subspan(sizeof *header);
    if (type == wire::kEtherTypeVlan) {
        const auto tag = read_value<wire::VlanTag>(packet);
        if (!tag) {
            return 0;
        }
        type = tag->ether_type.get();
        packet = packet.subspan(sizeof *tag);
    }
    if (type == wire::kEtherTypeIpv4) {
        if (const auto ip = read_value<wire::Ipv4Header>(packet)) {
            const std::size_t size = (ip->version_ihl & 0xfU) * std::size_t{4};
            const bool fragment = (ip->flags_fragment.get() & wire::kIpv4FragmentMask) != 0;
            const Bytes transport = fragment || size > packet.size() ? Bytes() : packet.subspan(size);
            return of_packet(packet.subspan(12, 8), ip->protocol, transport);
        }
    }
    if (type == wire::kEtherTypeIpv6) {
        if (const auto ip = read_value<wire::Ipv6Header>(packet)) {
            return of_packet(packet.subspan(8, 32), ip->next_header, packet.subspan(sizeof *ip));
        }
    }
    return of_packet(frame.first(wire::kMacAddressesSize), 0, {});
}

}  // namespace ernic::net
