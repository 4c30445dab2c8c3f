// SPDX-License-Identifier: MIT
#include "services/echo.hpp"

#include <gtest/gtest.h>

#include "net/stack/test_support.hpp"

namespace ernic::services {
namespace {

using namespace net::stack::test;  // NOLINT(google-build-using-namespace): the language of these tests
using net::IpAddress;
using net::IpPrefix;
using net::stack::HostConfig;

constexpr Nanoseconds kSecond = 1'000'000'000;
constexpr Addressing kTo{};

HostConfig config(std::uint16_t mtu = 1500) {
    return {.mac = kHostMac,
            .ipv4 = IpPrefix{kHost4, 24},
            .ipv4_gateway = {},
            .ipv6 = {IpPrefix{kHost6, 64}},
            .mtu = mtu};
}

Addressing v6() {
    return {.source = kPeer6, .destination = kHost6};
}

/// A client's half of a TCP connection, in frames. Acknowledges everything.
class Client {
  public:
    Client(World& world, std::uint16_t port, Addressing to = kTo, std::uint16_t own_port = 40000)
        : world_(world), to_(to), fields_{.source_port = own_port, .destination_port = port} {}

    bool connect() {
        fields_.sequence = 1000;
        fields_.flags = wire::kTcpSyn;
        const auto answer = world_.ask(tcp(to_, fields_));
        if (answer.size() != 1 || answer[0].tcp().flags != (wire::kTcpSyn | wire::kTcpAck)) {
            return false;
        }
        ++fields_.sequence;
        fields_.acknowledgement = answer[0].tcp().sequence.get() + 1;
        take(world_.ask(make(wire::kTcpAck)));
        return true;
    }
    Packet make(std::uint8_t flags, const Packet& data = {}) {
        fields_.flags = flags;
        return tcp(to_, fields_, data);
    }
    void send(const Packet& data, std::uint8_t flags = wire::kTcpAck | wire::kTcpPush) {
        Packet frame = make(flags, data);
        fields_.sequence += static_cast<std::uint32_t>(data.size() + ((flags & wire::kTcpFin) != 0 ? 1 : 0));
        take(world_.ask(std::move(frame)));
        acknowledge();
    }
    /// Until nothing new comes.
    void acknowledge() {
        while (dirty_) {
            dirty_ = false;
            take(world_.ask(make(wire::kTcpAck)));
        }
    }
    void take(const std::vector<Seen>& frames) {
        for (const Seen& seen : frames) {
            if (seen.protocol != wire::kIpProtocolTcp) {
                continue;  // asks for our MAC address
            }
            EXPECT_TRUE(seen.intact);
            const auto header = seen.tcp();
            const Packet data = seen.tcp_payload();
            if (header.sequence.get() == fields_.acknowledgement) {
                received.insert(received.end(), data.begin(), data.end());
                fields_.acknowledgement += static_cast<std::uint32_t>(data.size());
                dirty_ = dirty_ || !data.empty();
                if ((header.flags & wire::kTcpFin) != 0) {
                    ++fields_.acknowledgement;
                    finished = dirty_ = true;
                }
            }
            acknowledged = header.acknowledgement.get() == fields_.sequence;
            reset = reset || (header.flags & 0x04U) != 0;
        }
    }
    [[nodiscard]] const TcpFields& fields() const { return fields_; }

    Packet received;
    bool finished = false;
    bool acknowledged = false;
    bool reset = false;

  private:
    World& world_;
    Addressing to_;
    TcpFields fields_;
    bool dirty_ = false;
};

class EchoTest : public ::testing::Test {
  protected:
    /// Both sides learn each other's MAC address.
    void meet() {
        world.ask(arp(kTo, wire::kArpRequest));
        world.ask(solicitation(v6(), kHost6));
        world.ask(icmp_echo(v6(), text("x")));
        for (const Seen& seen : world.peer.take()) {
            (void)seen;
        }
    }
    void SetUp() override { world.peer.take(); }

