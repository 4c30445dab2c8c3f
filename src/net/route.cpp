// SPDX-License-Identifier: MIT
#include "net/route.hpp"

#include <bit>
#include <cstring>

#include "net/checksum.hpp"

namespace ernic::net {
namespace {

constexpr std::size_t kUdpHeaderSize = sizeof(wire::UdpHeader);

}  // namespace

std::optional<Route> parse_route(Bytes header) {
    ByteReader reader(header);
    const auto ethernet = reader.read<wire::EthernetHeader>();
    if (!ethernet) {
        return std::nullopt;
    }
    Route route;
    route.destination = ethernet->destination;
    route.source = ethernet->source;
    std::uint16_t ether_type = ethernet->ether_type.get();
    if (ether_type == wire::kEtherTypeVlan) {
        const auto tag = reader.read<wire::VlanTag>();
        if (!tag) {
            return std::nullopt;
        }
        route.vlan_tci = tag->tci.get();
        ether_type = tag->ether_type.get();
    }
    std::uint8_t protocol = 0;
    if (ether_type == wire::kEtherTypeIpv4) {
        const auto ip = reader.read<wire::Ipv4Header>();
        if (!ip || ip->version_ihl != 0x45) {
            return std::nullopt;
        }
        route.ipv4 = true;
        route.ip4 = *ip;
        protocol = ip->protocol;
    } else if (ether_type == wire::kEtherTypeIpv6) {
        const auto ip = reader.read<wire::Ipv6Header>();
        if (!ip || ip->version_class_flow.get() >> 28U != 6) {
            return std::nullopt;
        }
        route.ip6 = *ip;
        protocol = ip->next_header;
    } else {
        return std::nullopt;
    }
    const auto udp = reader.read<wire::UdpHeader>();
    if (!udp || protocol != wire::kIpProtocolUdp || udp->destination_port.get() != wire::kRoceUdpPort) {
        return std::nullopt;
    }
    route.udp_source_port = udp->source_port.get();
    return route;
}

std::size_t write_route(const Route& route, std::array<std::byte, kMaxRouteHeader>& out) {
    std::size_t size = 0;
    const auto put = [&](const auto& value) {
        std::memcpy(out.data() + size, &value, sizeof value);
        size += sizeof value;
    };
    const be16 ether_type(route.ipv4 ? wire::kEtherTypeIpv4 : wire::kEtherTypeIpv6);
    put(wire::EthernetHeader{route.destination, route.source,
                             route.vlan_tci ? be16(wire::kEtherTypeVlan) : ether_type});
    if (route.vlan_tci) {
        put(wire::VlanTag{be16(*route.vlan_tci), ether_type});
    }
    if (route.ipv4) {
        put(route.ip4);
    } else {
        put(route.ip6);
    }
    put(wire::UdpHeader{be16(route.udp_source_port), be16(wire::kRoceUdpPort), be16(), be16()});
    return size;
}

std::array<std::byte, 40> network_header(const Route& route, std::size_t payload) {
    std::array<std::byte, 40> bytes{};
    const auto udp_length = static_cast<std::uint16_t>(payload + kUdpHeaderSize);
    if (route.ipv4) {
        wire::Ipv4Header ip = route.ip4;
        ip.total_length.set(static_cast<std::uint16_t>(sizeof(ip) + udp_length));
        ip.checksum.set(0);
        // The sum is of little-endian words and stored as one, see net/checksum.hpp.
        ip.checksum =
            std::bit_cast<be16>(le16(static_cast<std::uint16_t>(~ones_complement_sum(bytes_of(ip)))));
        std::memcpy(bytes.data() + 20, &ip, sizeof(ip));
    } else {
        wire::Ipv6Header ip = route.ip6;
        ip.payload_length.set(udp_length);
        std::memcpy(bytes.data(), &ip, sizeof(ip));
    }
    return bytes;
}

}  // namespace ernic::net
