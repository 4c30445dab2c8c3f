// SPDX-License-Identifier: MIT
#include "net/stack/stack.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "net/stack/host.hpp"
#include "net/stack/tcp.hpp"
#include "net/stack/test_support.hpp"
#include "net/stack/udp_socket.hpp"

namespace ernic::net::stack {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the language of these tests

constexpr wire::MacAddress kOtherMac{{2, 0, 0, 0, 0, 3}};
constexpr IpAddress kOther4 = IpAddress::v4(0x0a000003);
constexpr IpAddress kOther6 = IpAddress::v6({0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3});

HostConfig config(const wire::MacAddress& mac, const IpAddress& v4, const IpAddress& v6) {
    return {
        .mac = mac, .ipv4 = IpPrefix{v4, 24}, .ipv4_gateway = {}, .ipv6 = {IpPrefix{v6, 64}}, .mtu = 1500};
}

class TwoHosts : public ::testing::Test {
  protected:
    TwoHosts() {
        for (const Addressing& to : {first(), second()}) {
            world.ask(arp(to, wire::kArpRequest));
        }
        for (const Addressing& to : {first6(), second6()}) {
            world.ask(solicitation(to, to.destination));
        }
        world.peer.take();
    }
    static Addressing first() { return {}; }
    static Addressing second() { return {.destination_mac = kOtherMac, .destination = kOther4}; }
    static Addressing first6() { return {.source = kPeer6, .destination = kHost6}; }
    static Addressing second6() {
        return {.destination_mac = kOtherMac, .source = kPeer6, .destination = kOther6};
    }

    World world;
    FramePort other_port{world.bridge, "other"};
    Host host{world.stack, world.host_port, config(kHostMac, kHost4, kHost6)};
    Host other{world.stack, other_port, config(kOtherMac, kOther4, kOther6)};
};

TEST_F(TwoHosts, EachAnswersForItselfWithItsOwnAddresses) {
    for (const Addressing& to : {first(), second(), first6(), second6()}) {
        SCOPED_TRACE(to.destination.to_string());
        const std::uint16_t port = 4242;  // where nobody listens
        TcpFields syn;
        syn.destination_port = port;
        syn.flags = wire::kTcpSyn;
        for (Packet packet : {icmp_echo(to, text("x")), udp(to, 5000, port, text("x")), tcp(to, syn)}) {
            const auto answer = world.ask(std::move(packet));
            ASSERT_EQ(answer.size(), 1U);
            EXPECT_EQ(answer[0].ethernet.source, to.destination_mac);
            EXPECT_EQ(answer[0].source, to.destination);
            EXPECT_EQ(answer[0].destination, to.source);
            EXPECT_TRUE(answer[0].intact);
        }
    }
    EXPECT_EQ(world.counters.not_ours.value(), 0U);
}

TEST_F(TwoHosts, NeitherTakesWhatIsForTheOther) {
    Addressing crossed = first();
    crossed.destination = kOther4;
    EXPECT_TRUE(world.ask(icmp_echo(crossed, text("x"))).empty());
    Addressing crossed6 = first6();
    crossed6.destination = kOther6;
    EXPECT_TRUE(world.ask(icmp_echo(crossed6, text("x"))).empty());
    Addressing question = first();
    question.destination = kOther4;
    EXPECT_TRUE(world.ask(arp(question, wire::kArpRequest)).empty()) << "asked by unicast of the wrong one";
}

/// lwIP would want to loop the answer back, by a thread that does not run, and abort().
TEST_F(TwoHosts, APacketInTheNameOfTheOtherIsDropped) {
    for (Addressing to : {first(), first6()}) {
        to.source = to.source.is_v4() ? kOther4 : kOther6;
        TcpFields syn{.destination_port = 4242, .flags = wire::kTcpSyn};
        EXPECT_TRUE(world.ask(tcp(to, syn)).empty());
        EXPECT_TRUE(world.ask(udp(to, 5000, 4242, text("x"))).empty());
        EXPECT_TRUE(world.ask(icmp_echo(to, text("x"))).empty());
    }
    EXPECT_EQ(world.counters.unwanted.value(), 6U);
}

TEST_F(TwoHosts, MayListenOnTheSamePort) {
    int here = 0;
    int there = 0;
    UdpSocket a(host, 7000, [&](const Datagram&) { ++here; });
    UdpSocket b(other, 7000, [&](const Datagram& datagram) {
        ++there;
        EXPECT_EQ(datagram.to, kOther4);
        EXPECT_EQ(datagram.from, (Endpoint{kPeer4, 5000}));
    });
    world.ask(udp(second(), 5000, 7000, text("x")));
    EXPECT_EQ(here, 0);
    EXPECT_EQ(there, 1);
    std::vector<std::unique_ptr<TcpConnection>> connections;
    const auto keep = [&](auto connection) { connections.push_back(std::move(connection)); };
    const TcpListener c(host, 7000, keep);
    const TcpListener d(other, 7000, keep);
    for (const Addressing& to : {first(), second(), first6(), second6()}) {
        TcpFields fields{.destination_port = 7000, .sequence = 1, .flags = wire::kTcpSyn};
        const auto answer = world.ask(tcp(to, fields));
        ASSERT_EQ(answer.size(), 1U);
        fields.sequence = 2;
        fields.acknowledgement = answer[0].tcp().sequence.get() + 1;
        fields.flags = wire::kTcpAck;
        world.ask(tcp(to, fields));
        ASSERT_FALSE(connections.empty());
        EXPECT_EQ(connections.back()->local(), (Endpoint{to.destination, 7000}));
        EXPECT_EQ(connections.back()->peer(), (Endpoint{to.source, 40000}));
    }
    EXPECT_EQ(connections.size(), 4U);
}

TEST_F(TwoHosts, ADatagramMayComeInTenFragments) {
    Packet got;
    UdpSocket socket(host, 7000, [&](const Datagram& datagram) {
        got.assign(datagram.data.begin(), datagram.data.end());
    });
    const Packet data(10 * 1480 - 8, std::byte{0x33});
    const Packet whole = udp(first(), 5000, 7000, data);
    const Bytes body = Bytes(whole).subspan(34);
    for (std::size_t at = 0; at < body.size(); at += 1480) {
        const Bytes part = body.subspan(at, std::min<std::size_t>(1480, body.size() - at));
        Packet fragment = join(Bytes(whole).first(34), part);
        auto header = *read_value<wire::Ipv4Header>(Bytes(fragment).subspan(14));
        header.total_length.set(static_cast<std::uint16_t>(20 + part.size()));
        header.flags_fragment.set(
            static_cast<std::uint16_t>(at / 8 | (at + 1480 < body.size() ? 0x2000U : 0U)));
        header.checksum.set(0);
        finish(header);
        std::memcpy(fragment.data() + 14, &header, sizeof header);
        world.ask(std::move(fragment));
    }
    EXPECT_EQ(got, data);
    EXPECT_EQ(world.stack.memory_in_use(), 0U);
}

/// Reads nothing.
class Deaf final : public TcpHandler {
  public:
    std::size_t received(Bytes data) override {
        offered += data.size();
        return 0;
    }
    std::size_t offered = 0;
};

class Bounded : public ::testing::Test {
  protected:
    Bounded() { world.ask(arp({}, wire::kArpRequest)); }

