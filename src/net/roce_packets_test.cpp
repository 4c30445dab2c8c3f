// SPDX-License-Identifier: MIT
#include "net/roce_packets.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "net/checksum.hpp"
#include "net/icrc.hpp"
#include "wire/ethernet.hpp"
#include "wire/roce.hpp"

namespace ernic::net {
namespace {

using testing::ElementsAre;
using wire::roce::BaseHeader;
using wire::roce::Opcode;

constexpr std::size_t kFragment = std::size_t{256} * 1024;
constexpr std::uint16_t kMtu = 1024;

/// A packet taken apart again; whatever every packet must obey is checked on the way.
struct Shown {
    std::size_t length = 0;
    Opcode opcode{};
    BaseHeader bth{};
    /// Extended headers, payload and padding.
    std::vector<std::byte> rest;

    [[nodiscard]] std::uint32_t psn() const { return bth.acknowledge_psn.get() & BaseHeader::kNumberMask; }
    [[nodiscard]] bool acknowledge() const { return bth.acknowledge_psn.get() >> 31U != 0; }
    [[nodiscard]] bool solicited() const { return (bth.flags & BaseHeader::kSolicited) != 0; }
    [[nodiscard]] std::size_t padding() const { return bth.flags >> 4U & 3U; }
    template <typename T>
    [[nodiscard]] T header(std::size_t at = 0) const {
        return read_value<T>(Bytes(rest).subspan(at)).value();
    }
    [[nodiscard]] std::size_t payload(std::size_t headers) const { return rest.size() - headers - padding(); }
};

class RocePacketsTest : public testing::Test {
  protected:
    RocePacketsTest() : data_(3 * kFragment) {
        for (std::size_t i = 0; i < data_.size(); ++i) {
            data_[i] = static_cast<std::byte>(i * 7 + (i >> 8U));
        }
        route_.destination = {{2, 0, 0, 0, 0, 2}};
        route_.source = {{2, 0, 0, 0, 0, 1}};
        route_.ipv4 = true;
        route_.ip4.version_ihl = 0x45;
        route_.ip4.ttl = 64;
        route_.ip4.protocol = wire::kIpProtocolUdp;
        route_.ip4.source.set(0x0a000001);
        route_.ip4.destination.set(0x0a000002);
        route_.ip6.version_class_flow.set(6U << 28U);
        route_.ip6.next_header = wire::kIpProtocolUdp;
        route_.ip6.hop_limit = 64;
        route_.ip6.source[15] = 1;
        route_.ip6.destination[15] = 2;
        route_.udp_source_port = 0xc000;
        message_.route = &route_;
        message_.path_mtu = kMtu;
        message_.destination_qpn = 0x123456;
        message_.psn = 100;
    }

    /// Gives the message `size` bytes of payload from `offset` on, in pieces that divide by nothing.
    void payload(std::size_t size, std::size_t offset = 0) {
        spans_.clear();
        for (std::size_t done = 0; done < size;) {
            const std::size_t piece = std::min(size - done, size / 5 + 13);
            // Not from end to end, so that they stay pieces.
            pieces_.push_back(std::make_unique<std::vector<std::byte>>(
                data_.begin() + static_cast<std::ptrdiff_t>(offset + done),
                data_.begin() + static_cast<std::ptrdiff_t>(offset + done + piece)));
            ASSERT_TRUE(spans_.add(pieces_.back()->data(), piece));
            done += piece;
        }
        message_.payload = &spans_;
        message_.length = size;
        message_.message_length = size;
    }

    std::vector<Shown> show() const {
        std::vector<Shown> all;
        std::vector<std::byte> buffer(kMaxRocePacket);
        RocePackets packets(message_);
        while (const auto packet = packets.next(buffer)) {
            EXPECT_EQ(packet->captured, packet->length);
            all.push_back(take_apart(Bytes(buffer).first(packet->length)));
        }
        EXPECT_EQ(all.size(), packets.count());
        return all;
    }