    World world;
    EchoCounters counters;
    std::optional<Echo> echo{std::in_place, world.stack, world.host_port, config(), counters};
};

TEST_F(EchoTest, AnswersArpForItsOwnAddressOnly) {
    Addressing broadcast = kTo;
    broadcast.destination_mac = wire::kBroadcastMac;
    const auto answer = world.ask(arp(broadcast, wire::kArpRequest));
    ASSERT_EQ(answer.size(), 1U);
    ASSERT_TRUE(answer[0].arp);
    EXPECT_EQ(answer[0].arp->operation.get(), wire::kArpReply);
    EXPECT_EQ(answer[0].arp->sender_mac, kHostMac);
    EXPECT_EQ(answer[0].arp->sender_ip.get(), kHost4.value_v4());
    broadcast.destination = IpAddress::v4(kHost4.value_v4() + 1);
    EXPECT_TRUE(world.ask(arp(broadcast, wire::kArpRequest)).empty());
    EXPECT_EQ(world.counters.not_for_us.value(), 1U);
}

TEST_F(EchoTest, AnswersPingWithTheSameBytes) {
    meet();
    const Packet data(1472, std::byte{0x5a});
    const auto answer = world.ask(icmp_echo(kTo, data));
    ASSERT_EQ(answer.size(), 1U);
    EXPECT_EQ(answer[0].icmp_type(), wire::kIcmpEchoReply);
    EXPECT_TRUE(answer[0].intact);
    EXPECT_EQ(answer[0].payload(sizeof(wire::IcmpHeader)), data);
    EXPECT_EQ(answer[0].ethernet.destination, kPeerMac);
    EXPECT_EQ(answer[0].source, kHost4);
}

TEST_F(EchoTest, AnswersNeighbourSolicitationAndPing6) {
    const auto advertisement = world.ask(solicitation(v6(), kHost6));
    ASSERT_EQ(advertisement.size(), 1U);
    EXPECT_EQ(advertisement[0].icmp_type(), wire::kIcmpv6NeighbourAdvertisement);
    EXPECT_TRUE(advertisement[0].intact);
    EXPECT_TRUE(world.ask(solicitation(v6(), *IpAddress::parse("fd00::3"))).empty());
    const auto answer = world.ask(icmp_echo(v6(), text("hello")));
    ASSERT_EQ(answer.size(), 1U);
    EXPECT_EQ(answer[0].icmp_type(), wire::kIcmpv6EchoReply);
    EXPECT_EQ(answer[0].payload(sizeof(wire::IcmpHeader)), text("hello"));
    EXPECT_TRUE(answer[0].intact);
}

TEST_F(EchoTest, JumboPingFitsTheMtu) {
    echo.reset();
    echo.emplace(world.stack, world.host_port, config(9000), counters);
    meet();
    const auto answer = world.ask(icmp_echo(kTo, Packet(8972, std::byte{1})));
    ASSERT_EQ(answer.size(), 1U);
    EXPECT_EQ(answer[0].transport.size(), 8980U);
    EXPECT_EQ(world.ask(icmp_echo(v6(), Packet(8952, std::byte{1}))).size(), 1U);
}

TEST_F(EchoTest, EchoesDatagrams) {
    meet();
    const auto answer = world.ask(udp(kTo, 5000, 7, text("words")));
    ASSERT_EQ(answer.size(), 1U);
    EXPECT_TRUE(answer[0].intact);
    EXPECT_EQ(answer[0].udp().source_port.get(), 7U);
    EXPECT_EQ(answer[0].udp().destination_port.get(), 5000U);
    EXPECT_EQ(answer[0].payload(sizeof(wire::UdpHeader)), text("words"));
    EXPECT_EQ(world.ask(udp(v6(), 5000, 7, text("words"))).size(), 1U);
    EXPECT_TRUE(world.ask(udp(kTo, 5000, 9, text("words"))).empty());
    EXPECT_EQ(counters.datagrams.value(), 3U);
}

TEST_F(EchoTest, DoesNotPlayBallWithAnotherEcho) {
    meet();
    EXPECT_TRUE(world.ask(udp(kTo, 7, 7, text("words"))).empty());
    EXPECT_EQ(counters.refused_datagrams.value(), 1U);
}

TEST_F(EchoTest, EchoesAStream) {
    meet();
    for (const Addressing& to : {kTo, v6()}) {
        Client client(world, 7, to);
        ASSERT_TRUE(client.connect());
        Packet all;
        for (unsigned i = 0; i < 100; ++i) {
            const Packet part(1 + i * 14, static_cast<std::byte>(i));
            client.send(part);
            all.insert(all.end(), part.begin(), part.end());
        }
        EXPECT_EQ(client.received, all);
        client.send({}, wire::kTcpFin | wire::kTcpAck);
        EXPECT_TRUE(client.finished);
        EXPECT_FALSE(client.reset);
    }
    EXPECT_EQ(counters.connections.value(), 2U);
    EXPECT_EQ(world.counters.connections_lost.value(), 0U);
}

TEST_F(EchoTest, TakesASuperFrameWholeAndAnswersInSegments) {
    meet();
    Client client(world, 7);
    ASSERT_TRUE(client.connect());
    const Packet frame = client.make(wire::kTcpAck | wire::kTcpPush);
    Packet header(frame.begin(), frame.begin() + 54);
    Packet payload(30000);
    for (std::size_t i = 0; i < payload.size(); ++i) {
        payload[i] = static_cast<std::byte>(i * 7 >> 3U);
    }
    mem::SpanList data;
    data.add(payload.data(), payload.size());
    world.peer_port.transmit({.data = data,
                              .insert_vlan = {},
                              .checksum = {},
                              .segmentation = net::Frame::Segmentation{
                                  .header = header, .segment_size = 1460, .first_segment = 0, .last = true}});
    world.settle();
    const auto answer = world.peer.take();
    ASSERT_FALSE(answer.empty());
    EXPECT_EQ(answer.back().tcp().acknowledgement.get(), client.fields().sequence + 30000);
    client.take(answer);
    client.acknowledge();
    for (const Seen& seen : answer) {
        EXPECT_LE(seen.tcp_payload().size(), 1460U);
    }
    world.pass(kSecond);
    client.take(world.peer.take());
    ASSERT_GE(payload.size(), client.received.size());
    EXPECT_TRUE(std::equal(client.received.begin(), client.received.end(), payload.begin()));
    EXPECT_EQ(world.counters.malformed.value(), 0U);
    EXPECT_GT(client.received.size(), 2000U);
}

TEST_F(EchoTest, UnfinishedChecksumsAreFinished) {
    meet();
    Packet frame = udp(kTo, 5000, 7, text("words"));
    // As a sender with checksum offload leaves it: the sum of the pseudo header.
    const le16 pseudo(net::pseudo_header_sum(join(kPeer4.bytes(), kHost4.bytes()), wire::kIpProtocolUdp, 13));
    std::memcpy(frame.data() + 40, &pseudo, sizeof pseudo);
    mem::SpanList data;
    data.add(frame.data(), frame.size());
    world.peer.take();
    world.peer_port.transmit({.data = data,
                              .insert_vlan = {},
                              .checksum = net::Frame::Checksum{.start = 34, .offset = 6},
                              .segmentation = {}});
    world.settle();
    EXPECT_EQ(world.peer.take().size(), 1U);
}

TEST_F(EchoTest, SourceSendsThePattern) {
    meet();
    Client client(world, 19);
    ASSERT_TRUE(client.connect());
    while (client.received.size() < 100'000) {
        const std::size_t before = client.received.size();
        client.take(world.ask(client.make(wire::kTcpAck)));
        ASSERT_GT(client.received.size(), before);
    }
    const auto& pattern = chargen_pattern();
    EXPECT_EQ(pattern.size(), 7030U);
    for (std::size_t i = 0; i < client.received.size(); ++i) {
        ASSERT_EQ(client.received[i], pattern[i % pattern.size()]) << i;
    }
    world.ask(client.make(0x04 | wire::kTcpAck));
    EXPECT_FALSE(world.stack.timer_armed());
}

TEST_F(EchoTest, DiscardTakesAndSaysNothing) {
    meet();
    Client client(world, 9);
    ASSERT_TRUE(client.connect());
    for (int i = 0; i < 100; ++i) {
        client.send(Packet(1400, std::byte{1}));
    }
    EXPECT_TRUE(client.received.empty());
    EXPECT_EQ(counters.stream_bytes.value(), 140'000U);
}

TEST_F(EchoTest, LostSegmentsAreSentAgain) {
    meet();
    Client client(world, 7);
    ASSERT_TRUE(client.connect());
    client.send(text("one"));
    world.peer.send(client.make(wire::kTcpAck | wire::kTcpPush, text("two")));
    world.settle();
    world.peer.frames.clear();  // the echo is lost
    world.pass(5 * kSecond);
    bool again = false;
    for (const Seen& seen : world.peer.take()) {
        again = again || (seen.protocol == wire::kIpProtocolTcp && seen.tcp_payload() == text("two"));
    }
    EXPECT_TRUE(again);
}

TEST_F(EchoTest, IdleHasNoTimer) {
    EXPECT_FALSE(world.stack.timer_armed());
    meet();
    world.ask(icmp_echo(kTo, text("x")));
    world.ask(udp(kTo, 5000, 7, text("x")));
    EXPECT_FALSE(world.stack.timer_armed()) << "answers to known neighbours need none";
    Client client(world, 7);
    ASSERT_TRUE(client.connect());
    EXPECT_TRUE(world.stack.timer_armed());
    client.send(text("x"));
    client.send({}, wire::kTcpFin | wire::kTcpAck);
    EXPECT_TRUE(client.finished);
    EXPECT_FALSE(world.stack.timer_armed());
    world.clock.advance(200 * kSecond);
    EXPECT_TRUE(Client(world, 7, kTo, 40001).connect());
    world.pass(60 * kSecond);
    ASSERT_FALSE(world.stack.timer_armed());
}

TEST_F(EchoTest, WhatHasAgedWithoutATimerIsMadeUpFor) {
    meet();
    EXPECT_EQ(world.ask(icmp_echo(kTo, text("x"))).size(), 1U);
    world.clock.advance(3600 * kSecond);
    const auto question = world.ask(icmp_echo(kTo, text("x")));
    ASSERT_EQ(question.size(), 1U);
    ASSERT_TRUE(question[0].arp) << "the MAC address of an hour ago is not believed";
    EXPECT_EQ(question[0].arp->target_ip.get(), kPeer4.value_v4());
    EXPECT_EQ(world.ask(arp(kTo, wire::kArpReply)).size(), 1U) << "the answer that waited";
}

TEST_F(EchoTest, ADeadPeerIsNoticedAndTheTimerStops) {
    meet();
    Client client(world, 7);
    ASSERT_TRUE(client.connect());
    world.pass(60 * kSecond);
    EXPECT_FALSE(world.stack.timer_armed());
    EXPECT_EQ(world.counters.connections_lost.value(), 1U);
}

TEST_F(EchoTest, ForAnUnknownNeighbourItLooksAndGivesUp) {
    Addressing stranger = v6();
    stranger.source = *IpAddress::parse("fd00::77");
    const auto question = world.ask(icmp_echo(stranger, text("x")));
    ASSERT_EQ(question.size(), 1U);
    EXPECT_EQ(question[0].icmp_type(), wire::kIcmpv6NeighbourSolicitation);
    EXPECT_TRUE(world.stack.timer_armed());
    for (int i = 0; i < 100; ++i) {
        world.ask(icmp_echo(stranger, text("x")));
    }
    EXPECT_GT(world.counters.unresolved.value(), 80U);
    world.pass(10 * kSecond);
    EXPECT_FALSE(world.stack.timer_armed());
}

TEST_F(EchoTest, NeverForwardsAndNeverAnswersForOthers) {
    meet();
    Addressing elsewhere = kTo;
    for (const char* address :
         {"10.0.0.3", "10.0.1.1", "8.8.8.8", "10.0.0.255", "255.255.255.255", "224.0.0.1"}) {
        elsewhere.destination = *IpAddress::parse(address);
        EXPECT_TRUE(world.ask(icmp_echo(elsewhere, text("x"))).empty()) << address;
    }
    Addressing elsewhere6 = v6();
    for (const char* address : {"fd00::3", "2001:db8::1", "ff02::1"}) {
        elsewhere6.destination = *IpAddress::parse(address);
        EXPECT_TRUE(world.ask(icmp_echo(elsewhere6, text("x"))).empty()) << address;
    }
    Addressing other_mac = kTo;
    other_mac.destination_mac = wire::MacAddress{{2, 0, 0, 0, 0, 9}};
    EXPECT_TRUE(world.ask(icmp_echo(other_mac, text("x"))).empty());
    EXPECT_EQ(world.counters.frames_taken.value(), 3U) << "only meet() reached the stack";
}

TEST_F(EchoTest, SpoofedSourcesAreDropped) {
    meet();
    Addressing spoofed = kTo;
    for (const char* address :
         {"10.0.0.2", "127.0.0.1", "0.0.0.0", "255.255.255.255", "224.0.0.5", "10.0.0.255"}) {
        spoofed.source = *IpAddress::parse(address);
        EXPECT_TRUE(world.ask(icmp_echo(spoofed, text("x"))).empty()) << address;
    }
    EXPECT_EQ(world.counters.unwanted.value(), 6U);
}

TEST_F(EchoTest, SlowReceiversArePausedFor) {
    meet();
    world.peer.left = 0;
    EXPECT_TRUE(world.ask(icmp_echo(kTo, text("x"))).empty());
    EXPECT_EQ(world.counters.pauses.value(), 1U);
    world.peer.left = SIZE_MAX;
    world.peer_port.made_room();
    world.settle();
    EXPECT_EQ(world.peer.take().size(), 1U);
    world.peer.left = 0;
    EXPECT_TRUE(world.ask(icmp_echo(kTo, text("x"))).empty());
    world.pass(kSecond);
    EXPECT_EQ(world.peer.take().size(), 1U) << "after a while it is sent anyway";
}

}  // namespace
}  // namespace ernic::services
