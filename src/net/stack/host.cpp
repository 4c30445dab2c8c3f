// SPDX-License-Identifier: MIT
#include "net/stack/host.hpp"

#include <algorithm>
#include <cassert>

#include "net/stack/core.hpp"
#include "wire/ip_host.hpp"

namespace ernic::net::stack {
namespace {

/// The receivers need not have room for more than a few frames at a time.
constexpr std::size_t kRoomToSend = 8;
/// How long frames are made to wait for a receiver without buffers (as those of a TAP).
constexpr Nanoseconds kPatience = 100'000'000;
/// Frames that wait, for all connections of a host: 64 windows of 64 KiB.
constexpr std::size_t kMaxWaiting = 4096;
constexpr std::size_t kMaxWaitingBytes = std::size_t{4} << 20U;
constexpr int kFramesPerFlush = 32;
/// Packets to an IPv6 neighbour that is being looked for; lwIP has a limit of its own (10) for IPv4 only.
constexpr std::size_t kMaxUnresolved = 10;

Host::Impl& host_of(netif* interface) {
    return *static_cast<Host::Impl*>(interface->state);
}

err_t initialise(netif* interface) {
    const Host::Impl& host = host_of(interface);
    interface->name[0] = 'h';
    interface->name[1] = 's';
    interface->hwaddr_len = sizeof(wire::MacAddress);
    std::memcpy(interface->hwaddr, host.config.mac.bytes.data(), sizeof(wire::MacAddress));
    interface->mtu = host.config.mtu;
    interface->mtu6 = host.config.mtu;
    interface->rs_count = 0;
    // Neither IGMP nor MLD by flag: groups are joined by hand, IPv4 has none.
    interface->flags = NETIF_FLAG_BROADCAST | NETIF_FLAG_ETHARP | NETIF_FLAG_ETHERNET | NETIF_FLAG_LINK_UP;
    interface->output = [](netif* on, pbuf* packet, const ip4_addr_t* to) {
        return host_of(on).output_v4(packet, to);
    };
    interface->output_ip6 = [](netif* on, pbuf* packet, const ip6_addr_t* to) {
        return host_of(on).output_v6(packet, to);
    };
    interface->linkoutput = [](netif* on, pbuf* packet) {
        host_of(on).link_output(packet);
        return err_t{ERR_OK};
    };
    return ERR_OK;
}

HostAddresses addresses_of(const HostConfig& config) {
    HostAddresses addresses{.mac = config.mac, .ipv4 = config.ipv4, .ipv6 = {}};
    if (!config.ipv6.empty()) {
        addresses.ipv6.push_back(link_local_of(config.mac));
    }
    for (const IpPrefix& prefix : config.ipv6) {
        if (!addresses.owns(prefix.address)) {
            addresses.ipv6.push_back(prefix.address);
        }
    }
    return addresses;
}

/// The source address of an IPv4 or IPv6 packet. Fails: nullopt when it is cut short.
template <typename Header>
std::optional<Header> header_of(const pbuf* packet) {
    return read_value<Header>({static_cast<const std::byte*>(packet->payload), packet->len});
}

/// Packets that wait for the MAC address of `destination`.
std::size_t unresolved(const ip6_addr_t& destination) {
    for (std::size_t i = 0; i < LWIP_ND6_NUM_NEIGHBORS; ++i) {
        const nd6_neighbor_cache_entry& entry = neighbor_cache[i];
        if (entry.state == ND6_INCOMPLETE && ip6_addr_cmp(&entry.next_hop_address, &destination)) {
            std::size_t count = 0;
            for (const nd6_q_entry* waiting = entry.q; waiting != nullptr; waiting = waiting->next) {
                ++count;
            }
            return count;
        }
    }
    return 0;
}

}  // namespace

Host::Impl::Impl(Core& core_in, FramePort& port_in, const HostConfig& config_in)
    : core(core_in),
      port(port_in),
      config(config_in),
      addresses(addresses_of(config_in)),
      patience(core_in.loop(), [this] {
          if (!waiting.empty()) {
              // Nobody has posted buffers for long: one frame at a time finds out, and is counted when lost.
              pbuf* const packet = waiting.front();
              waiting.pop_front();
              waiting_bytes -= packet->tot_len;
              send(packet);
              pbuf_free(packet);
          }
          if (!waiting.empty()) {
              patience.arm(core.loop().clock().now() + kPatience);
          }
      }) {
    assert(config.mtu >= HostConfig::kMinMtu && config.mtu <= HostConfig::kMaxMtu);
    assert(config.ipv6.size() <= HostConfig::kMaxIpv6);
    core.add(*this);
    // A mask of all ones: lwIP then finds no host by subnet, where another with the same one may come first.
    // What is on the link is decided in output_v4().
    const ip4_addr_t none{};
    ip4_addr_t address{};
    ip4_addr_t mask{lwip_htonl(UINT32_MAX)};
    if (config.ipv4) {
        address.addr = lwip_htonl(config.ipv4->address.value_v4());
    }
    netif* const added = netif_add(&interface, &address, &mask, &none, this, initialise, ethernet_input);
    assert(added != nullptr);
    (void)added;
    netif_set_up(&interface);
    s8_t index = 0;
    for (const IpAddress& own : addresses.ipv6) {
        const ip_addr_t value = to_lwip(own, interface);
        netif_ip6_addr_set(&interface, index, ip_2_ip6(&value));
        netif_ip6_addr_set_state(&interface, index, IP6_ADDR_PREFERRED);
        const ip_addr_t group = to_lwip(solicited_node_of(own), interface);
        ip6_addr_t scoped = *ip_2_ip6(&group);
        ip6_addr_assign_zone(&scoped, IP6_MULTICAST, &interface);
        mld6_joingroup_netif(&interface, &scoped);
        ++index;
    }
}

Host::Impl::~Impl() {
    for (pbuf* packet : waiting) {
        pbuf_free(packet);
    }
    waiting.clear();
    netif_remove(&interface);
    core.remove(*this);
}

std::vector<IpAddress> Host::Impl::all() const {
    std::vector<IpAddress> result = addresses.ipv6;
    if (addresses.ipv4) {
        result.push_back(addresses.ipv4->address);
    }
    return result;
}

// lwIP to segment.

err_t Host::Impl::output_v4(pbuf* packet, const ip4_addr_t* destination) {
    const auto ip = header_of<wire::Ipv4Header>(packet);
    const IpAddress to = IpAddress::v4(lwip_ntohl(destination->addr));
    Impl* const from = ip ? core.owner_of(IpAddress::v4(ip->source.get())) : nullptr;
    if (from == nullptr || !to.unicast()) {
        core.counters().not_ours.add();
        return ERR_RTE;
    }
    const auto next_hop = from->config.ipv4->contains(to) ? std::optional(to) : from->config.ipv4_gateway;
    if (!next_hop) {
        core.counters().unresolved.add();
        return ERR_RTE;
    }
    const ip4_addr_t hop{lwip_htonl(next_hop->value_v4())};
    return etharp_query(&from->interface, &hop, packet);
}

err_t Host::Impl::output_v6(pbuf* packet, const ip6_addr_t* destination) {
    const auto ip = header_of<wire::Ipv6Header>(packet);
    const IpAddress source = ip ? IpAddress::v6(ip->source) : IpAddress();
    // Listener reports of a host without an address yet come from the unspecified one.
    Impl* const from = ip && source.unspecified() ? this : core.owner_of(source);
    if (!ip || from == nullptr) {
        core.counters().not_ours.add();
        return ERR_RTE;
    }
    if (!ip6_addr_ismulticast(destination) && unresolved(*destination) >= kMaxUnresolved) {
        core.counters().unresolved.add();
        return ERR_MEM;
    }
    return ethip6_output(&from->interface, packet, destination);
}

void Host::Impl::link_output(pbuf* packet) {
    const Bytes head{static_cast<const std::byte*>(packet->payload), packet->len};
    const auto ethernet = read_value<wire::EthernetHeader>(head);
    if (!ethernet || core.quiet()) {
        return;
    }
    if (ethernet->ether_type.get() == wire::kEtherTypeArp) {
        const auto arp = read_value<wire::ArpPacket>(head.subspan(sizeof *ethernet));
        // Asking for the own address is an announcement, which nobody answers.
        if (arp && arp->operation.get() == wire::kArpRequest && arp->target_ip != arp->sender_ip) {
            core.solicits();
        }
    } else if (ethernet->ether_type.get() == wire::kEtherTypeIpv6) {
        const Bytes network = head.subspan(sizeof *ethernet);
        const auto ip = read_value<wire::Ipv6Header>(network);
        if (ip && ip->next_header == wire::kIpProtocolIcmpv6 && network.size() > sizeof *ip &&
            std::to_integer<std::uint8_t>(network[sizeof *ip]) == wire::kIcmpv6NeighbourSolicitation) {
            core.solicits();
        }
    }
    if (waiting.empty() && port.room() >= kRoomToSend) {
        send(packet);
        return;
    }
    if (waiting.size() >= kMaxWaiting || waiting_bytes + packet->tot_len > kMaxWaitingBytes) {
        core.counters().send_queue_full.add();
        return;
    }
    if (waiting.empty()) {
        core.counters().pauses.add();
        patience.arm(core.loop().clock().now() + kPatience);
    }
    // lwIP does not touch what somebody else holds; a segment is not sent again while it is here.
    pbuf_ref(packet);
    waiting.push_back(packet);
    waiting_bytes += packet->tot_len;
}

void Host::Impl::send(pbuf* packet) {
    mem::SpanList data;
    for (const pbuf* part = packet; part != nullptr; part = part->next) {
        data.add(static_cast<std::byte*>(part->payload), part->len);
    }
    core.counters().frames_sent.add();
    port.transmit(
        {.data = data, .insert_vlan = {}, .checksum = {}, .checksum_valid = true, .segmentation = {}});
}

bool Host::Impl::flush() {
    bool sent = false;
    for (int i = 0; i < kFramesPerFlush && !waiting.empty() && port.room() >= kRoomToSend; ++i) {
        pbuf* const packet = waiting.front();
        waiting.pop_front();
        waiting_bytes -= packet->tot_len;
        send(packet);
        pbuf_free(packet);
        sent = true;
    }
    if (sent) {
        waiting.empty() ? patience.cancel() : patience.arm(core.loop().clock().now() + kPatience);
    }
    return sent;
}

Host::Host(Stack& stack, FramePort& port, const HostConfig& config)
    : impl_(std::make_unique<Impl>(*stack.core_, port, config)) {
    port.connect(this);
}

Host::~Host() {
    impl_->port.connect(nullptr);
}

void Host::transmit(const Frame& frame) {
    impl_->core.receive(*impl_, frame);
}

std::size_t Host::room() const {
    return impl_->core.room();
}

const HostAddresses& Host::addresses() const {
    return impl_->addresses;
}

}  // namespace ernic::net::stack
