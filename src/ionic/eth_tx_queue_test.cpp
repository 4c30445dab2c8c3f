// SPDX-License-Identifier: MIT
#include "ionic/eth_tx_queue.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "ionic/test_driver.hpp"

namespace ernic::ionic {
namespace {

namespace w = wire::ionic;
using test::TestDriver;

/// Copies what it is handed.
class RecordingSink final : public net::FrameSink {
  public:
    struct Seen {
        std::vector<std::byte> data;
        std::vector<std::byte> header;
        std::optional<std::uint16_t> vlan;
        std::optional<net::Frame::Checksum> checksum;
        std::uint16_t segment_size = 0;
        std::uint32_t first_segment = 0;
        bool last = false;
    };
    void transmit(const net::Frame& frame) override {
        Seen seen;
        for (const auto& piece : frame.data) {
            seen.data.insert(seen.data.end(), piece.data, piece.data + piece.size);
        }
        seen.vlan = frame.insert_vlan;
        seen.checksum = frame.checksum;
        if (frame.segmentation) {
            seen.header.assign(frame.segmentation->header.begin(), frame.segmentation->header.end());
            seen.segment_size = frame.segmentation->segment_size;
            seen.first_segment = frame.segmentation->first_segment;
            seen.last = frame.segmentation->last;
        }
        frames.push_back(std::move(seen));
    }
    std::vector<Seen> frames;
};

struct SinkHolder {
    RecordingSink sink;
};

class TxQueueTest : private SinkHolder, public test::CardTest {
  protected:
    static constexpr std::uint16_t kHeader = 54;
    static constexpr std::uint16_t kMss = 1000;

    TxQueueTest() : test::CardTest(&sink) {
        driver.probe();
        driver.open(1);
        buffer = host.allocate(std::size_t{1} << 20U);
        for (std::size_t i = 0; i < (std::size_t{1} << 20U); ++i) {
            host.bytes(buffer + i, 1)[0] = static_cast<std::byte>(i * 7 + 1);
        }
        host.bytes(buffer, 1)[0] = std::byte{0x02};  // a unicast destination
    }
    [[nodiscard]] const std::vector<RecordingSink::Seen>& frames() const { return sink.frames; }

    w::TxDescriptor descriptor(w::TxOpcode opcode, std::uint64_t address, std::uint16_t length,
                               std::uint8_t flags = 0, std::uint8_t sg = 0) {
        w::TxDescriptor made{};
        made.command.set(w::TxDescriptor::make_command(opcode, flags, sg, address));
        made.length.set(length);
        return made;
    }
    w::TxDescriptor tso(std::uint64_t address, std::uint16_t length, bool start, bool end) {
        auto made = descriptor(
            w::TxOpcode::Tso, address, length,
            static_cast<std::uint8_t>((start ? w::kTxFlagTsoStart : 0) | (end ? w::kTxFlagTsoEnd : 0)));
        made.start_or_header.set(kHeader);
        made.offset_or_mss.set(kMss);
        return made;
    }
    void set_sg(std::uint32_t slot, std::uint32_t element, std::uint64_t address, std::uint16_t length) {
        w::TxSgElement made{};
        made.address.set(address);
        made.length.set(length);
        host.store(driver.tx[0].sg + slot * w::kTxSgStride + element * sizeof made, made);
    }
    void send(const w::TxDescriptor& made) { driver.post(driver.tx[0], made); }
    void ring() {
        driver.ring(driver.tx[0]);
        driver.run();
    }
    std::uint64_t stat(w::LifStat which) { return card.stats().lif(which); }
    std::vector<std::byte> bytes(std::uint64_t address, std::size_t size) {
        const auto from = host.bytes(address, size);
        return {from.begin(), from.end()};
    }

