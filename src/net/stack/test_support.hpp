// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "base/event_loop.hpp"
#include "net/bridge.hpp"
#include "net/checksum.hpp"
#include "net/ip_address.hpp"
#include "net/stack/stack.hpp"
#include "wire/ip_host.hpp"

/// For tests: a peer on the segment that speaks in frames, and how to write and read them.
namespace ernic::net::stack::test {

using Packet = std::vector<std::byte>;

inline constexpr wire::MacAddress kPeerMac{{2, 0, 0, 0, 0, 1}};
inline constexpr wire::MacAddress kHostMac{{2, 0, 0, 0, 0, 2}};
inline constexpr IpAddress kPeer4 = IpAddress::v4(0x0a000001);
inline constexpr IpAddress kHost4 = IpAddress::v4(0x0a000002);
/// fd00::1, fd00::2.
inline constexpr IpAddress kPeer6 = IpAddress::v6({0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1});
inline constexpr IpAddress kHost6 = IpAddress::v6({0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2});

template <typename... Parts>
Packet join(const Parts&... parts) {
    Packet packet;
    const auto add = [&packet](Bytes bytes) { packet.insert(packet.end(), bytes.begin(), bytes.end()); };
    (add(parts), ...);
    return packet;
}

inline Packet text(const std::string& words) {
    const Bytes bytes = std::as_bytes(std::span(words));
    return {bytes.begin(), bytes.end()};
}

/// Who sends what to whom: the defaults are the peer and the host of the tests.
struct Addressing {
    wire::MacAddress source_mac = kPeerMac;
    wire::MacAddress destination_mac = kHostMac;
    IpAddress source = kPeer4;
    IpAddress destination = kHost4;
};

inline Packet ethernet(const Addressing& to, std::uint16_t type, Bytes body) {
    const wire::EthernetHeader header{to.destination_mac, to.source_mac, be16(type)};
    return join(bytes_of(header), body);
}

inline Packet arp(const Addressing& to, std::uint16_t operation) {
    wire::ArpPacket packet{};
    packet.hardware_type.set(wire::kArpEthernet);
    packet.protocol_type.set(wire::kEtherTypeIpv4);
    packet.hardware_size = 6;
    packet.protocol_size = 4;
    packet.operation.set(operation);
    packet.sender_mac = to.source_mac;
    packet.sender_ip.set(to.source.value_v4());
    packet.target_ip.set(to.destination.value_v4());
    return ethernet(to, wire::kEtherTypeArp, bytes_of(packet));
}

/// Sets the checksum of an IPv4 header, which is 0 before.
inline void finish(wire::Ipv4Header& header) {
    header.checksum = std::bit_cast<be16>(le16(finished_checksum(ones_complement_sum(bytes_of(header)))));
}

/// An IP packet around `transport`, whose checksum is set when it has one at `checksum_at`.
inline Packet ip(const Addressing& to, std::uint8_t protocol, Packet transport,
                 std::optional<std::size_t> checksum_at) {
    const bool v4 = to.source.is_v4();
    const Packet addresses = join(to.source.bytes(), to.destination.bytes());
    if (checksum_at) {
        const std::uint16_t pseudo =
            protocol == wire::kIpProtocolIcmp
                ? 0
                : pseudo_header_sum(addresses, protocol, static_cast<std::uint32_t>(transport.size()));
        const le16 sum(finished_checksum(ones_complement_sum(transport, pseudo)));
        std::memcpy(transport.data() + *checksum_at, &sum, sizeof sum);
    }
    if (!v4) {
        wire::Ipv6Header header{};
        header.version_class_flow.set(6U << 28U);
        header.payload_length.set(static_cast<std::uint16_t>(transport.size()));
        header.next_header = protocol;
        header.hop_limit = 255;
        std::memcpy(header.source.data(), addresses.data(), 16);
        std::memcpy(header.destination.data(), addresses.data() + 16, 16);
        return ethernet(to, wire::kEtherTypeIpv6, join(bytes_of(header), transport));
    }
    wire::Ipv4Header header{};
    header.version_ihl = 0x45;
    header.total_length.set(static_cast<std::uint16_t>(sizeof header + transport.size()));
    header.ttl = 64;
    header.protocol = protocol;
    header.source.set(to.source.value_v4());
    header.destination.set(to.destination.value_v4());
    finish(header);
    return ethernet(to, wire::kEtherTypeIpv4, join(bytes_of(header), transport));
}

inline Packet icmp_echo(const Addressing& to, const Packet& data) {
    wire::IcmpHeader header{};
    header.type = to.source.is_v4() ? wire::kIcmpEchoRequest : wire::kIcmpv6EchoRequest;
    header.rest.set(0x12340001);
    return ip(to, to.source.is_v4() ? wire::kIpProtocolIcmp : wire::kIpProtocolIcmpv6,
              join(bytes_of(header), data), offsetof(wire::IcmpHeader, checksum));
}

inline Packet solicitation(Addressing to, const IpAddress& target) {
    wire::NeighbourMessage message{};
    message.icmp.type = wire::kIcmpv6NeighbourSolicitation;
    message.target = target.bytes_v6();
    to.destination = solicited_node_of(target);
    to.destination_mac = multicast_mac_of(to.destination);
    // Source link-layer address option.
    const Packet option = join(text(std::string("\x01\x01", 2)), bytes_of(to.source_mac));
    return ip(to, wire::kIpProtocolIcmpv6, join(bytes_of(message), option),
              offsetof(wire::IcmpHeader, checksum));
}

inline Packet udp(const Addressing& to, std::uint16_t from_port, std::uint16_t to_port, const Packet& data) {
    wire::UdpHeader header{};
    header.source_port.set(from_port);
    header.destination_port.set(to_port);
    header.length.set(static_cast<std::uint16_t>(sizeof header + data.size()));
    return ip(to, wire::kIpProtocolUdp, join(bytes_of(header), data), offsetof(wire::UdpHeader, checksum));
}

struct TcpFields {
    std::uint16_t source_port = 40000;
    std::uint16_t destination_port = 7;
    std::uint32_t sequence = 0;
    std::uint32_t acknowledgement = 0;
    std::uint8_t flags = 0;
    std::uint16_t window = 65535;
};

inline Packet tcp(const Addressing& to, const TcpFields& fields, const Packet& data = {}) {
    wire::TcpHeader header{};
    header.source_port.set(fields.source_port);
    header.destination_port.set(fields.destination_port);
    header.sequence.set(fields.sequence);
    header.acknowledgement.set(fields.acknowledgement);
    header.data_offset = 5U << 4U;
    header.flags = fields.flags;
    header.window.set(fields.window);
    return ip(to, wire::kIpProtocolTcp, join(bytes_of(header), data), offsetof(wire::TcpHeader, checksum));
}

/// A frame taken apart as far as tests look at it.
struct Seen {
    wire::EthernetHeader ethernet{};
    std::optional<wire::ArpPacket> arp;
    IpAddress source;
    IpAddress destination;
    std::uint8_t protocol = 0;
    /// Behind the IP header.
    Packet transport;
    /// The transport checksum is right.
    bool intact = false;

