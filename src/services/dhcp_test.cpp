// SPDX-License-Identifier: MIT
#include "services/dhcp.hpp"

#include <gtest/gtest.h>

#include <map>

#include "net/stack/test_support.hpp"
#include "wire/dhcp.hpp"

namespace ernic::services {
namespace {

using namespace net::stack::test;  // NOLINT(google-build-using-namespace): the language of these tests
using net::IpAddress;
using wire::dhcp::MessageType;
namespace option = wire::dhcp::option;

constexpr Nanoseconds kSecond = 1'000'000'000;
constexpr IpAddress kServer = IpAddress::v4(0x0a000001);
constexpr IpAddress kFirst = IpAddress::v4(0x0a000064);
constexpr IpAddress kLast = IpAddress::v4(0x0a000066);
constexpr wire::MacAddress kClient{{2, 0, 0, 0, 1, 0x10}};

wire::MacAddress client(std::uint8_t number) {
    return {{2, 0, 0, 0, 1, number}};
}

IpAddress lease(std::uint32_t number) {
    return IpAddress::v4(kFirst.value_v4() + number);
}

/// A client's message; `options` are added to the message type.
struct Message {
    MessageType type = MessageType::Discover;
    wire::MacAddress mac = kClient;
    std::optional<IpAddress> requested = std::nullopt;
    std::optional<IpAddress> server = std::nullopt;
    std::optional<IpAddress> has = std::nullopt;
    std::uint16_t flags = 0;

    [[nodiscard]] Packet payload() const {
        wire::dhcp::Header header{};
        header.operation = wire::dhcp::kRequest;
        header.hardware_type = 1;
        header.hardware_size = 6;
        header.transaction.set(0x11223344);
        header.flags.set(flags);
        if (has) {
            header.client_ip.set(has->value_v4());
        }
        std::copy(mac.bytes.begin(), mac.bytes.end(), header.client_hardware.begin());
        header.cookie.set(wire::dhcp::kCookie);
        Packet packet = join(bytes_of(header));
        const auto add = [&packet](std::uint8_t code, Bytes value) {
            packet.push_back(static_cast<std::byte>(code));
            packet.push_back(static_cast<std::byte>(value.size()));
            packet.insert(packet.end(), value.begin(), value.end());
        };
        add(option::kMessageType, bytes_of(type));
        if (requested) {
            add(option::kRequestedAddress, requested->bytes());
        }
        if (server) {
            add(option::kServerIdentifier, server->bytes());
        }
        packet.push_back(static_cast<std::byte>(option::kEnd));
        return packet;
    }
    [[nodiscard]] Packet frame() const {
        const Addressing to{.source_mac = mac,
                            .destination_mac = wire::kBroadcastMac,
                            .source = has.value_or(IpAddress()),
                            .destination = IpAddress::v4(0xffffffff)};
        return udp(to, wire::dhcp::kClientPort, wire::dhcp::kServerPort, payload());
    }
};

/// A server's answer taken apart.
struct Answer {
    MessageType type{};
    IpAddress your_ip;
    std::map<std::uint8_t, Packet> options;
    Seen seen;
};

class DhcpTest : public ::testing::Test {
  protected:
    static DhcpConfig config() {
        return {.mac = kHostMac,
                .address = kServer,
                .first = kFirst,
                .last = kLast,
                .lease_seconds = 600,
                .parameters = {.subnet = {IpAddress::v4(0x0a000000), 24},
                               .router = IpAddress::v4(0x0a0000fe),
                               .name_servers = {IpAddress::v4(0x01010101), IpAddress::v4(0x08080808)},
                               .mtu = 9000}};
    }
    std::optional<Answer> ask(const Message& message) { return ask_frame(message.frame()); }
    std::optional<Answer> ask_frame(Packet frame) {
        world.peer.take();
        world.peer.send(std::move(frame));
        world.loop.run_once(false);
        world.settle();
        const auto frames = world.peer.take();
        EXPECT_LE(frames.size(), 1U);
        if (frames.empty()) {
            return std::nullopt;
        }
        Answer answer;
        answer.seen = frames[0];
        EXPECT_TRUE(answer.seen.intact);
        EXPECT_EQ(answer.seen.udp().source_port.get(), 67U);
        EXPECT_EQ(answer.seen.udp().destination_port.get(), 68U);
        const Packet payload = answer.seen.payload(sizeof(wire::UdpHeader));
        EXPECT_GE(payload.size(), 300U);
        ByteReader reader(payload);
        const auto header = *reader.read<wire::dhcp::Header>();
        EXPECT_EQ(header.transaction.get(), 0x11223344U);
        answer.your_ip = IpAddress::v4(header.your_ip.get());
        while (const auto code = reader.read<std::uint8_t>()) {
            if (*code == option::kEnd) {
                break;
            }
            const auto value = reader.take(*reader.read<std::uint8_t>()).value();
            answer.options[*code] = Packet(value.begin(), value.end());
        }
        answer.type = static_cast<MessageType>(answer.options.at(option::kMessageType).at(0));
        return answer;
    }
    std::optional<Answer> request(std::uint8_t number, const IpAddress& address) {
        return ask(
            {.type = MessageType::Request, .mac = client(number), .requested = address, .server = kServer});
    }