    Shown take_apart(Bytes bytes) const {
        Shown shown;
        shown.length = bytes.size();
        ByteReader reader(bytes);
        const auto ethernet = reader.read<wire::EthernetHeader>().value();
        EXPECT_EQ(ethernet.destination, route_.destination);
        EXPECT_EQ(ethernet.source, route_.source);
        std::uint16_t type = ethernet.ether_type.get();
        if (route_.vlan_tci) {
            EXPECT_EQ(type, wire::kEtherTypeVlan);
            const auto tag = reader.read<wire::VlanTag>().value();
            EXPECT_EQ(tag.tci.get(), *route_.vlan_tci);
            type = tag.ether_type.get();
        }
        const Bytes ip_packet = reader.rest();
        if (route_.ipv4) {
            EXPECT_EQ(type, wire::kEtherTypeIpv4);
            const auto ip = reader.read<wire::Ipv4Header>().value();
            EXPECT_EQ(ip.total_length.get(), ip_packet.size());
            EXPECT_EQ(ones_complement_sum(bytes_of(ip)), 0xffff);
        } else {
            EXPECT_EQ(type, wire::kEtherTypeIpv6);
            const auto ip = reader.read<wire::Ipv6Header>().value();
            EXPECT_EQ(ip.payload_length.get(), reader.rest().size());
            const std::uint16_t pseudo =
                pseudo_header_sum(Bytes(bytes_of(ip)).subspan(8), wire::kIpProtocolUdp,
                                  static_cast<std::uint32_t>(reader.rest().size()));
            EXPECT_EQ(ones_complement_sum(reader.rest(), pseudo), 0xffff);
        }
        const std::size_t udp_length = reader.rest().size();
        const auto udp = reader.read<wire::UdpHeader>().value();
        EXPECT_EQ(udp.length.get(), udp_length);
        EXPECT_EQ(udp.source_port.get(), route_.udp_source_port);
        EXPECT_EQ(udp.destination_port.get(), 4791);
        EXPECT_EQ(udp.checksum.get() == 0, route_.ipv4);
        shown.bth = reader.read<BaseHeader>().value();
        shown.opcode = static_cast<Opcode>(shown.bth.opcode);
        EXPECT_EQ(shown.bth.partition.get(), 0xffff);
        EXPECT_EQ(shown.bth.destination_qpn.get(), message_.destination_qpn);
        const Bytes rest = reader.rest().first(reader.rest().size() - 4);
        EXPECT_EQ(rest.size() % 4, 0U);
        shown.rest.assign(rest.begin(), rest.end());
        const le32 icrc(invariant_crc(ip_packet.first(ip_packet.size() - 4)));
        EXPECT_EQ(std::memcmp(&icrc, ip_packet.last(4).data(), 4), 0);
        return shown;
    }

    static std::vector<Opcode> opcodes(const std::vector<Shown>& all) {
        std::vector<Opcode> result;
        for (const Shown& shown : all) {
            result.push_back(shown.opcode);
        }
        return result;
    }

