// SPDX-License-Identifier: MIT
#include "ionic/packet_info.hpp"

#include <cstring>

namespace ernic::ionic {
namespace {

using wire::ionic::PacketType;

constexpr std::size_t kPortBytes = 4;

void add_tuple(PacketInfo& info, const void* data, std::size_t size) {
    std::memcpy(info.tuple.data() + info.address_bytes, data, size);
    info.address_bytes = static_cast<std::uint8_t>(info.address_bytes + size);
}

/// Type and ports when `transport` starts with TCP or UDP.
void parse_transport(PacketInfo& info, std::uint8_t protocol, Bytes transport, PacketType tcp,
                     PacketType udp) {
    if ((protocol != wire::kIpProtocolTcp && protocol != wire::kIpProtocolUdp) ||
        transport.size() < kPortBytes) {
        return;
    }
    info.type = protocol == wire::kIpProtocolTcp ? tcp : udp;
    std::memcpy(info.tuple.data() + info.address_bytes, transport.data(), kPortBytes);
    info.port_bytes = kPortBytes;
}

void parse_ipv4(PacketInfo& info, Bytes network) {
    const auto header = read_value<wire::Ipv4Header>(network);
    const std::size_t size = header ? (header->version_ihl & 0xfU) * std::size_t{4} : 0;
    if (!header || header->version_ihl >> 4U != 4 || size < sizeof *header || size > network.size()) {
        return;
    }
    info.type = PacketType::Ipv4;
    info.ipv4_header_size = size;
    add_tuple(info, &header->source, sizeof header->source);
    add_tuple(info, &header->destination, sizeof header->destination);
    if ((header->flags_fragment.get() & wire::kIpv4FragmentMask) == 0) {
        parse_transport(info, header->protocol, network.subspan(size), PacketType::Ipv4Tcp,
                        PacketType::Ipv4Udp);
    }
}

void parse_ipv6(PacketInfo& info, Bytes network) {
    const auto header = read_value<wire::Ipv6Header>(network);
    if (!header || header->version_class_flow.get() >> 28U != 6) {
        return;
    }
    info.type = PacketType::Ipv6;
    add_tuple(info, header->source.data(), header->source.size());
    add_tuple(info, header->destination.data(), header->destination.size());
    parse_transport(info, header->next_header, network.subspan(sizeof *header), PacketType::Ipv6Tcp,
                    PacketType::Ipv6Udp);
}

}  // namespace

std::optional<PacketInfo> parse_packet(Bytes frame) {
    ByteReader reader(frame);
    const auto ethernet = reader.read<wire::EthernetHeader>();
    if (!ethernet) {
        return std::nullopt;
    }
    PacketInfo info;
    info.destination = ethernet->destination;
    std::uint16_t ether_type = ethernet->ether_type.get();
    if (ether_type == wire::kEtherTypeVlan) {
        const auto tag = reader.read<wire::VlanTag>();
        if (!tag) {
            return info;
        }
        info.vlan_tci = tag->tci.get();
        ether_type = tag->ether_type.get();
    }
    info.network_offset = frame.size() - reader.rest().size();
    if (ether_type == wire::kEtherTypeIpv4) {
        parse_ipv4(info, reader.rest());
    } else if (ether_type == wire::kEtherTypeIpv6) {
        parse_ipv6(info, reader.rest());
    }
    return info;
}

}  // namespace ernic::ionic
