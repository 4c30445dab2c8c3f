// SPDX-License-Identifier: MIT
#include "mesh/message_codec.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace ernic::mesh {
namespace {

net::Route route() {
    net::Route route;
    route.destination = {{2, 0, 0, 0, 0, 1}};
    route.source = {{2, 0, 0, 0, 0, 2}};
    route.vlan_tci = 0x2064;
    route.ip6.version_class_flow.set(6U << 28U | 0x12345U);
    route.ip6.next_header = wire::kIpProtocolUdp;
    route.ip6.hop_limit = 64;
    route.ip6.source[15] = 7;
    route.udp_source_port = 0xc123;
    return route;
}

net::Message write_message(const net::Route& route) {
    net::Message message;
    message.route = &route;
    message.kind = net::MessageKind::Write;
    message.first = false;
    message.last = true;
    message.solicited = true;
    message.has_immediate = true;
    message.acknowledge_request = true;
    message.destination_qpn = 0x123456;
    message.source_qpn = 0x654321;
    message.psn = 0xfffffe;
    message.msn = 17;
    message.immediate = 0xdeadbeef;
    message.path_mtu = 4096;
    message.rkey = 0xaabbccdd;
    message.remote_va = 0x1122334455667788;
    message.length = 262144;
    message.message_length = 1U << 31U;
    return message;
}

TEST(MessageCodec, AMessageArrivesAsItWasSent) {
    const net::Route way = route();
    const net::Message sent = write_message(way);
    HeadBuffer head;
    encode(sent, head);
    const auto got = decode_message(head.view(), sent.length);
    ASSERT_TRUE(got);
    EXPECT_EQ(got->route.destination, way.destination);
    EXPECT_EQ(got->route.source, way.source);
    EXPECT_EQ(got->route.vlan_tci, way.vlan_tci);
    EXPECT_FALSE(got->route.ipv4);
    EXPECT_EQ(got->route.ip6.source, way.ip6.source);
    EXPECT_EQ(got->route.udp_source_port, way.udp_source_port);
    const net::Message& m = got->message;
    EXPECT_EQ(m.kind, sent.kind);
    EXPECT_FALSE(m.first);
    EXPECT_TRUE(m.last && m.solicited && m.has_immediate && m.acknowledge_request && !m.has_invalidate);
    EXPECT_EQ(m.destination_qpn, sent.destination_qpn);
    EXPECT_EQ(m.source_qpn, sent.source_qpn);
    EXPECT_EQ(m.psn, sent.psn);
    EXPECT_EQ(m.msn, sent.msn);
    EXPECT_EQ(m.immediate, sent.immediate);
    EXPECT_EQ(m.path_mtu, sent.path_mtu);
    EXPECT_EQ(m.rkey, sent.rkey);
    EXPECT_EQ(m.remote_va, sent.remote_va);
    EXPECT_EQ(m.length, sent.length);
    EXPECT_EQ(m.message_length, sent.message_length);
}

TEST(MessageCodec, APayloadThatIsNotAsLongAsTheHeadSaysIsRefused) {
    const net::Route way = route();
    HeadBuffer head;
    encode(write_message(way), head);
    EXPECT_FALSE(decode_message(head.view(), 262143));
    EXPECT_FALSE(decode_message(head.view(), 0));
    EXPECT_FALSE(decode_message(head.view().first(head.size - 1), 262144));
}

TEST(MessageCodec, FieldsOutOfRangeAreRefused) {
    const net::Route way = route();
    const auto refused = [&way](auto change) {
        net::Message message = write_message(way);
        change(message);
        HeadBuffer head;
        encode(message, head);
        return !decode_message(head.view(), message.length);
    };
    EXPECT_FALSE(refused([](net::Message&) {}));
    EXPECT_TRUE(refused([](net::Message& m) { m.length = kMaxBody + 1; }));
    EXPECT_TRUE(refused([](net::Message& m) { m.message_length = (std::uint64_t{1} << 31U) + 1; }));
    EXPECT_TRUE(refused([](net::Message& m) { m.path_mtu = 1000; }));
    EXPECT_TRUE(refused([](net::Message& m) { m.kind = static_cast<net::MessageKind>(9); }));
    EXPECT_TRUE(refused([](net::Message& m) { m.syndrome = static_cast<net::Syndrome>(6); }));
    EXPECT_TRUE(refused([](net::Message& m) {
        m.kind = net::MessageKind::Datagram;
        m.length = kMaxDatagram + 1;
    }));
    // A read asks for what it says, but brings nothing along.
    EXPECT_TRUE(refused([](net::Message& m) { m.kind = net::MessageKind::ReadRequest; }));
}

TEST(MessageCodec, AFrameKeepsTheWorkThatIsStillToBeDone) {
    std::vector<std::byte> bytes(3000);
    mem::SpanList data;
    data.add(bytes.data(), bytes.size());
    std::vector<std::byte> header(54);
    header[0] = std::byte{2};
    const net::Frame frame{.data = data,
                           .insert_vlan = 7,
                           .checksum = net::Frame::Checksum{34, 16},
                           .segmentation = net::Frame::Segmentation{
                               .header = header, .segment_size = 1448, .first_segment = 3, .last = true}};
    HeadBuffer head;
    ASSERT_TRUE(encode(frame, head));
    const auto got = decode_ethernet(head.view(), bytes.size());
    ASSERT_TRUE(got);
    EXPECT_EQ(got->insert_vlan, 7);
    ASSERT_TRUE(got->checksum);
    EXPECT_EQ(got->checksum->start, 34);
    EXPECT_EQ(got->checksum->offset, 16);
    ASSERT_TRUE(got->segmentation);
    EXPECT_EQ(got->segmentation->header.size(), header.size());
    EXPECT_EQ(got->segmentation->segment_size, 1448);
    EXPECT_EQ(got->segmentation->first_segment, 3U);
    EXPECT_TRUE(got->segmentation->last);
    EXPECT_FALSE(decode_ethernet(head.view(), 0)) << "nothing to cut";
    EXPECT_FALSE(decode_ethernet(head.view(), kMaxEthernet + 1));
    EXPECT_FALSE(decode_ethernet(head.view().first(20), bytes.size())) << "a template without addresses";
}

}  // namespace
}  // namespace ernic::mesh