    /// A connection from `port`; the sequence number of the peer's next byte is 2.
    std::optional<TcpFields> connect(std::uint16_t port) {
        TcpFields fields{
            .source_port = port, .destination_port = 7000, .sequence = 1, .flags = wire::kTcpSyn};
        const auto answer = world.ask(tcp({}, fields));
        if (answer.empty()) {
            return std::nullopt;
        }
        fields.sequence = 2;
        fields.acknowledgement = answer[0].tcp().sequence.get() + 1;
        fields.flags = wire::kTcpAck;
        world.ask(tcp({}, fields));
        return fields;
    }

    World world{Limits{.memory = std::size_t{1} << 20U}};
    Host host{world.stack, world.host_port, config(kHostMac, kHost4, kHost6)};
    std::vector<std::unique_ptr<TcpConnection>> connections;
    TcpListener listener{host, 7000,
                         [this](auto connection) { connections.push_back(std::move(connection)); }};
};

TEST_F(Bounded, ConnectionsAreNotAnsweredBeyondTheMemory) {
    const std::size_t most = world.limits.connections();
    ASSERT_EQ(most, 3U);
    for (std::uint16_t i = 0; i < most; ++i) {
        EXPECT_TRUE(connect(static_cast<std::uint16_t>(40000 + i)));
    }
    EXPECT_FALSE(connect(41000));
    EXPECT_EQ(world.counters.connections_refused.value(), 1U);
    connections.front()->abort();
    EXPECT_TRUE(connect(41001));
}

TEST_F(Bounded, FramesThatNobodyReadsAreBounded) {
    Deaf deaf;
    auto fields = *connect(40000);
    connections.at(0)->set_handler(&deaf);
    // One byte a segment costs the most memory: hundreds of bytes for each.
    for (std::uint32_t i = 0; i < 5000; ++i) {
        fields.sequence = 2 + i;
        world.peer.send(tcp({}, fields, text("x")));
        world.stack.step();
    }
    EXPECT_GT(deaf.offered, 0U);
    // The same with gaps.
    fields = *connect(40001);
    for (std::uint32_t i = 0; i < 5000; ++i) {
        fields.sequence = 3 + 2 * i;
        world.peer.send(tcp({}, fields, text("x")));
        world.stack.step();
    }
    EXPECT_GT(world.counters.no_memory.value(), 0U);
    EXPECT_LE(world.stack.memory_in_use(), world.limits.frame_bytes());
    EXPECT_GT(world.stack.memory_in_use(), world.limits.frame_bytes() / 2);
    connections.clear();
    world.settle();
    EXPECT_LT(world.stack.memory_in_use(), 1000U);
}

TEST_F(Bounded, DataBeyondTheWindowIsDropped) {
    Deaf deaf;
    auto fields = *connect(40000);
    connections.at(0)->set_handler(&deaf);
    const std::uint32_t window = 65535;
    // The first byte is missing; this reaches one beyond what the host has said it takes.
    fields.sequence = 2 + window - 100;
    world.ask(tcp({}, fields, Packet(101, std::byte{1})));
    EXPECT_EQ(world.counters.unwanted.value(), 1U);
    // Up to the last byte is all right, but a FIN would count, too.
    fields.flags = wire::kTcpAck | wire::kTcpFin;
    world.ask(tcp({}, fields, Packet(100, std::byte{1})));
    EXPECT_EQ(world.counters.unwanted.value(), 2U);
    fields.flags = wire::kTcpAck;
    world.ask(tcp({}, fields, Packet(100, std::byte{1})));
    EXPECT_EQ(world.counters.unwanted.value(), 2U);
    // The gap is filled.
    for (std::uint32_t at = 0; at < window; at += 1000) {
        fields.sequence = 2 + at;
        world.ask(tcp({}, fields, Packet(std::min(1000U, window - at), std::byte{1})));
    }
    EXPECT_EQ(world.counters.unwanted.value(), 2U);
    // Nothing of it has been read, so the window is closed: in order, but beyond it.
    fields.sequence = 2 + window;
    world.ask(tcp({}, fields, text("x")));
    EXPECT_EQ(connections.size(), 1U);
}

TEST_F(Bounded, WhatAReaderLeavesComesAgain) {
    struct Picky final : TcpHandler {
        std::size_t received(Bytes data) override {
            ++calls;
            const std::size_t taken = std::min(left, data.size());
            left -= taken;
            got.insert(got.end(), data.begin(), data.begin() + static_cast<std::ptrdiff_t>(taken));
            return taken;
        }
        std::size_t left = 3;
        int calls = 0;
        Packet got;
    };
    Picky picky;
    auto fields = *connect(40000);
    connections.at(0)->set_handler(&picky);
    world.ask(tcp({}, fields, text("hello world")));
    EXPECT_EQ(picky.got, text("hel"));
    EXPECT_EQ(picky.calls, 1);
    picky.left = 100;
    connections.at(0)->resume();
    world.settle();
    EXPECT_EQ(picky.got, text("hello world"));
}

TEST_F(Bounded, AConnectionMayBeDestroyedWhileItIsBeingRead) {
    struct Ending final : TcpHandler {
        std::size_t received(Bytes data) override {
            connection->reset();
            return data.size();
        }
        std::unique_ptr<TcpConnection>* connection = nullptr;
    };
    Ending ending;
    auto fields = *connect(40000);
    ending.connection = &connections.at(0);
    connections.at(0)->set_handler(&ending);
    world.ask(tcp({}, fields, text("hello")));
    EXPECT_EQ(connections.at(0), nullptr);
}

TEST_F(Bounded, ClosedConnectionsDoNotPileUp) {
    for (std::uint16_t i = 0; i < 600; ++i) {
        auto fields = *connect(static_cast<std::uint16_t>(20000 + i));
        connections.back().reset();  // we close first, so that TIME-WAIT is ours
        fields.acknowledgement += 1;
        fields.flags = wire::kTcpAck | wire::kTcpFin;
        world.ask(tcp({}, fields));
        connections.clear();
    }
    EXPECT_EQ(world.counters.connections_refused.value(), 0U);
    EXPECT_FALSE(world.stack.timer_armed()) << "waiting for stray segments needs no timer";
}

TEST_F(Bounded, ANeighbourIsAskedForAgainInTheMiddleOfALateRetransmission) {
    // lwIP's timers must not run inside lwIP. It asks when an entry is forgotten, after 300 s.
    world.pass(285'000'000'000);
    ASSERT_TRUE(connect(40000));
    ASSERT_EQ(connections.at(0)->write(Packet(3000)), 3000U);
    std::size_t questions = 0;
    std::size_t repeated = 0;
    for (int second = 0; second < 30; ++second) {
        world.clock.advance(1'000'000'000);  // four ticks of the timer at once
        world.loop.run_once(false);
        world.settle();
        for (const Seen& seen : world.peer.take()) {
            questions += seen.arp && seen.arp->operation.get() == wire::kArpRequest ? 1 : 0;
            repeated += !seen.arp && !seen.tcp_payload().empty() ? 1 : 0;
        }
    }
    EXPECT_GT(questions, 0U);
    EXPECT_GT(repeated, 2U);
}

TEST(Stack, MayBeMadeAgain) {
    for (int i = 0; i < 3; ++i) {
        World world;
        Host host(world.stack, world.host_port, config(kHostMac, kHost4, kHost6));
        world.ask(arp({}, wire::kArpRequest));
        EXPECT_EQ(world.ask(icmp_echo({}, text("x"))).size(), 1U);
    }
}

}  // namespace
}  // namespace ernic::net::stack