    std::vector<std::byte> data_;
    std::vector<std::unique_ptr<std::vector<std::byte>>> pieces_;
    mem::SpanList spans_;
    Route route_;
    Message message_;
};

TEST_F(RocePacketsTest, AnEmptySendIsOnePacketWithoutPayload) {
    payload(0);
    const auto all = show();
    ASSERT_EQ(opcodes(all), std::vector{Opcode::RcSendOnly});
    EXPECT_EQ(all[0].psn(), 100U);
    EXPECT_TRUE(all[0].rest.empty());
    EXPECT_EQ(all[0].length, 14U + 20 + 8 + 12 + 4);
}

/// Payload comes out byte by byte, whatever the size, over IPv4 and IPv6, with and without a tag.
TEST_F(RocePacketsTest, SizesAroundTheMtuAreCutWhereTheWireCutsThem) {
    for (const std::size_t size : {1, 2, 3, 4, 1023, 1024, 1025, 2047, 2048, 2049, 5000}) {
        for (const bool ipv4 : {true, false}) {
            route_.ipv4 = ipv4;
            route_.vlan_tci = size % 2 != 0 ? std::optional<std::uint16_t>(0x6064) : std::nullopt;
            payload(size);
            const auto all = show();
            ASSERT_EQ(all.size(), (size + kMtu - 1) / kMtu);
            std::vector<std::byte> joined;
            for (std::size_t i = 0; i < all.size(); ++i) {
                EXPECT_EQ(all[i].psn(), 100 + i);
                EXPECT_EQ(all[i].payload(0), std::min<std::size_t>(kMtu, size - i * kMtu));
                joined.insert(joined.end(), all[i].rest.begin(),
                              all[i].rest.end() - static_cast<std::ptrdiff_t>(all[i].padding()));
                const bool first = i == 0;
                const bool last = i + 1 == all.size();
                EXPECT_EQ(all[i].opcode, first && last ? Opcode::RcSendOnly
                                         : first       ? Opcode::RcSendFirst
                                         : last        ? Opcode::RcSendLast
                                                       : Opcode::RcSendMiddle);
            }
            EXPECT_TRUE(std::equal(joined.begin(), joined.end(), data_.begin()));
            EXPECT_EQ(joined.size(), size);
        }
    }
}

TEST_F(RocePacketsTest, AWriteNamesItsTargetInTheFirstPacketAndItsImmediateInTheLast) {
    payload(2 * kMtu + 1);
    message_.kind = MessageKind::Write;
    message_.remote_va = 0x123456789abc;
    message_.rkey = 0xdead01;
    message_.has_immediate = true;
    message_.immediate = 0xcafef00d;
    message_.solicited = true;
    message_.acknowledge_request = true;
    const auto all = show();
    ASSERT_THAT(opcodes(all),
                ElementsAre(Opcode::RcWriteFirst, Opcode::RcWriteMiddle, Opcode::RcWriteLastImmediate));
    const auto reth = all[0].header<wire::roce::RdmaHeader>();
    EXPECT_EQ(reth.remote_va.get(), 0x123456789abcU);
    EXPECT_EQ(reth.rkey.get(), 0xdead01U);
    EXPECT_EQ(reth.length.get(), 2U * kMtu + 1);
    EXPECT_EQ(all[0].payload(sizeof(reth)), kMtu);
    EXPECT_EQ(all[1].payload(0), kMtu);
    EXPECT_EQ(all[2].header<wire::roce::ImmediateHeader>().immediate.get(), 0xcafef00dU);
    EXPECT_EQ(all[2].payload(4), 1U);
    EXPECT_EQ(all[2].padding(), 3U);
    for (const Shown& shown : all) {
        EXPECT_EQ(shown.solicited(), &shown == &all[2]);
        EXPECT_EQ(shown.acknowledge(), &shown == &all[2]);
    }
}

TEST_F(RocePacketsTest, AWriteInOnePacketHasBothHeaders) {
    payload(kMtu);
    message_.kind = MessageKind::Write;
    EXPECT_THAT(opcodes(show()), ElementsAre(Opcode::RcWriteOnly));
    message_.has_immediate = true;
    message_.immediate = 7;
    const auto all = show();
    ASSERT_THAT(opcodes(all), ElementsAre(Opcode::RcWriteOnlyImmediate));
    EXPECT_EQ(all[0].header<wire::roce::ImmediateHeader>(16).immediate.get(), 7U);
    EXPECT_EQ(all[0].payload(20), kMtu);
}

TEST_F(RocePacketsTest, SendsWithImmediateOrInvalidateSayItAtTheirEnd) {
    message_.has_immediate = true;
    payload(10);
    EXPECT_THAT(opcodes(show()), ElementsAre(Opcode::RcSendOnlyImmediate));
    payload(kMtu + 1);
    EXPECT_THAT(opcodes(show()), ElementsAre(Opcode::RcSendFirst, Opcode::RcSendLastImmediate));
    message_.has_immediate = false;
    message_.has_invalidate = true;
    message_.invalidate_key = 0x4711;
    const auto all = show();
    ASSERT_THAT(opcodes(all), ElementsAre(Opcode::RcSendFirst, Opcode::RcSendLastInvalidate));
    EXPECT_EQ(all[1].header<wire::roce::InvalidateHeader>().rkey.get(), 0x4711U);
    payload(10);
    EXPECT_THAT(opcodes(show()), ElementsAre(Opcode::RcSendOnlyInvalidate));
}

TEST_F(RocePacketsTest, FragmentsMakeOneMessageOnTheWire) {
    constexpr std::size_t kTotal = 2 * kFragment + 5;
    message_.kind = MessageKind::Write;
    message_.path_mtu = 4096;
    message_.psn = 0xffffc0;
    constexpr std::size_t kPackets = kFragment / 4096;
    std::vector<Shown> all;
    for (std::size_t at = 0; at < kTotal; at += kFragment) {
        const std::size_t size = std::min(kFragment, kTotal - at);
        payload(size, at);
        message_.message_length = kTotal;
        message_.first = at == 0;
        message_.last = at + size == kTotal;
        message_.psn = static_cast<std::uint32_t>(0xffffc0 + at / 4096) & 0xffffffU;
        const auto part = show();
        all.insert(all.end(), part.begin(), part.end());
    }
    ASSERT_EQ(all.size(), 2 * kPackets + 1);
    EXPECT_EQ(all[0].header<wire::roce::RdmaHeader>().length.get(), kTotal);
    for (std::size_t i = 0; i < all.size(); ++i) {
        EXPECT_EQ(all[i].psn(), (0xffffc0 + i) & 0xffffffU);
        EXPECT_EQ(all[i].opcode, i == 0                ? Opcode::RcWriteFirst
                                 : i + 1 == all.size() ? Opcode::RcWriteLast
                                                       : Opcode::RcWriteMiddle);
        EXPECT_EQ(all[i].payload(i == 0 ? 16 : 0), i + 1 == all.size() ? 5U : 4096U);
    }
}

TEST_F(RocePacketsTest, AReadAsksInOnePacketAndIsAnsweredInMany) {
    message_.kind = MessageKind::ReadRequest;
    message_.length = 3 * kMtu;
    message_.remote_va = 0x1000;
    auto all = show();
    ASSERT_THAT(opcodes(all), ElementsAre(Opcode::RcReadRequest));
    EXPECT_EQ(all[0].header<wire::roce::RdmaHeader>().length.get(), 3U * kMtu);
    EXPECT_EQ(all[0].payload(16), 0U);

    payload(3 * kMtu);
    message_.kind = MessageKind::ReadResponse;
    message_.msn = 0xabcdef;
    all = show();
    ASSERT_THAT(opcodes(all), ElementsAre(Opcode::RcReadResponseFirst, Opcode::RcReadResponseMiddle,
                                          Opcode::RcReadResponseLast));
    EXPECT_EQ(all[0].header<wire::roce::AcknowledgeHeader>().syndrome_msn.get(), 0x1fabcdefU);
    EXPECT_EQ(all[0].payload(4), kMtu);
    EXPECT_EQ(all[1].payload(0), kMtu);
    EXPECT_EQ(all[2].payload(4), kMtu);
    payload(0);
    all = show();
    ASSERT_THAT(opcodes(all), ElementsAre(Opcode::RcReadResponseOnly));
    EXPECT_EQ(all[0].payload(4), 0U);
}

TEST_F(RocePacketsTest, AtomicsCarryTheirOperandsAndTheOriginal) {
    message_.kind = MessageKind::CompareSwap;
    message_.remote_va = 0x2008;
    message_.rkey = 3;
    message_.swap_add = 0x1111111122222222;
    message_.compare = 0x3333333344444444;
    auto all = show();
    ASSERT_THAT(opcodes(all), ElementsAre(Opcode::RcCompareSwap));
    const auto header = all[0].header<wire::roce::AtomicHeader>();
    EXPECT_EQ(header.remote_va.get(), 0x2008U);
    EXPECT_EQ(header.rkey.get(), 3U);
    EXPECT_EQ(header.swap_add.get(), 0x1111111122222222U);
    EXPECT_EQ(header.compare.get(), 0x3333333344444444U);
    message_.kind = MessageKind::FetchAdd;
    EXPECT_THAT(opcodes(show()), ElementsAre(Opcode::RcFetchAdd));
    message_.kind = MessageKind::AtomicResponse;
    message_.msn = 5;
    all = show();
    ASSERT_THAT(opcodes(all), ElementsAre(Opcode::RcAtomicAcknowledge));
    EXPECT_EQ(all[0].header<wire::roce::AcknowledgeHeader>().syndrome_msn.get(), 0x1f000005U);
    EXPECT_EQ(all[0].header<wire::roce::AtomicAcknowledgeHeader>(4).original.get(), 0x1111111122222222U);
}

TEST_F(RocePacketsTest, AcknowledgementsSayWhy) {
    message_.kind = MessageKind::Acknowledge;
    message_.msn = 9;
    message_.rnr_timer = 12;
    const auto syndrome = [this](Syndrome value) {
        message_.syndrome = value;
        const auto all = show();
        EXPECT_THAT(opcodes(all), ElementsAre(Opcode::RcAcknowledge));
        const std::uint32_t word = all[0].header<wire::roce::AcknowledgeHeader>().syndrome_msn.get();
        EXPECT_EQ(word & 0xffffffU, 9U);
        return word >> 24U;
    };
    EXPECT_EQ(syndrome(Syndrome::Ack), 0x1fU);
    EXPECT_EQ(syndrome(Syndrome::RnrNak), 0x2cU);
    EXPECT_EQ(syndrome(Syndrome::NakSequence), 0x60U);
    EXPECT_EQ(syndrome(Syndrome::NakInvalidRequest), 0x61U);
    EXPECT_EQ(syndrome(Syndrome::NakRemoteAccess), 0x62U);
    EXPECT_EQ(syndrome(Syndrome::NakRemoteOperation), 0x63U);
}

TEST_F(RocePacketsTest, ADatagramIsOnePacketUpToTheLargestMtu) {
    message_.kind = MessageKind::Datagram;
    message_.path_mtu = 0;
    message_.qkey = 0x80010000;
    message_.source_qpn = 0xabcdef;
    payload(4096);
    auto all = show();
    ASSERT_THAT(opcodes(all), ElementsAre(Opcode::UdSendOnly));
    const auto deth = all[0].header<wire::roce::DatagramHeader>();
    EXPECT_EQ(deth.qkey.get(), 0x80010000U);
    EXPECT_EQ(deth.source_qpn.get(), 0xabcdefU);
    EXPECT_EQ(all[0].payload(8), 4096U);
    message_.has_immediate = true;
    message_.immediate = 0x55;
    payload(3);
    all = show();
    ASSERT_THAT(opcodes(all), ElementsAre(Opcode::UdSendOnlyImmediate));
    EXPECT_EQ(all[0].header<wire::roce::ImmediateHeader>(8).immediate.get(), 0x55U);
    EXPECT_EQ(all[0].payload(12), 3U);
}

/// Whatever is cut off, what remains is the front of the whole packet.
TEST_F(RocePacketsTest, ALimitKeepsTheFrontOfEachPacket) {
    payload(2 * kMtu + 3);
    message_.kind = MessageKind::Write;
    for (const bool ipv4 : {true, false}) {
        route_.ipv4 = ipv4;
        for (const std::size_t limit : {64, 70, 71, 500, 1082, 1097, 1098, 1099, 1102, 5000}) {
            RocePackets whole(message_);
            RocePackets cut(message_);
            std::vector<std::byte> expected(kMaxRocePacket);
            std::vector<std::byte> actual(kMaxRocePacket);
            while (const auto packet = whole.next(expected)) {
                const auto front = cut.next(actual, limit);
                ASSERT_TRUE(front);
                EXPECT_EQ(front->length, packet->length);
                ASSERT_EQ(front->captured, std::min(limit, packet->length));
                EXPECT_TRUE(std::equal(actual.begin(),
                                       actual.begin() + static_cast<std::ptrdiff_t>(front->captured),
                                       expected.begin()))
                    << limit;
            }
            EXPECT_FALSE(cut.next(actual, limit));
        }
    }
}

}  // namespace
}  // namespace ernic::net