    std::uint64_t buffer = 0;
};

TEST_F(TxQueueTest, PlainFrameArrivesAndIsCompleted) {
    const int before = host.interrupts[1];
    send(descriptor(w::TxOpcode::Plain, buffer, 60));
    ring();
    ASSERT_EQ(frames().size(), 1U);
    EXPECT_EQ(frames()[0].data, bytes(buffer, 60));
    EXPECT_FALSE(frames()[0].vlan);
    const auto completion = driver.poll(driver.tx[0]);
    ASSERT_TRUE(completion);
    EXPECT_EQ(completion->comp_index.get(), 0);
    EXPECT_EQ(host.interrupts[1], before + 1);
    EXPECT_EQ(stat(w::LifStat::TxUnicastPackets), 1U);
    EXPECT_EQ(stat(w::LifStat::TxUnicastBytes), 60U);
}

TEST_F(TxQueueTest, OneCompletionCoversABatch) {
    for (int i = 0; i < 10; ++i) {
        send(descriptor(w::TxOpcode::Plain, buffer, 60));
    }
    ring();
    EXPECT_EQ(frames().size(), 10U);
    EXPECT_EQ(driver.poll(driver.tx[0])->comp_index.get(), 9);
    EXPECT_FALSE(driver.poll(driver.tx[0]));
}

TEST_F(TxQueueTest, ScatterGatherIsGathered) {
    set_sg(0, 0, buffer + 5000, 100);
    set_sg(0, 1, buffer + 9000, 1);
    send(descriptor(w::TxOpcode::Plain, buffer, 20, 0, 2));
    ring();
    auto expected = bytes(buffer, 20);
    const auto second = bytes(buffer + 5000, 100);
    expected.insert(expected.end(), second.begin(), second.end());
    expected.push_back(bytes(buffer + 9000, 1)[0]);
    ASSERT_EQ(frames().size(), 1U);
    EXPECT_EQ(frames()[0].data, expected);
}

TEST_F(TxQueueTest, OffloadRequestsTravelWithTheFrame) {
    auto made = descriptor(w::TxOpcode::ChecksumPartial, buffer, 100, w::kTxFlagVlan);
    made.vlan_tci.set(0x2005);
    made.start_or_header.set(34);
    made.offset_or_mss.set(16);
    send(made);
    ring();
    ASSERT_EQ(frames().size(), 1U);
    EXPECT_EQ(frames()[0].vlan, 0x2005);
    ASSERT_TRUE(frames()[0].checksum);
    EXPECT_EQ(frames()[0].checksum->start, 34);
    EXPECT_EQ(frames()[0].checksum->offset, 16);
    EXPECT_EQ(stat(w::LifStat::TxUnicastBytes), 104U);
}

TEST_F(TxQueueTest, StaleVlanWithoutFlagIsIgnored) {
    auto made = descriptor(w::TxOpcode::Plain, buffer, 100);
    made.vlan_tci.set(5);
    send(made);
    ring();
    EXPECT_FALSE(frames()[0].vlan);
}

TEST_F(TxQueueTest, TsoRunBecomesOnePacket) {
    send(tso(buffer, kHeader + kMss, true, false));
    send(tso(buffer + 10000, kMss, false, false));
    send(tso(buffer + 20000, 123, false, true));
    ring();
    ASSERT_EQ(frames().size(), 1U);
    const auto& frame = frames()[0];
    EXPECT_EQ(frame.header, bytes(buffer, kHeader));
    EXPECT_EQ(frame.data.size(), 2U * kMss + 123);
    EXPECT_EQ(frame.segment_size, kMss);
    EXPECT_EQ(frame.first_segment, 0U);
    EXPECT_TRUE(frame.last);
    EXPECT_EQ(driver.poll(driver.tx[0])->comp_index.get(), 2);
    EXPECT_EQ(stat(w::LifStat::TxUnicastPackets), 3U);
    EXPECT_EQ(stat(w::LifStat::TxUnicastBytes), 2U * kMss + 123 + 3 * kHeader);
}

TEST_F(TxQueueTest, ARunMixesSegmentsInOnePieceAndInSeveral) {
    send(tso(buffer, kHeader + kMss, true, false));
    send(tso(buffer + 10000, kMss, false, false));
    auto pieces = tso(buffer + 20000, 400, false, false);
    pieces.command.set(w::TxDescriptor::make_command(w::TxOpcode::Tso, 0, 1, buffer + 20000));
    set_sg(2, 0, buffer + 30000, kMss - 400);
    send(pieces);
    send(tso(buffer + 40000, kMss, false, false));
    send(tso(buffer + 50000, 5, false, true));
    ring();
    ASSERT_EQ(frames().size(), 1U);
    std::vector<std::byte> expected = bytes(buffer + kHeader, kMss);
    for (const auto& part :
         {bytes(buffer + 10000, kMss), bytes(buffer + 20000, 400), bytes(buffer + 30000, kMss - 400),
          bytes(buffer + 40000, kMss), bytes(buffer + 50000, 5)}) {
        expected.insert(expected.end(), part.begin(), part.end());
    }
    EXPECT_EQ(frames()[0].data, expected);
    EXPECT_EQ(stat(w::LifStat::TxUnicastPackets), 5U);
}

TEST_F(TxQueueTest, ASegmentOfTheWrongSizeSpoilsItsRun) {
    for (const std::uint16_t size : {std::uint16_t{kMss - 1}, std::uint16_t{kMss + 1}}) {
        send(tso(buffer, kHeader + kMss, true, false));
        send(tso(buffer + 10000, size, false, false));
        send(tso(buffer + 20000, kMss, false, true));
    }
    ring();
    EXPECT_TRUE(frames().empty());
    EXPECT_EQ(stat(w::LifStat::TxDescriptorDataError), 2U);
}

TEST_F(TxQueueTest, ARunIsNotCompletedBeforeItsEnd) {
    send(descriptor(w::TxOpcode::Plain, buffer, 60));
    send(tso(buffer, kHeader + kMss, true, false));
    ring();
    EXPECT_EQ(driver.poll(driver.tx[0])->comp_index.get(), 0);
    send(tso(buffer + 10000, 7, false, true));
    ring();
    EXPECT_EQ(driver.poll(driver.tx[0])->comp_index.get(), 2);
    ASSERT_EQ(frames().size(), 3U);
    EXPECT_FALSE(frames()[1].last);
    EXPECT_TRUE(frames()[2].last);
    EXPECT_EQ(frames()[2].first_segment, 1U);
    EXPECT_EQ(frames()[2].data, bytes(buffer + 10000, 7));
}

TEST_F(TxQueueTest, SingleDescriptorTso) {
    send(tso(buffer, kHeader + 10, true, true));
    ring();
    ASSERT_EQ(frames().size(), 1U);
    EXPECT_EQ(frames()[0].data, bytes(buffer + kHeader, 10));
    EXPECT_TRUE(frames()[0].last);
}

TEST_F(TxQueueTest, BadFramesAreDroppedCountedAndCompleted) {
    auto checksum = descriptor(w::TxOpcode::ChecksumPartial, buffer, 60);
    checksum.start_or_header.set(50);
    checksum.offset_or_mss.set(9);
    send(descriptor(w::TxOpcode::Plain, 0x1000, 60));             // unmapped
    send(descriptor(w::TxOpcode::Plain, buffer, 13));             // shorter than a header
    send(descriptor(w::TxOpcode::Plain, buffer, 9213));           // longer than the port takes
    send(checksum);                                               // outside the frame
    send(descriptor(w::TxOpcode::ChecksumHardware, buffer, 60));  // not offered
    send(descriptor(static_cast<w::TxOpcode>(9), buffer, 60));
    ring();
    EXPECT_TRUE(frames().empty());
    EXPECT_EQ(driver.poll(driver.tx[0])->comp_index.get(), 5);
    EXPECT_EQ(stat(w::LifStat::TxDmaError), 1U);
    EXPECT_EQ(stat(w::LifStat::TxDescriptorDataError), 5U);
    EXPECT_EQ(stat(w::LifStat::TxUnicastDropPackets), 6U);
}

TEST_F(TxQueueTest, BadRunsAreDroppedToTheirEnd) {
    send(tso(buffer, kHeader + kMss, false, false));  // no start
    ring();
    EXPECT_TRUE(driver.poll(driver.tx[0]));
    auto no_segment_size = tso(buffer, kHeader + kMss, true, false);
    no_segment_size.offset_or_mss.set(0);
    send(no_segment_size);
    send(tso(buffer, kMss, false, true));
    send(tso(buffer, kHeader + kMss, true, false));  // never ended: a new packet starts
    send(tso(buffer, kHeader + 1, true, true));
    send(tso(buffer, kHeader + kMss - 1, true, false));  // a short segment that is not the last
    send(tso(buffer, kMss, false, true));
    ring();
    EXPECT_EQ(driver.poll(driver.tx[0])->comp_index.get(), 6);
    ASSERT_EQ(frames().size(), 1U);
    EXPECT_EQ(frames()[0].data, bytes(buffer + kHeader, 1));
    EXPECT_EQ(stat(w::LifStat::TxQueueError), 3U);
}

TEST_F(TxQueueTest, LongRunIsHandedOverInPieces) {
    // 200 segments of scattered single bytes: more pieces than a span list holds.
    driver.open(1, 8);
    auto first = tso(buffer, kHeader + 1, true, false);
    first.offset_or_mss.set(1);
    send(first);
    for (std::uint32_t i = 1; i < 200; ++i) {
        auto next = tso(buffer + 3 * i, 1, false, i == 199);
        next.offset_or_mss.set(1);
        send(next);
    }
    ring();
    std::size_t bytes_seen = 0;
    for (const auto& frame : frames()) {
        EXPECT_EQ(frame.first_segment, bytes_seen);
        bytes_seen += frame.data.size();
    }
    EXPECT_GT(frames().size(), 1U);
    EXPECT_EQ(bytes_seen, 200U);
    EXPECT_TRUE(frames().back().last);
    EXPECT_EQ(stat(w::LifStat::TxUnicastPackets), 200U);
}

TEST_F(TxQueueTest, ARunGoesOnBeyondTheBudgetOfAStep) {
    driver.open(1, 8);
    for (int i = 0; i < 60; ++i) {
        send(descriptor(w::TxOpcode::Plain, buffer, 60));
    }
    for (std::uint32_t i = 0; i < 45; ++i) {
        send(tso(buffer + kMss * i, i == 0 ? kHeader + kMss : kMss, i == 0, i == 44));
    }
    ring();
    ASSERT_EQ(frames().size(), 61U);
    EXPECT_EQ(frames().back().data.size(), 45U * kMss);
}

TEST_F(TxQueueTest, AllQueuesShareTheBudgetOfAStepAndTakeTurns) {
    constexpr std::uint32_t kQueues = 4;
    constexpr std::size_t kSize = 9000;
    driver.open(kQueues, 8);
    for (std::uint32_t queue = 0; queue < kQueues; ++queue) {
        for (int i = 0; i < 200; ++i) {
            driver.post(driver.tx[queue], descriptor(w::TxOpcode::Plain, buffer, kSize - queue));
        }
        driver.ring(driver.tx[queue]);
    }
    std::size_t done = 0;
    for (std::uint32_t step = 0; step < 2 * kQueues; ++step) {
        ASSERT_TRUE(card.step());
        const auto fresh = std::span(frames()).subspan(done);
        ASSERT_FALSE(fresh.empty());
        EXPECT_LE(fresh.size(), 16U) << "each may be a system call";
        EXPECT_EQ(fresh.front().data.size(), kSize - step % kQueues) << "the next queue's turn";
        done = frames().size();
    }
    driver.run();
    EXPECT_EQ(frames().size(), 200U * kQueues);
}

TEST_F(TxQueueTest, AStepHandsOnABoundedNumberOfBytes) {
    driver.open(4, 8);
    for (std::uint32_t queue = 0; queue < 4; ++queue) {
        for (std::uint32_t i = 0; i < 200; ++i) {  // one packet without an end, far longer than any stack's
            auto made = tso(buffer, i == 0 ? kHeader + 9000 : 9000, i == 0, false);
            made.offset_or_mss.set(9000);
            driver.post(driver.tx[queue], made);
        }
        driver.ring(driver.tx[queue]);
    }
    std::size_t done = 0;
    for (bool more = true; more;) {
        more = card.step();
        std::size_t bytes_seen = 0;
        for (const auto& frame : std::span(frames()).subspan(done)) {
            bytes_seen += frame.data.size();
        }
        done = frames().size();
        EXPECT_LE(bytes_seen, 256U * 1024 + 2 * kMaxTsoChunk);
    }
    EXPECT_GT(done, 100U);
}

TEST_F(TxQueueTest, DisabledQueueRemembersItsDoorbell) {
    driver.control(w::LogicalQueue::Tx, 0, w::QueueOperation::Disable);
    send(descriptor(w::TxOpcode::Plain, buffer, 60));
    ring();
    EXPECT_TRUE(frames().empty());
    driver.control(w::LogicalQueue::Tx, 0, w::QueueOperation::Enable);
    driver.run();
    EXPECT_EQ(frames().size(), 1U);
    EXPECT_EQ(driver.poll(driver.tx[0])->comp_index.get(), 0);
}

TEST_F(TxQueueTest, RepeatedDoorbellsAreHarmlessAndColoursAlternate) {
    for (int i = 0; i < 300; ++i) {
        send(descriptor(w::TxOpcode::Plain, buffer, 60));
        ring();
        ring();
        const auto completion = driver.poll(driver.tx[0]);
        ASSERT_TRUE(completion) << i;
        EXPECT_EQ(completion->comp_index.get(), i % 64);
    }
    EXPECT_EQ(frames().size(), 300U);
}

TEST_F(TxQueueTest, MulticastAndBroadcastAreCountedApart) {
    host.bytes(buffer, 1)[0] = std::byte{0x01};
    send(descriptor(w::TxOpcode::Plain, buffer, 60));
    ring();
    for (auto& byte : host.bytes(buffer, 6)) {
        byte = std::byte{0xff};
    }
    send(descriptor(w::TxOpcode::Plain, buffer, 60));
    ring();
    EXPECT_EQ(stat(w::LifStat::TxMulticastPackets), 1U);
    EXPECT_EQ(stat(w::LifStat::TxBroadcastPackets), 1U);
    EXPECT_EQ(metric("ionic.tx.frames"), 2U);
}

}  // namespace
}  // namespace ernic::ionic