    [[nodiscard]] wire::TcpHeader tcp() const { return read_value<wire::TcpHeader>(transport).value(); }
    [[nodiscard]] wire::UdpHeader udp() const { return read_value<wire::UdpHeader>(transport).value(); }
    [[nodiscard]] std::uint8_t icmp_type() const { return std::to_integer<std::uint8_t>(transport.at(0)); }
    [[nodiscard]] Packet payload(std::size_t header) const {
        return {transport.begin() + static_cast<std::ptrdiff_t>(header), transport.end()};
    }
    [[nodiscard]] Packet tcp_payload() const { return payload((tcp().data_offset >> 4U) * std::size_t{4}); }
};

inline Seen look_at(Bytes frame) {
    Seen seen;
    seen.ethernet = read_value<wire::EthernetHeader>(frame).value();
    const Bytes body = frame.subspan(sizeof seen.ethernet);
    Bytes addresses;
    Bytes transport;
    if (seen.ethernet.ether_type.get() == wire::kEtherTypeArp) {
        seen.arp = read_value<wire::ArpPacket>(body).value();
        return seen;
    }
    if (seen.ethernet.ether_type.get() == wire::kEtherTypeIpv4) {
        const auto header = read_value<wire::Ipv4Header>(body).value();
        seen.source = IpAddress::v4(header.source.get());
        seen.destination = IpAddress::v4(header.destination.get());
        seen.protocol = header.protocol;
        addresses = body.subspan(12, 8);
        transport = body.subspan(sizeof header, header.total_length.get() - sizeof header);
    } else {
        const auto header = read_value<wire::Ipv6Header>(body).value();
        seen.source = IpAddress::v6(header.source);
        seen.destination = IpAddress::v6(header.destination);
        seen.protocol = header.next_header;
        addresses = body.subspan(8, 32);
        transport = body.subspan(sizeof header, header.payload_length.get());
    }
    const std::uint16_t pseudo =
        seen.protocol == wire::kIpProtocolIcmp
            ? 0
            : pseudo_header_sum(addresses, seen.protocol, static_cast<std::uint32_t>(transport.size()));
    seen.intact = ones_complement_sum(transport, pseudo) == 0xffff;
    seen.transport.assign(transport.begin(), transport.end());
    return seen;
}

/// The guest's place on the segment: keeps what arrives.
class Peer final : public FrameSink {
  public:
    explicit Peer(FramePort& port) : port_(port) { port_.connect(this); }

    void transmit(const Frame& frame) override {
        Packet bytes(frame.data.bytes());
        mem::copy(bytes, frame.data);
        frames.push_back(std::move(bytes));
    }
    [[nodiscard]] std::size_t room() const override { return left; }

    void send(Packet packet) {
        mem::SpanList data;
        data.add(packet.data(), packet.size());
        port_.transmit({.data = data, .insert_vlan = {}, .checksum = {}, .segmentation = {}});
    }
    /// What has arrived since.
    std::vector<Seen> take() {
        std::vector<Seen> seen;
        for (const Packet& frame : frames) {
            seen.push_back(look_at(frame));
        }
        frames.clear();
        return seen;
    }

    std::vector<Packet> frames;
    std::size_t left = SIZE_MAX;

  private:
    FramePort& port_;
};

/// A segment with the peer, a clock that stands still, and the stack.
struct World {
    FakeClock clock;
    EventLoop loop{clock};
    Bridge bridge{&clock};
    FramePort peer_port{bridge, "peer"};
    FramePort host_port{bridge, "host"};
    Peer peer{peer_port};
    Counters counters;
    Limits limits;
    Stack stack{loop, counters, log::Logger(log::null_sink(), "stack"), limits};

    explicit World(const Limits& limits_in = {}) : limits(limits_in) {}

    void settle() {
        while (stack.step()) {
        }
    }
    void pass(Nanoseconds time) {
        constexpr Nanoseconds kStep = 50'000'000;
        for (Nanoseconds done = 0; done < time; done += kStep) {
            clock.advance(kStep);
            loop.run_once(false);
            settle();
        }
    }
    /// Sends and returns what comes back.
    std::vector<Seen> ask(Packet packet) {
        peer.take();
        peer.send(std::move(packet));
        settle();
        return peer.take();
    }
};

}  // namespace ernic::net::stack::test
