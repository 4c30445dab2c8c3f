// SPDX-License-Identifier: MIT
#include "ionic/packet_info.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

namespace ernic::ionic {
namespace {

using wire::ionic::PacketType;

std::vector<std::byte> frame(std::uint16_t ether_type, std::initializer_list<Bytes> parts) {
    std::vector<std::byte> made(14);
    const be16 type(ether_type);
    std::memcpy(made.data() + 12, &type, 2);
    for (const Bytes part : parts) {
        made.insert(made.end(), part.begin(), part.end());
    }
    return made;
}

wire::Ipv4Header ipv4(std::uint8_t protocol) {
    wire::Ipv4Header header{};
    header.version_ihl = 0x45;
    header.protocol = protocol;
    header.source.set(0x01020304);
    header.destination.set(0x05060708);
    return header;
}

TEST(PacketInfo, TypesByProtocol) {
    const std::array<std::byte, 20> transport{};
    const auto type_of = [&](const wire::Ipv4Header& header) {
        return parse_packet(frame(wire::kEtherTypeIpv4, {bytes_of(header), transport}))->type;
    };
    EXPECT_EQ(type_of(ipv4(6)), PacketType::Ipv4Tcp);
    EXPECT_EQ(type_of(ipv4(17)), PacketType::Ipv4Udp);
    EXPECT_EQ(type_of(ipv4(1)), PacketType::Ipv4);
    auto fragment = ipv4(17);
    fragment.flags_fragment.set(0x2000);
    EXPECT_EQ(type_of(fragment), PacketType::Ipv4);
    fragment.flags_fragment.set(0x4000);  // "don't fragment" is no fragment
    EXPECT_EQ(type_of(fragment), PacketType::Ipv4Udp);
    wire::Ipv6Header v6{};
    v6.version_class_flow.set(0x60000000);
    v6.next_header = 6;
    EXPECT_EQ(parse_packet(frame(wire::kEtherTypeIpv6, {bytes_of(v6), transport}))->type,
              PacketType::Ipv6Tcp);
    v6.next_header = 0;
    EXPECT_EQ(parse_packet(frame(wire::kEtherTypeIpv6, {bytes_of(v6), transport}))->type, PacketType::Ipv6);
    EXPECT_EQ(parse_packet(frame(0x0806, {transport}))->type, PacketType::NonIp);
}

TEST(PacketInfo, TupleHoldsAddressesThenPorts) {
    const std::array<be16, 2> ports = {be16(0x1122), be16(0x3344)};
    const auto info = parse_packet(frame(wire::kEtherTypeIpv4, {bytes_of(ipv4(6)), bytes_of(ports)}));
    EXPECT_EQ(info->address_bytes, 8);
    EXPECT_EQ(info->port_bytes, 4);
    const std::array<std::uint8_t, 12> expected = {1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x22, 0x33, 0x44};
    EXPECT_EQ(std::memcmp(info->tuple.data(), expected.data(), expected.size()), 0);
}

TEST(PacketInfo, EveryTruncationIsSafe) {
    const std::array<std::byte, 20> transport{};
    const auto whole = frame(wire::kEtherTypeIpv4, {bytes_of(ipv4(6)), transport});
    for (std::size_t size = 0; size <= whole.size(); ++size) {
        const std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
        EXPECT_EQ(parse_packet(cut).has_value(), size >= 14);
    }
}

TEST(PacketInfo, HeaderLengthBeyondThePacketIsNotIp) {
    auto header = ipv4(6);
    header.version_ihl = 0x4f;
    EXPECT_EQ(parse_packet(frame(wire::kEtherTypeIpv4, {bytes_of(header)}))->type, PacketType::NonIp);
    header.version_ihl = 0x44;
    EXPECT_EQ(parse_packet(frame(wire::kEtherTypeIpv4, {bytes_of(header)}))->type, PacketType::NonIp);
}

}  // namespace
}  // namespace ernic::ionic
