// SPDX-License-Identifier: MIT
#include "net/segmentation.hpp"

#include <gtest/gtest.h>

#include <array>
#include <list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ernic::net {
namespace {

// Made by another program (Python's struct), so that a mistake here is not made there as well.
// IPv4: 10.0.0.1 to 10.0.0.2, id fffe, TCP with a time stamp, sequence fffffffe, flags CWR PSH ACK FIN.
// IPv6: fd00::1 to fd00::2, sequence 1000, flags PSH ACK; the expected ones carry VLAN tag 6005.
// UDP: 1111 to 2222.
constexpr const char* kTemplate4 =
    "02000000000202000000000108004500003efffe4000400600000a0000010a00000212340050fffffffe0102"
    "030480990200140900000101080a0000000100000002";
constexpr const char* kSuper4 =
    "02000000000202000000000108004500003efffe4000400626b90a0000010a00000212340050fffffffe0102"
    "030480990200143300000101080a0000000100000002";
constexpr const char* kTemplate6 =
    "02000000000202000000000186dd6001234500000640fd000000000000000000000000000001fd0000000000"
    "0000000000000000000212340050000003e80102030450180200fa0a0000";
constexpr const char* kSuper6 =
    "0200000000020200000000018100600586dd60012345001b0640fd000000000000000000000000000001fd00"
    "000000000000000000000000000212340050000003e80102030450180200fa250000";
constexpr const char* kChunk6 =
    "02000000000202000000000186dd60012345001e0640fd000000000000000000000000000001fd0000000000"
    "0000000000000000000212340050000003f20102030450100200fa280000";
constexpr const char* kUdp =
    "02000000000202000000000108004500002100074000401126c30a0000010a000002045708ae000d14216865"
    "6c6c6f";
constexpr const char* kUdpFinished =
    "02000000000202000000000108004500002100074000401126c30a0000010a000002045708ae000d9afa6865"
    "6c6c6f";
constexpr const char* kUdpZero =
    "02000000000202000000000108004500001e00074000401126c60a0000010a000002045708ae000a141eded2";
constexpr std::array<const char*, 4> kSegments4 = {
    "020000000002020000000001080045000037fffe4000400626c00a0000010a00000212340050fffffffe0102"
    "030480900200854900000101080a0000000100000002616263",
    "020000000002020000000001080045000037ffff4000400626bf0a0000010a00000212340050000000010102"
    "0304801002007fc400000101080a0000000100000002646566",
    "02000000000202000000000108004500003700004000400626bf0a0000010a00000212340050000000040102"
    "03048010020079be00000101080a0000000100000002676869",
    "02000000000202000000000108004500003500014000400626c00a0000010a00000212340050000000070102"
    "030480190200e01c00000101080a00000001000000026a"};
constexpr std::array<const char*, 2> kSegments6 = {
    "0200000000020200000000018100600586dd6001234500190640fd000000000000000000000000000001fd00"
    "000000000000000000000000000212340050000003e8010203045010020002f500003031323334",
    "0200000000020200000000018100600586dd6001234500160640fd000000000000000000000000000001fd00"
    "000000000000000000000000000212340050000003ed0102030450180200641900003536"};

std::vector<std::byte> from_hex(std::string_view hex) {
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
        bytes.push_back(static_cast<std::byte>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
    }
    return bytes;
}

std::string to_hex(Bytes bytes) {
    static constexpr std::string_view kDigits = "0123456789abcdef";
    std::string hex;
    for (const std::byte byte : bytes) {
        hex += kDigits[std::to_integer<unsigned>(byte) >> 4U];
        hex += kDigits[std::to_integer<unsigned>(byte) & 0xfU];
    }
    return hex;
}

class Collector final : public WireFrameSink {
  public:
    void take(const WireFrame& frame) override {
        frames.push_back(to_hex(frame.head) + to_hex(frame.tail));
        valid.push_back(frame.checksum_valid);
    }
    std::vector<std::string> frames;
    std::vector<bool> valid;
};

/// Bytes in guest memory, cut where the test says.
class Data {
  public:
    explicit Data(std::vector<std::byte> bytes, const std::vector<std::size_t>& borders = {})
        : bytes_(std::move(bytes)) {
        std::size_t at = 0;
        for (const std::size_t border : borders) {
            add(at, border);
            at = border;
        }
        add(at, bytes_.size());
    }
    explicit Data(std::string_view text, const std::vector<std::size_t>& borders = {})
        : Data(from_text(text), borders) {}
    Data(const Data&) = delete;
    Data& operator=(const Data&) = delete;

    [[nodiscard]] Frame frame() const {
        return {.data = spans_, .insert_vlan = {}, .checksum = {}, .segmentation = {}};
    }

