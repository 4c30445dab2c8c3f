// SPDX-License-Identifier: MIT
#include "services/dhcp.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>

#include "net/checksum.hpp"
#include "wire/ip_host.hpp"

namespace ernic::services {
namespace {

using net::IpAddress;
using wire::dhcp::MessageType;

constexpr Nanoseconds kSecond = 1'000'000'000;
/// A client's message is smaller than a frame of the usual MTU.
constexpr std::size_t kLongest = 1518;
/// Answers that wait for the loop: more questions than this in one of its turns are a flood.
constexpr std::size_t kMaxAnswers = 64;
constexpr IpAddress kEverybody = IpAddress::v4(0xffffffff);

net::stack::HostConfig host_config(const DhcpConfig& config) {
    return {.mac = config.mac,
            .ipv4 = net::IpPrefix{config.address, config.parameters.subnet.length},
            .ipv4_gateway = config.parameters.router,
            .ipv6 = {},
            .mtu = 1500};
}

/// The datagram to the server's port in an Ethernet frame.
struct ServerDatagram {
    wire::MacAddress destination_mac;
    IpAddress destination;
    Bytes payload;
    bool intact = false;
};

std::optional<ServerDatagram> find_datagram(Bytes frame) {
    ByteReader reader(frame);
    const auto ethernet = reader.read<wire::EthernetHeader>();
    const Bytes network = reader.rest();
    const auto ip = reader.read<wire::Ipv4Header>();
    const Bytes transport = reader.rest();
    const auto udp = reader.read<wire::UdpHeader>();
    if (!udp || ethernet->ether_type.get() != wire::kEtherTypeIpv4 || ip->version_ihl != 0x45 ||
        ip->protocol != wire::kIpProtocolUdp || (ip->flags_fragment.get() & wire::kIpv4FragmentMask) != 0 ||
        udp->destination_port.get() != wire::dhcp::kServerPort || udp->length.get() < sizeof *udp ||
        udp->length.get() > transport.size() || ip->total_length.get() > network.size()) {
        return std::nullopt;
    }
    const Bytes datagram = transport.first(udp->length.get());
    const Bytes addresses = network.subspan(offsetof(wire::Ipv4Header, source), 8);
    const bool intact =
        udp->checksum.get() == 0 ||
        net::ones_complement_sum(
            datagram, net::pseudo_header_sum(addresses, wire::kIpProtocolUdp,
                                             static_cast<std::uint32_t>(datagram.size()))) == 0xffff;
    return ServerDatagram{ethernet->destination, IpAddress::v4(ip->destination.get()),
                          datagram.subspan(sizeof *udp), intact};
}

/// A whole frame with `payload` from the server's port to the client's.
std::vector<std::byte> make_frame(const DhcpConfig& config, const wire::MacAddress& to_mac,
                                  const IpAddress& to, Bytes payload) {
    wire::UdpHeader udp{};
    udp.source_port.set(wire::dhcp::kServerPort);
    udp.destination_port.set(wire::dhcp::kClientPort);
    udp.length.set(static_cast<std::uint16_t>(sizeof udp + payload.size()));
    wire::Ipv4Header ip{};
    ip.version_ihl = 0x45;
    ip.total_length.set(static_cast<std::uint16_t>(sizeof ip + udp.length.get()));
    ip.ttl = 64;
    ip.protocol = wire::kIpProtocolUdp;
    ip.source.set(config.address.value_v4());
    ip.destination.set(to.value_v4());
    const auto store = [](le16 sum) { return std::bit_cast<be16>(sum); };
    ip.checksum = store(le16(net::finished_checksum(net::ones_complement_sum(bytes_of(ip)))));
    const Bytes addresses = bytes_of(ip).subspan(offsetof(wire::Ipv4Header, source), 8);
    net::ChecksumAccumulator sum(net::pseudo_header_sum(addresses, wire::kIpProtocolUdp, udp.length.get()));
    sum.add(bytes_of(udp));
    sum.add(payload);
    udp.checksum = store(le16(net::finished_checksum(sum.sum())));
    const wire::EthernetHeader ethernet{to_mac, config.mac, be16(wire::kEtherTypeIpv4)};
    std::vector<std::byte> frame;
    for (const Bytes part : {bytes_of(ethernet), bytes_of(ip), bytes_of(udp), payload}) {
        frame.insert(frame.end(), part.begin(), part.end());
    }
    return frame;
}

}  // namespace

void DhcpCounters::register_metrics(metrics::Registry& registry) const {
    registry.add({"dhcp.offers", "messages", "addresses offered by the DHCP service"}, offers);
    registry.add(
        {"dhcp.acks", "messages", "leases given or renewed, and questions about the network answered"}, acks);
    registry.add({"dhcp.naks", "messages",
                  "requests refused; high: clients ask for addresses of another network, or of each other"},
                 naks);
    registry.add({"dhcp.exhausted", "messages", "clients not answered because all addresses are taken"},
                 exhausted);
    registry.add({"dhcp.malformed", "messages", "messages that were cut short or made no sense"}, malformed);
    registry.add({"dhcp.ignored", "messages",
                  "messages for another server, through a relay agent, or more at once than can be answered"},
                 ignored);
    registry.add({"dhcp.leases", "clients", "clients with a lease"}, [this] { return leases; });
}

Dhcp::Dhcp(EventLoop& loop, net::stack::Stack& stack, net::FramePort& port, const DhcpConfig& config,
           DhcpCounters& counters, const log::Logger& log)
    : loop_(loop),
      port_(port),
      config_(config),
      counters_(counters),
      log_(log),
      host_(stack, port, host_config(config)),
      leases_(loop.clock(), config.first, config.last),
      answering_(loop, [this] { flush(); }) {
    reserve(config_.address);
    if (config_.parameters.router) {
        reserve(*config_.parameters.router);
    }
    port_.connect(this);  // in front of the host
}

Dhcp::~Dhcp() = default;

void Dhcp::transmit(const net::Frame& frame) {
    if (!frame.insert_vlan && !frame.segmentation && frame.data.bytes() <= kLongest) {
        std::array<std::byte, kLongest> copy;
        const std::size_t size = mem::copy(copy, frame.data);
        if (take(Bytes(copy).first(size), frame.checksum.has_value() || frame.checksum_valid)) {
            return;
        }
    }
    host_.transmit(frame);
}

bool Dhcp::take(Bytes frame, bool checksum_known) {
    const auto datagram = find_datagram(frame);
    if (!datagram) {
        return false;
    }
    const bool to_all =
        datagram->destination_mac == wire::kBroadcastMac && datagram->destination == kEverybody;
    const bool to_us = datagram->destination_mac == config_.mac && datagram->destination == config_.address;
    if (!to_all && !to_us) {
        return false;
    }
    const auto request = checksum_known || datagram->intact ? parse_dhcp(datagram->payload) : std::nullopt;
    if (!request) {
        counters_.malformed.add();
    } else if (request->relayed || (request->server && *request->server != config_.address &&
                                    request->type != MessageType::Request)) {
        counters_.ignored.add();
    } else {
        handle(*request);
        counters_.leases = leases_.bound();
    }
    return true;
}

void Dhcp::handle(const DhcpRequest& request) {
    switch (request.type) {
        case MessageType::Discover:
            discover(request);
            break;
        case MessageType::Request:
            request_lease(request);
            break;
        case MessageType::Decline:
            if (request.requested_ip) {
                leases_.decline(request.client, *request.requested_ip);
                log_.warn("{} is used by somebody else, a client says", request.requested_ip->to_string());
            }
            break;
        case MessageType::Release:
            leases_.release(request.client);
            break;
        case MessageType::Inform:
            if (request.client_ip && config_.parameters.subnet.contains(*request.client_ip)) {
                send(request, {.type = MessageType::Ack,
                               .server = config_.address,
                               .your_ip = {},
                               .lease_seconds = {}});
                counters_.acks.add();
            }
            break;
        default:
            counters_.ignored.add();  // what only servers say
            break;
    }
}

void Dhcp::discover(const DhcpRequest& request) {
    const auto address = leases_.offer(request.client, request.requested_ip);
    if (!address) {
        counters_.exhausted.add();
        return;
    }
    counters_.offers.add();
    send(request, {.type = MessageType::Offer,
                   .server = config_.address,
                   .your_ip = address,
                   .lease_seconds = config_.lease_seconds});
}

/// RFC 2131 4.3.2. We are the only server of the segment, so that an unknown client whose address is free may
/// keep it, and one whose address is not hears so at once.
void Dhcp::request_lease(const DhcpRequest& request) {
    if (request.server && *request.server != config_.address) {
        leases_.release(request.client);  // it has chosen another server's offer
        counters_.ignored.add();
        return;
    }
    const auto& wanted = request.requested_ip ? request.requested_ip : request.client_ip;
    if (!wanted) {
        counters_.malformed.add();
        return;
    }
    if (leases_.bind(request.client, *wanted, config_.lease_seconds * kSecond)) {
        acknowledge(request, *wanted);
    } else {
        refuse(request);
    }
}

void Dhcp::acknowledge(const DhcpRequest& request, const IpAddress& address) {
    counters_.acks.add();
    log_.debug("{} leased", address.to_string());
    send(request, {.type = MessageType::Ack,
                   .server = config_.address,
                   .your_ip = address,
                   .lease_seconds = config_.lease_seconds});
}

void Dhcp::refuse(const DhcpRequest& request) {
    counters_.naks.add();
    send(request, {.type = MessageType::Nak, .server = config_.address, .your_ip = {}, .lease_seconds = {}});
}

/// Where an answer goes: RFC 2131 4.1.
void Dhcp::send(const DhcpRequest& request, const DhcpReply& reply) {
    if (answers_.size() >= kMaxAnswers) {
        counters_.ignored.add();
        return;
    }
    IpAddress to = kEverybody;
    wire::MacAddress to_mac = wire::kBroadcastMac;
    if (reply.type != MessageType::Nak) {
        if (request.client_ip) {
            to = *request.client_ip;
            to_mac = request.client;
        } else if (!request.broadcast && reply.your_ip) {
            to = *reply.your_ip;
            to_mac = request.client;
        }
    }
    answers_.push_back(make_frame(config_, to_mac, to, make_dhcp(request, reply, config_.parameters)));
    answering_.arm(loop_.clock().now());
}

void Dhcp::flush() {
    while (!answers_.empty()) {
        std::vector<std::byte> frame = std::move(answers_.front());
        answers_.pop_front();
        mem::SpanList data;
        data.add(frame.data(), frame.size());
        port_.transmit(
            {.data = data, .insert_vlan = {}, .checksum = {}, .checksum_valid = true, .segmentation = {}});
    }
}

}  // namespace ernic::services