    World world;
    DhcpCounters counters;
    Dhcp dhcp{world.loop, world.stack, world.host_port,
              config(),   counters,    log::Logger(log::null_sink(), "dhcp")};
};

TEST_F(DhcpTest, FourMessagesMakeALease) {
    const auto offer = ask({});
    ASSERT_TRUE(offer);
    EXPECT_EQ(offer->type, MessageType::Offer);
    EXPECT_EQ(offer->your_ip, kFirst);
    EXPECT_EQ(offer->seen.ethernet.destination, kClient);
    EXPECT_EQ(offer->seen.destination, kFirst);
    EXPECT_EQ(offer->seen.source, kServer);
    const auto ack = ask({.type = MessageType::Request, .requested = kFirst, .server = kServer});
    ASSERT_TRUE(ack);
    EXPECT_EQ(ack->type, MessageType::Ack);
    EXPECT_EQ(ack->your_ip, kFirst);
    const auto is = [&ack](std::uint8_t code, const std::string& bytes) {
        return ack->options.at(code) == text(bytes);
    };
    EXPECT_TRUE(is(option::kSubnetMask, std::string("\xff\xff\xff\0", 4)));
    EXPECT_TRUE(is(option::kRouter, std::string("\x0a\0\0\xfe", 4)));
    EXPECT_TRUE(is(option::kNameServers, std::string("\1\1\1\1\10\10\10\10", 8)));
    EXPECT_TRUE(is(option::kMtu, std::string("\x23\x28", 2)));
    EXPECT_TRUE(is(option::kLeaseTime, std::string("\0\0\x02\x58", 4)));
    EXPECT_TRUE(is(option::kServerIdentifier, std::string("\x0a\0\0\1", 4)));
    EXPECT_EQ(counters.leases, 1U);
}

TEST_F(DhcpTest, BroadcastsWhenAskedTo) {
    const auto offer = ask({.flags = wire::dhcp::kBroadcastFlag});
    ASSERT_TRUE(offer);
    EXPECT_EQ(offer->seen.ethernet.destination, wire::kBroadcastMac);
    EXPECT_EQ(offer->seen.destination, IpAddress::v4(0xffffffff));
}

TEST_F(DhcpTest, AClientKeepsItsAddress) {
    ask({.mac = client(1)});
    request(1, lease(0));
    EXPECT_EQ(ask({.mac = client(2)})->your_ip, lease(1));
    EXPECT_EQ(ask({.mac = client(1)})->your_ip, lease(0));
    world.clock.advance(700 * kSecond);  // run out, but nobody else wants it
    EXPECT_EQ(ask({.mac = client(1)})->your_ip, lease(0));
    EXPECT_EQ(ask({.mac = client(3), .requested = lease(2)})->your_ip, lease(2));
}

TEST_F(DhcpTest, RenewsByUnicast) {
    request(0x10, lease(0));
    const Addressing to{.source_mac = kClient, .source = lease(0), .destination = kServer};
    const Message renewal{.type = MessageType::Request, .has = lease(0)};
    const auto ack = ask_frame(udp(to, 68, 67, renewal.payload()));
    ASSERT_TRUE(ack);
    EXPECT_EQ(ack->type, MessageType::Ack);
    EXPECT_EQ(ack->seen.destination, lease(0));
}

TEST_F(DhcpTest, RefusesWhatIsNotFree) {
    request(1, lease(0));
    const auto taken = request(2, lease(0));
    ASSERT_TRUE(taken);
    EXPECT_EQ(taken->type, MessageType::Nak);
    EXPECT_EQ(taken->seen.ethernet.destination, wire::kBroadcastMac);
    EXPECT_EQ(taken->options.count(option::kLeaseTime), 0U);
    EXPECT_EQ(request(2, IpAddress::v4(0xc0a80001))->type, MessageType::Nak) << "of another network";
    EXPECT_EQ(counters.naks.value(), 2U);
}

TEST_F(DhcpTest, AfterARestartAClientMayKeepItsAddress) {
    const auto ack = ask({.type = MessageType::Request, .requested = lease(2)});  // INIT-REBOOT
    ASSERT_TRUE(ack);
    EXPECT_EQ(ack->type, MessageType::Ack);
    EXPECT_EQ(ack->your_ip, lease(2));
}

TEST_F(DhcpTest, AddressesRunOutAndComeBack) {
    for (std::uint8_t i = 1; i <= 3; ++i) {
        EXPECT_EQ(request(i, lease(i - 1U))->type, MessageType::Ack);
    }
    EXPECT_FALSE(ask({.mac = client(4)}));
    EXPECT_EQ(counters.exhausted.value(), 1U);
    EXPECT_FALSE(ask({.type = MessageType::Release, .mac = client(2), .server = kServer, .has = lease(1)}));
    EXPECT_EQ(counters.leases, 2U);
    EXPECT_EQ(ask({.mac = client(4)})->your_ip, lease(1));
}

TEST_F(DhcpTest, OffersThatNobodyTakesRunOut) {
    for (std::uint8_t i = 1; i <= 3; ++i) {
        EXPECT_TRUE(ask({.mac = client(i)}));
    }
    EXPECT_FALSE(ask({.mac = client(4)}));
    world.clock.advance(DhcpLeases::kOffer);
    EXPECT_TRUE(ask({.mac = client(4)}));
}

TEST_F(DhcpTest, ADeclinedAddressIsNotGivenAgain) {
    request(1, lease(0));
    ask({.type = MessageType::Decline, .mac = client(2), .requested = lease(0), .server = kServer});
    EXPECT_EQ(ask({.mac = client(1)})->your_ip, lease(0)) << "only who has it may decline it";
    EXPECT_FALSE(
        ask({.type = MessageType::Decline, .mac = client(1), .requested = lease(0), .server = kServer}));
    EXPECT_EQ(ask({.mac = client(1)})->your_ip, lease(1));
    EXPECT_EQ(request(2, lease(0))->type, MessageType::Nak);
}

TEST_F(DhcpTest, InformIsAnsweredWithoutALease) {
    const auto ack = ask({.type = MessageType::Inform, .has = IpAddress::v4(0x0a000020)});
    ASSERT_TRUE(ack);
    EXPECT_EQ(ack->type, MessageType::Ack);
    EXPECT_TRUE(ack->your_ip.unspecified());
    EXPECT_EQ(ack->options.count(option::kLeaseTime), 0U);
    EXPECT_EQ(ack->options.count(option::kMtu), 1U);
}

TEST_F(DhcpTest, StaysSilentForOthers) {
    EXPECT_FALSE(ask({.type = MessageType::Request, .requested = lease(0), .server = lease(7)}));
    EXPECT_EQ(counters.ignored.value(), 1U);
    Packet broken = Message{}.frame();
    broken.back() ^= std::byte{1};
    EXPECT_FALSE(ask_frame(broken)) << "a wrong checksum";
    EXPECT_EQ(counters.malformed.value(), 1U);
    const Addressing elsewhere{
        .source_mac = kClient, .source = lease(0), .destination = IpAddress::v4(0x0a000009)};
    EXPECT_FALSE(ask_frame(udp(elsewhere, 68, 67, Message{}.payload())));
}

TEST_F(DhcpTest, ItsHostAnswersArpAndPing) {
    const Addressing to{.source_mac = kClient, .source = lease(0), .destination = kServer};
    Addressing broadcast = to;
    broadcast.destination_mac = wire::kBroadcastMac;
    EXPECT_EQ(world.ask(arp(broadcast, wire::kArpRequest)).size(), 1U);
    EXPECT_EQ(world.ask(icmp_echo(to, text("x"))).size(), 1U);
}

TEST_F(DhcpTest, ReservedAddressesAreNeverGiven) {
    dhcp.reserve(lease(0));
    EXPECT_EQ(ask({.requested = lease(0)})->your_ip, lease(1));
}

TEST(DhcpMessage, TruncatedAndOddMessagesAreRefused) {
    const Packet whole = Message{.requested = kFirst, .server = kServer}.payload();
    EXPECT_TRUE(parse_dhcp(whole));
    for (std::size_t size = 0; size < whole.size() - 1; ++size) {
        const auto request = parse_dhcp(Bytes(whole).first(size));
        EXPECT_TRUE(!request || size >= 243U) << size;
    }
    Packet reply = whole;
    reply[0] = std::byte{2};
    EXPECT_FALSE(parse_dhcp(reply));
    Packet no_type(whole.begin(), whole.begin() + 240);
    EXPECT_FALSE(parse_dhcp(no_type));
}

TEST(DhcpMessage, OptionsMayGoOnInTheFileField) {
    Packet message = Message{}.payload();
    const std::size_t file = offsetof(wire::dhcp::Header, file);
    message.pop_back();
    for (const unsigned byte : {52U, 1U, 1U, 255U}) {  // overload: the file field
        message.push_back(static_cast<std::byte>(byte));
    }
    for (std::size_t i = 0; const unsigned byte : {50U, 4U, 10U, 0U, 0U, 102U, 255U}) {
        message[file + i++] = static_cast<std::byte>(byte);
    }
    const auto request = parse_dhcp(message);
    ASSERT_TRUE(request);
    EXPECT_EQ(request->requested_ip, kLast);
}

}  // namespace
}  // namespace ernic::services