  private:
    static std::vector<std::byte> from_text(std::string_view text) {
        const Bytes raw = std::as_bytes(std::span(text));
        return {raw.begin(), raw.end()};
    }
    /// A copy of its own for each piece: pieces that touch would be merged.
    void add(std::size_t from, std::size_t to) {
        pieces_.emplace_back(bytes_.begin() + static_cast<std::ptrdiff_t>(from),
                             bytes_.begin() + static_cast<std::ptrdiff_t>(to));
        pieces_.back().reserve(to - from + 8);
        spans_.add(pieces_.back().data(), pieces_.back().size());
    }

    std::vector<std::byte> bytes_;
    std::list<std::vector<std::byte>> pieces_;
    mem::SpanList spans_;
};

class FinishTest : public testing::Test {
  protected:
    bool finish(const Frame& frame) { return finisher.finish(frame, out); }

    FrameFinisher finisher;
    Collector out;
};

TEST_F(FinishTest, AFrameWithoutPendingWorkPassesUntouched) {
    const Data data(from_hex(kUdp));
    const Frame frame = data.frame();
    ASSERT_TRUE(finish(frame));
    EXPECT_EQ(out.frames, std::vector<std::string>{kUdp});
    EXPECT_FALSE(out.valid[0]);
}

TEST_F(FinishTest, PiecesAreJoined) {
    const Data data(from_hex(kUdp), {1, 13, 40});
    ASSERT_TRUE(finish(data.frame()));
    EXPECT_EQ(out.frames, std::vector<std::string>{kUdp});
}

TEST_F(FinishTest, PartialChecksumIsFinishedWhereverTheBordersLie) {
    const auto packet = from_hex(kUdp);
    for (std::size_t border = 0; border <= packet.size(); ++border) {
        const Data data(packet, {border});
        Frame frame = data.frame();
        frame.checksum = {34, 6};
        ASSERT_TRUE(finish(frame));
        EXPECT_EQ(out.frames.back(), kUdpFinished) << border;
        EXPECT_TRUE(out.valid.back());
    }
}

TEST_F(FinishTest, LongFramesAreSummedToTheirEnd) {
    // The payload is 2 x 500 bytes that add up to nothing in one's complement.
    auto packet = from_hex(kUdp);
    for (int i = 0; i < 500; ++i) {
        packet.insert(packet.begin() + 42, std::byte{0xff});
        packet.insert(packet.begin() + 42, std::byte{0xff});
    }
    const Data data(packet, {300, 301});
    Frame frame = data.frame();
    frame.checksum = {34, 6};
    ASSERT_TRUE(finish(frame));
    EXPECT_EQ(out.frames.back().substr(0, 84), std::string(kUdpFinished).substr(0, 84));
    EXPECT_EQ(out.frames.back().size(), 2 * packet.size());
}

TEST_F(FinishTest, AUdpChecksumOfZeroIsWrittenAsAllOnes) {
    const Data data(from_hex(kUdpZero));
    Frame frame = data.frame();
    frame.checksum = {34, 6};
    ASSERT_TRUE(finish(frame));
    EXPECT_EQ(out.frames[0].substr(80, 4), "ffff");
}

TEST_F(FinishTest, ATagGoesBehindTheMacAddresses) {
    const Data data(from_hex(kUdp), {5});
    Frame frame = data.frame();
    frame.insert_vlan = 0x6005;
    frame.checksum = {34, 6};
    ASSERT_TRUE(finish(frame));
    std::string expected = kUdpFinished;
    expected.insert(24, "81006005");
    EXPECT_EQ(out.frames[0], expected);
}

TEST_F(FinishTest, TcpOverIpv4IsCutIntoOddSegments) {
    const auto header = from_hex(kTemplate4);
    const Data data("abcdefghij", {4});
    Frame frame = data.frame();
    frame.segmentation = Frame::Segmentation{.header = header, .segment_size = 3, .last = true};
    ASSERT_TRUE(finish(frame));
    EXPECT_EQ(out.frames, std::vector<std::string>(kSegments4.begin(), kSegments4.end()));
    EXPECT_EQ(out.valid, std::vector<bool>(4, true));
}

TEST_F(FinishTest, TcpOverIpv6IsCutAndTagged) {
    const auto header = from_hex(kTemplate6);
    const Data data("0123456");
    Frame frame = data.frame();
    frame.insert_vlan = 0x6005;
    frame.segmentation = Frame::Segmentation{.header = header, .segment_size = 5, .last = true};
    ASSERT_TRUE(finish(frame));
    EXPECT_EQ(out.frames, std::vector<std::string>(kSegments6.begin(), kSegments6.end()));
}

TEST_F(FinishTest, PartsOfAPacketAreCutAsTheWholeWouldBe) {
    const auto header = from_hex(kTemplate4);
    const Data first("abcdef");
    Frame frame = first.frame();
    frame.segmentation = Frame::Segmentation{.header = header, .segment_size = 3};
    ASSERT_TRUE(finish(frame));
    const Data second("ghij");
    Frame rest = second.frame();
    rest.segmentation =
        Frame::Segmentation{.header = header, .segment_size = 3, .first_segment = 2, .last = true};
    ASSERT_TRUE(finish(rest));
    EXPECT_EQ(out.frames, std::vector<std::string>(kSegments4.begin(), kSegments4.end()));
}

TEST_F(FinishTest, NonsenseIsRefused) {
    const Data data(from_hex(kUdp));
    Frame outside = data.frame();
    outside.checksum = {40, 6};
    EXPECT_FALSE(finish(outside));
    outside.checksum = {0xffff, 0xffff};
    EXPECT_FALSE(finish(outside));

    const auto udp = from_hex(kUdp);
    Frame not_tcp = data.frame();
    not_tcp.segmentation = Frame::Segmentation{.header = Bytes(udp).first(42), .segment_size = 100};
    EXPECT_FALSE(finish(not_tcp));
    const auto header = from_hex(kTemplate4);
    for (std::size_t size = 0; size < header.size(); ++size) {
        Frame cut_short = data.frame();
        cut_short.segmentation = Frame::Segmentation{.header = Bytes(header).first(size), .segment_size = 9};
        EXPECT_FALSE(finish(cut_short)) << size;
    }
    Frame no_size = data.frame();
    no_size.segmentation = Frame::Segmentation{.header = header};
    EXPECT_FALSE(finish(no_size));
    const std::vector<std::byte> huge(4000);
    Frame long_header = data.frame();
    long_header.segmentation = Frame::Segmentation{.header = huge, .segment_size = 9};
    EXPECT_FALSE(finish(long_header));
    const Data runt("0123456789abc");
    EXPECT_FALSE(finish(runt.frame()));
    EXPECT_TRUE(out.frames.empty());
}

TEST(SuperFrame, Ipv4HeadersCoverTheWholePacket) {
    const auto header = from_hex(kTemplate4);
    const Data data("abcdefghij");
    Frame frame = data.frame();
    frame.segmentation = Frame::Segmentation{.header = header, .segment_size = 3, .last = true};
    std::array<std::byte, kMaxHeader> buffer;
    const auto packet = super_frame(frame, buffer);
    ASSERT_TRUE(packet);
    EXPECT_EQ(to_hex(packet->header), kSuper4);
    EXPECT_EQ(packet->checksum.start, 34);
    EXPECT_EQ(packet->checksum.offset, 16);
    EXPECT_TRUE(packet->ipv4);
    EXPECT_TRUE(packet->ecn);
    EXPECT_EQ(packet->segment_size, 3);
}

TEST(SuperFrame, Ipv6WithTag) {
    const auto header = from_hex(kTemplate6);
    const Data data("0123456");
    Frame frame = data.frame();
    frame.insert_vlan = 0x6005;
    frame.segmentation = Frame::Segmentation{.header = header, .segment_size = 7, .last = true};
    std::array<std::byte, kMaxHeader> buffer;
    const auto packet = super_frame(frame, buffer);
    ASSERT_TRUE(packet);
    EXPECT_EQ(to_hex(packet->header), kSuper6);
    EXPECT_EQ(packet->checksum.start, 58);
    EXPECT_FALSE(packet->ipv4);
    EXPECT_FALSE(packet->ecn);
    EXPECT_EQ(packet->segment_size, 0) << "one segment needs no cutting";
}

TEST(SuperFrame, APartInTheMiddleOfAPacket) {
    const auto header = from_hex(kTemplate6);
    const Data data("56789abcde");
    Frame frame = data.frame();
    frame.segmentation = Frame::Segmentation{.header = header, .segment_size = 5, .first_segment = 2};
    std::array<std::byte, kMaxHeader> buffer;
    const auto packet = super_frame(frame, buffer);
    ASSERT_TRUE(packet);
    EXPECT_EQ(to_hex(packet->header), kChunk6);
}

TEST(SuperFrame, MoreThanAnIpLengthCanSayIsRefused) {
    const auto header = from_hex(kTemplate4);
    const Data data(std::vector<std::byte>(65535));
    Frame frame = data.frame();
    frame.segmentation = Frame::Segmentation{.header = header, .segment_size = 1000};
    std::array<std::byte, kMaxHeader> buffer;
    EXPECT_FALSE(super_frame(frame, buffer));
}

}  // namespace
}  // namespace ernic::net
