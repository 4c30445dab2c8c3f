// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "ionic/packet_info.hpp"
#include "ionic/test_driver.hpp"
#include "net/checksum.hpp"

namespace ernic::ionic {
namespace {

namespace w = wire::ionic;
using test::TestDriver;

/// A frame that can be built field by field.
class FrameBuilder {
  public:
    template <WireValue T>
    FrameBuilder& add(const T& value) {
        const Bytes raw = bytes_of(value);
        bytes_.insert(bytes_.end(), raw.begin(), raw.end());
        return *this;
    }
    FrameBuilder& pad(std::size_t size, std::uint8_t value = 0x5a) {
        bytes_.resize(bytes_.size() + size, static_cast<std::byte>(value));
        return *this;
    }
    operator Bytes() const { return bytes_; }  // NOLINT(google-explicit-constructor)

  private:
    std::vector<std::byte> bytes_;
};

constexpr wire::MacAddress kPeer{{0x02, 0xaa, 0, 0, 0, 1}};
constexpr wire::MacAddress kBroadcast{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
constexpr wire::MacAddress kMulticast{{0x01, 0x00, 0x5e, 0, 0, 1}};

class LifReceiveTest : public test::CardTest {
  protected:
    LifReceiveTest() {
        driver.probe();
        driver.open(2);
    }
    static FrameBuilder frame_to(const wire::MacAddress& to) {
        FrameBuilder frame;
        frame.add(to).add(kPeer);
        return frame;
    }
    static FrameBuilder plain(const wire::MacAddress& to, std::size_t payload = 46) {
        return frame_to(to).add(be16(0x88b5)).pad(payload);
    }
    std::optional<w::RxCompletion> next(std::size_t queue = 0) {
        return driver.poll<w::RxCompletion>(driver.rx[queue]);
    }
    /// What the driver finds in the buffer of descriptor `slot`.
    std::vector<std::byte> buffer(std::uint32_t slot, std::size_t size) {
        const auto descriptor = host.load<w::RxDescriptor>(driver.rx[0].ring + slot * 16);
        const auto from = host.bytes(descriptor.address.get(), size);
        return {from.begin(), from.end()};
    }
    std::uint64_t stat(w::LifStat which) { return card.stats().lif(which); }
    void add_vlan_filter(std::uint16_t id) {
        w::RxFilterAddCommand raw{};
        raw.opcode = static_cast<std::uint8_t>(w::Opcode::RxFilterAdd);
        raw.match.set(static_cast<std::uint16_t>(w::RxFilterMatch::Vlan));
        const le16 vlan(id);
        std::memcpy(raw.body.data(), &vlan, sizeof vlan);
        EXPECT_EQ(driver.admin(raw).status, 0);
    }
};

TEST_F(LifReceiveTest, FrameForTheStationAddressIsDelivered) {
    const FrameBuilder frame = plain(kMac);
    const Bytes bytes = frame;
    const int before = host.interrupts[1];
    ASSERT_TRUE(card.receive(frame));
    const auto completion = next();
    ASSERT_TRUE(completion);
    EXPECT_EQ(completion->status, 0);
    EXPECT_EQ(completion->comp_index.get(), 0);
    EXPECT_EQ(completion->length.get(), 60);
    EXPECT_EQ(completion->sg_elements, 0);
    EXPECT_EQ(completion->packet_type_color & 0x7f, 0);
    EXPECT_EQ(buffer(0, 60), std::vector<std::byte>(bytes.begin(), bytes.end()));
    EXPECT_EQ(host.interrupts[1], before + 1);
    EXPECT_EQ(stat(w::LifStat::RxUnicastPackets), 1U);
    EXPECT_EQ(stat(w::LifStat::RxUnicastBytes), 60U);
}

TEST_F(LifReceiveTest, FilterRulesByKindOfAddress) {
    EXPECT_FALSE(card.receive(plain(kPeer)));
    EXPECT_TRUE(card.receive(plain(kBroadcast)));
    EXPECT_FALSE(card.receive(plain(kMulticast)));
    driver.add_mac_filter(kMulticast);
    EXPECT_TRUE(card.receive(plain(kMulticast)));
    driver.set_rx_mode(w::rx_mode::kAllMulticast);
    EXPECT_TRUE(card.receive(plain({{0x33, 0x33, 0, 0, 0, 9}})));
    EXPECT_FALSE(card.receive(plain(kMac)));
    EXPECT_FALSE(card.receive(plain(kBroadcast)));
    driver.set_rx_mode(w::rx_mode::kPromiscuous);
    EXPECT_TRUE(card.receive(plain(kPeer)));
}

TEST_F(LifReceiveTest, ChecksumCoversEverythingBehindTheEthernetHeader) {
    const FrameBuilder frame = plain(kMac, 47);
    ASSERT_TRUE(card.receive(frame));
    const auto completion = next();
    EXPECT_EQ(completion->checksum_flags, w::rx_checksum::kCalculated);
    EXPECT_EQ(completion->checksum.get(), net::ones_complement_sum(Bytes(frame).subspan(14)));
}

/// Ethernet, IPv4 and UDP with `payload` bytes; the sum of the pseudo header as checksum.
std::vector<std::byte> udp_frame(const wire::MacAddress& to, std::size_t payload) {
    wire::Ipv4Header ip{};
    ip.version_ihl = 0x45;
    ip.total_length.set(static_cast<std::uint16_t>(28 + payload));
    ip.protocol = wire::kIpProtocolUdp;
    ip.source.set(0x0a000001);
    ip.destination.set(0x0a000002);
    ip.checksum.set(0x6699);  // not right: it need not be for what is tested
    const std::uint32_t pseudo = 0x0a00 + 1 + 0x0a00 + 2 + 17 + 8 + static_cast<std::uint32_t>(payload);
    FrameBuilder frame;
    frame.add(to).add(kPeer).add(be16(wire::kEtherTypeIpv4)).add(ip).add(be16(7)).add(be16(9));
    frame.add(be16(static_cast<std::uint16_t>(8 + payload))).add(be16(static_cast<std::uint16_t>(pseudo)));
    const Bytes bytes = frame.pad(payload);
    return {bytes.begin(), bytes.end()};
}

TEST_F(LifReceiveTest, PendingChecksumIsFinishedAndItsSumNeedsNoSecondLook) {
    for (const std::size_t payload : {0U, 1U, 101U, 1400U}) {
        auto bytes = udp_frame(kMac, payload);
        mem::SpanList data;
        data.add(bytes.data(), bytes.size());
        net::Frame frame{.data = data, .insert_vlan = {}, .checksum = {}, .segmentation = {}};
        frame.checksum = {34, 6};
        const std::uint32_t slot = driver.rx[0].consumer;
        card.receiver().transmit(frame);
        const auto completion = next();
        ASSERT_TRUE(completion) << payload;
        const auto got = buffer(slot, bytes.size());
        EXPECT_EQ(completion->length.get(), bytes.size());
        EXPECT_EQ(completion->checksum.get() % 0xffff,
                  net::ones_complement_sum(Bytes(got).subspan(14)) % 0xffff)
            << payload;
        net::ChecksumAccumulator sum(
            net::pseudo_header_sum(Bytes(got).subspan(26, 8), 17, static_cast<std::uint32_t>(8 + payload)));
        sum.add(Bytes(got).subspan(34));
        EXPECT_EQ(sum.sum(), 0xffff) << payload;
    }
    EXPECT_EQ(metric("ionic.rx.malformed"), 0U);
}

TEST_F(LifReceiveTest, LargeTcpPacketArrivesInSegments) {
    wire::Ipv4Header ip{};
    ip.version_ihl = 0x45;
    ip.protocol = wire::kIpProtocolTcp;
    wire::TcpHeader tcp{};
    tcp.data_offset = 0x50;
    const FrameBuilder header = frame_to(kMac).add(be16(wire::kEtherTypeIpv4)).add(ip).add(tcp);
    std::vector<std::byte> payload(3001, std::byte{0x5a});
    mem::SpanList data;
    data.add(payload.data(), payload.size());
    card.receiver().transmit(
        {.data = data,
         .insert_vlan = {},
         .checksum = {},
         .segmentation = net::Frame::Segmentation{.header = header, .segment_size = 1000, .last = true}});
    for (const int size : {1054, 1054, 1054, 55}) {
        const auto completion = next();
        ASSERT_TRUE(completion);
        EXPECT_EQ(completion->length.get(), size);
        const auto got = buffer(completion->comp_index.get(), static_cast<std::size_t>(size));
        EXPECT_EQ(completion->checksum.get() % 0xffff,
                  net::ones_complement_sum(Bytes(got).subspan(14)) % 0xffff);
        EXPECT_NE(completion->checksum_flags & w::rx_checksum::kIpOk, 0);
    }
    EXPECT_FALSE(next());
}

TEST_F(LifReceiveTest, NonsenseForTheGuestIsCounted) {
    std::vector<std::byte> bytes(60);
    mem::SpanList data;
    data.add(bytes.data(), bytes.size());
    net::Frame frame{.data = data, .insert_vlan = {}, .checksum = {}, .segmentation = {}};
    frame.checksum = {60, 0};
    card.receiver().transmit(frame);
    EXPECT_EQ(metric("ionic.rx.malformed"), 1U);
}

TEST_F(LifReceiveTest, RoomIsWhatTheFullestQueueHasLeft) {
    EXPECT_EQ(card.receiver().room(), SIZE_MAX) << "a ring that is half full has no more to give";
    int told = 0;
    card.on_receive_room([&told] { ++told; });
    for (int i = 0; i < 40; ++i) {
        ASSERT_TRUE(card.receive(plain(kMac)));
    }
    EXPECT_EQ(card.receiver().room(), 23U);
    driver.ring(driver.rx[0]);
    EXPECT_EQ(told, 1);
    card.set_link(false);
    EXPECT_EQ(card.receiver().room(), SIZE_MAX) << "what cannot be delivered anyway need not wait";
}

TEST_F(LifReceiveTest, WithoutRxChecksumNothingIsClaimed) {
    driver.set_features(0);
    ASSERT_TRUE(card.receive(plain(kMac)));
    EXPECT_EQ(next()->checksum_flags, 0);
}

TEST_F(LifReceiveTest, GrantedStrippingTakesTheTagOut) {
    add_vlan_filter(5);
    const FrameBuilder frame =
        frame_to(kMac).add(be16(wire::kEtherTypeVlan)).add(be16(0x6005)).add(be16(0x88b5)).pad(50);
    ASSERT_TRUE(card.receive(frame));
    const auto completion = next();
    EXPECT_EQ(completion->length.get(), 64);
    EXPECT_EQ(completion->vlan_tci.get(), 0x6005);
    EXPECT_EQ(completion->checksum_flags & w::rx_checksum::kVlan, w::rx_checksum::kVlan);
    EXPECT_EQ(completion->checksum.get(), net::ones_complement_sum(Bytes(frame).subspan(18)));
    const auto got = buffer(0, 14);
    EXPECT_EQ(got[12], std::byte{0x88});
    EXPECT_EQ(got[13], std::byte{0xb5});
}

TEST_F(LifReceiveTest, WithoutStrippingTheTagStays) {
    driver.set_features(w::lif_feature::kRxChecksum);
    const FrameBuilder frame =
        frame_to(kMac).add(be16(wire::kEtherTypeVlan)).add(be16(0x6005)).add(be16(0x88b5)).pad(50);
    ASSERT_TRUE(card.receive(frame));
    const auto completion = next();
    EXPECT_EQ(completion->length.get(), 68);
    EXPECT_EQ(completion->checksum_flags & w::rx_checksum::kVlan, 0);
    EXPECT_EQ(completion->checksum.get(), net::ones_complement_sum(Bytes(frame).subspan(14)));
}

TEST_F(LifReceiveTest, UnknownVlanIsFiltered) {
    const FrameBuilder frame =
        frame_to(kMac).add(be16(wire::kEtherTypeVlan)).add(be16(7)).add(be16(0x88b5)).pad(50);
    EXPECT_FALSE(card.receive(frame));
    add_vlan_filter(7);
    EXPECT_TRUE(card.receive(frame));
}

TEST_F(LifReceiveTest, RssSpreadsAndReportsTheHash) {
    for (std::uint32_t i = 0; i < 128; ++i) {
        host.bytes(driver.rss_table + i, 1)[0] = std::byte{1};
    }
    w::RssAttribute rss{};
    rss.types.set(0x3f);
    rss.table_address.set(driver.rss_table);
    std::iota(rss.key.begin(), rss.key.end(), std::uint8_t{1});
    ASSERT_EQ(driver.set_lif(w::LifAttribute::Rss, bytes_of(rss)).status, 0);
    wire::Ipv4Header ip{};
    ip.version_ihl = 0x45;
    ip.protocol = 6;
    ip.source.set(0x0a000001);
    ip.destination.set(0x0a000002);
    const FrameBuilder frame =
        frame_to(kMac).add(be16(wire::kEtherTypeIpv4)).add(ip).add(be16(1)).add(be16(2)).pad(40);
    ASSERT_TRUE(card.receive(frame));
    EXPECT_FALSE(next(0));
    const auto completion = next(1);
    ASSERT_TRUE(completion);
    EXPECT_EQ(completion->packet_type_color & 0x7f, static_cast<int>(w::PacketType::Ipv4Tcp));
    EXPECT_NE(completion->rss_hash.get(), 0U);
    EXPECT_EQ(completion->checksum_flags & w::rx_checksum::kIpBad, w::rx_checksum::kIpBad);
}

TEST_F(LifReceiveTest, FramesWithoutABufferAreDroppedAndCounted) {
    for (int i = 0; i < 63; ++i) {
        ASSERT_TRUE(card.receive(plain(kMac)));
    }
    int dropped = 0;
    card.on_receive_drop([&dropped] { ++dropped; });
    EXPECT_FALSE(card.receive(plain(kMac)));
    EXPECT_FALSE(card.receive(plain(kPeer)));
    EXPECT_EQ(dropped, 1) << "one that is filtered out is no loss";
    EXPECT_EQ(stat(w::LifStat::RxQueueEmpty), 1U);
    EXPECT_EQ(stat(w::LifStat::RxUnicastDropPackets), 1U);
}

TEST_F(LifReceiveTest, FrameLargerThanItsBuffersIsCompletedWithAnError) {
    EXPECT_FALSE(card.receive(plain(kMac, 1505)));
    const auto completion = next();
    ASSERT_TRUE(completion);
    EXPECT_EQ(completion->status, w::kRxStatusTooBig);
    EXPECT_EQ(completion->length.get(), 1519);
    EXPECT_TRUE(card.receive(plain(kMac, 1504)));
    EXPECT_EQ(next()->comp_index.get(), 1);
}

TEST_F(LifReceiveTest, LargeFrameFillsScatterGatherBuffersInOrder) {
    test::TestQueue& queue = driver.rx[0];
    driver.control(w::LogicalQueue::Rx, 0, w::QueueOperation::Disable);
    queue = driver.allocate_queue(6, sizeof(w::RxDescriptor), w::kRxSgStride);
    driver.remember(queue, driver.admin(TestDriver::queue_init(queue, w::LogicalQueue::Rx, 0, 1, 5)));
    w::RxDescriptor descriptor{};
    descriptor.opcode = static_cast<std::uint8_t>(w::RxOpcode::ScatterGather);
    descriptor.length.set(4096);
    descriptor.address.set(host.allocate(4096));
    std::array<std::uint64_t, 2> more = {host.allocate(4096), host.allocate(4096)};
    for (std::uint32_t i = 0; i < 2; ++i) {
        w::RxSgElement element{};
        element.address.set(more[i]);
        element.length.set(4096);
        host.store(queue.sg + i * sizeof element, element);
    }
    driver.post(queue, descriptor);
    driver.ring(queue);
    driver.control(w::LogicalQueue::Rx, 0, w::QueueOperation::Enable);
    const FrameBuilder frame = plain(kMac, 8192 - 14);
    ASSERT_TRUE(card.receive(frame));
    const auto completion = next();
    ASSERT_TRUE(completion);
    EXPECT_EQ(completion->sg_elements, 1) << "an exactly filled element must not count the next one";
    EXPECT_EQ(host.bytes(more[0], 4096)[4095], std::byte{0x5a});
    EXPECT_EQ(host.bytes(more[1], 1)[0], std::byte{0});
}

TEST_F(LifReceiveTest, NothingIsDeliveredWhileTheLinkIsDownOrTheQueueDisabled) {
    card.set_link(false);
    EXPECT_FALSE(card.receive(plain(kMac)));
    card.set_link(true);
    driver.return_admin_credits(2);
    driver.control(w::LogicalQueue::Rx, 0, w::QueueOperation::Disable);
    EXPECT_FALSE(card.receive(plain(kMac)));
    EXPECT_EQ(stat(w::LifStat::RxQueueDisabled), 1U);
    driver.control(w::LogicalQueue::Rx, 0, w::QueueOperation::Enable);
    EXPECT_TRUE(card.receive(plain(kMac))) << "buffers rung before the disable must still be there";
}

TEST_F(LifReceiveTest, RuntsAreIgnored) {
    const std::array<std::byte, 13> runt{};
    EXPECT_FALSE(card.receive(runt));
    EXPECT_FALSE(card.receive({}));
}

}  // namespace
}  // namespace ernic::ionic
