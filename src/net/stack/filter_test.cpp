// SPDX-License-Identifier: MIT
#include "net/stack/filter.hpp"

#include <gtest/gtest.h>

#include "net/stack/test_support.hpp"

namespace ernic::net::stack {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the language of these tests

const HostAddresses kHost{
    .mac = kHostMac, .ipv4 = IpPrefix{kHost4, 24}, .ipv6 = {link_local_of(kHostMac), kHost6}};
constexpr Addressing kTo4{};
constexpr Addressing kTo6{.source = kPeer6, .destination = kHost6};

Verdict verdict(const Packet& frame) {
    return classify(frame, frame.size(), kHost).verdict;
}

TEST(Filter, TakesWhatAHostNeeds) {
    for (const Addressing& to : {kTo4, kTo6}) {
        EXPECT_EQ(verdict(icmp_echo(to, text("x"))), Verdict::Take);
        EXPECT_EQ(verdict(udp(to, 1, 2, text("x"))), Verdict::Take);
        EXPECT_EQ(verdict(tcp(to, {.flags = wire::kTcpAck})), Verdict::Take);
    }
    EXPECT_EQ(verdict(arp(kTo4, wire::kArpRequest)), Verdict::Take);
    EXPECT_EQ(verdict(arp(kTo4, wire::kArpReply)), Verdict::Take);
    EXPECT_EQ(verdict(solicitation(kTo6, kHost6)), Verdict::Take);
    Addressing duplicate = kTo6;  // a peer looks whether it may use our address
    duplicate.source = IpAddress::v6({});
    EXPECT_EQ(verdict(solicitation(duplicate, kHost6)), Verdict::Take);
}

TEST(Filter, TellsWhoOpensAConnection) {
    const auto opens = [](std::uint8_t flags) {
        TcpFields fields;
        fields.flags = flags;
        const Packet frame = tcp(kTo4, fields);
        return classify(frame, frame.size(), kHost).opens_connection;
    };
    EXPECT_TRUE(opens(wire::kTcpSyn));
    EXPECT_FALSE(opens(wire::kTcpSyn | wire::kTcpAck));
    EXPECT_FALSE(opens(wire::kTcpAck));
}

TEST(Filter, EveryTruncationIsRefused) {
    const Packet frames[] = {icmp_echo(kTo4, text("hello")), udp(kTo6, 1, 2, text("hello")),  // NOLINT
                             tcp(kTo4, {}), arp(kTo4, wire::kArpRequest), solicitation(kTo6, kHost6)};
    for (const Packet& frame : frames) {
        for (std::size_t size = 0; size < frame.size(); ++size) {
            const Bytes cut = Bytes(frame).first(size);
            const Verdict got = classify(cut, size, kHost).verdict;
            EXPECT_NE(got, Verdict::Take) << size << " of " << frame.size();
        }
    }
}

TEST(Filter, OptionsAndOddProtocolsAreUnwanted) {
    Packet options = icmp_echo(kTo4, Packet(100));
    options[14] = std::byte{0x46};
    EXPECT_EQ(verdict(options), Verdict::Unwanted);
    EXPECT_EQ(verdict(ip(kTo4, 2, Packet(8), {})), Verdict::Unwanted) << "IGMP";
    EXPECT_EQ(verdict(ip(kTo4, wire::kIpProtocolIcmpv6, Packet(8), {})), Verdict::Unwanted);
    EXPECT_EQ(verdict(ip(kTo6, 43, Packet(8), {})), Verdict::Unwanted) << "routing header";
    Packet redirect = icmp_echo(kTo4, text("x"));
    redirect[34] = std::byte{5};
    EXPECT_EQ(verdict(redirect), Verdict::Unwanted);
    for (const unsigned type : {133U, 134U, 137U, 2U, 129U}) {
        Packet message = icmp_echo(kTo6, Packet(32));
        message[54] = static_cast<std::byte>(type);
        EXPECT_EQ(verdict(message), Verdict::Unwanted) << type;
    }
}

TEST(Filter, FragmentsHideNothing) {
    wire::Ipv6FragmentHeader header{};
    header.next_header = wire::kIpProtocolIcmpv6;
    const Packet advertisement = join(bytes_of(header), text(std::string("\x86\0\0\0\0\0\0\0", 8)));
    EXPECT_EQ(verdict(ip(kTo6, wire::kIpProtocolFragment, advertisement, {})), Verdict::Unwanted);
    header.next_header = 43;
    EXPECT_EQ(verdict(ip(kTo6, wire::kIpProtocolFragment, join(bytes_of(header), Packet(8)), {})),
              Verdict::Unwanted);
    header.next_header = wire::kIpProtocolUdp;
    EXPECT_EQ(verdict(ip(kTo6, wire::kIpProtocolFragment, join(bytes_of(header), Packet(8)), {})),
              Verdict::Take);
    header.next_header = wire::kIpProtocolTcp;
    EXPECT_EQ(verdict(ip(kTo6, wire::kIpProtocolFragment, join(bytes_of(header), Packet(20)), {})),
              Verdict::Unwanted);
}

TEST(Filter, TcpIsWhatClientsSpeak) {
    constexpr unsigned kFin = wire::kTcpFin;
    constexpr unsigned kSyn = wire::kTcpSyn;
    constexpr unsigned kRst = wire::kTcpRst;
    constexpr unsigned kAck = wire::kTcpAck;
    const auto of = [](unsigned flags) {
        return verdict(tcp(kTo4, {.flags = static_cast<std::uint8_t>(flags)}, text("x")));
    };
    for (const unsigned good : {kSyn, kAck, kAck | kFin, kRst, kRst | kAck}) {
        EXPECT_EQ(of(good), Verdict::Take) << good;
    }
    for (const unsigned bad : {0U, kFin, kSyn | kAck, kSyn | kFin, kSyn | kFin | kAck}) {
        EXPECT_EQ(of(bad), Verdict::Unwanted) << bad;
    }
}

TEST(Filter, OthersTrafficIsNotForUs) {
    Addressing to = kTo4;
    to.destination = IpAddress::v4(kHost4.value_v4() + 1);
    EXPECT_EQ(verdict(icmp_echo(to, text("x"))), Verdict::NotForUs);
    EXPECT_EQ(verdict(arp(to, wire::kArpRequest)), Verdict::NotForUs);
    EXPECT_EQ(verdict(solicitation(kTo6, kPeer6)), Verdict::NotForUs);
    Addressing broadcast = kTo4;
    broadcast.destination_mac = wire::kBroadcastMac;
    EXPECT_EQ(verdict(icmp_echo(broadcast, text("x"))), Verdict::NotForUs)
        << "an own address, but a broadcast frame";
    EXPECT_EQ(verdict(ethernet(kTo4, 0x88cc, Packet(50))), Verdict::NotForUs);
    Addressing ours = kTo4;
    ours.source_mac = kHostMac;
    EXPECT_EQ(verdict(icmp_echo(ours, text("x"))), Verdict::Unwanted);
}

TEST(Filter, AHostWithoutAFamilyIgnoresIt) {
    const HostAddresses only6{.mac = kHostMac, .ipv4 = {}, .ipv6 = {kHost6}};
    const HostAddresses only4{.mac = kHostMac, .ipv4 = IpPrefix{kHost4, 24}, .ipv6 = {}};
    const auto of = [](const Packet& frame, const HostAddresses& host) {
        return classify(frame, frame.size(), host).verdict;
    };
    EXPECT_EQ(of(icmp_echo(kTo4, text("x")), only6), Verdict::NotForUs);
    EXPECT_EQ(of(arp(kTo4, wire::kArpRequest), only6), Verdict::NotForUs);
    EXPECT_EQ(of(icmp_echo(kTo6, text("x")), only6), Verdict::Take);
    EXPECT_EQ(of(icmp_echo(kTo6, text("x")), only4), Verdict::NotForUs);
    EXPECT_EQ(of(solicitation(kTo6, kHost6), only4), Verdict::NotForUs);
}

}  // namespace
}  // namespace ernic::net::stack
