// SPDX-License-Identifier: MIT
#include "net/faults.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace ernic::net {
namespace {

constexpr wire::MacAddress kGuest{{0x02, 0, 0, 0, 0, 1}};
constexpr wire::MacAddress kPeer{{0x02, 0, 0, 0, 0, 2}};
constexpr Nanoseconds kMillisecond = 1'000'000;

/// Keeps what it gets.
class Host final : public Port, public FrameSink {
  public:
    void deliver(const Message& message) override {
        psns.push_back(message.psn);
        operands.push_back(message.swap_add);
        if (message.payload != nullptr) {
            payload.assign(message.payload->bytes(), std::byte{0});
            mem::copy(payload, *message.payload);
        }
    }
    void transmit(const Frame& frame) override {
        std::vector<std::byte> bytes(frame.data.bytes());
        mem::copy(bytes, frame.data);
        frames.push_back(bytes);
        checksum_valid.push_back(frame.checksum_valid);
        pending_checksum.push_back(frame.checksum.has_value());
    }

    std::vector<std::uint32_t> psns;
    std::vector<std::uint64_t> operands;
    std::vector<std::byte> payload;
    std::vector<std::vector<std::byte>> frames;
    std::vector<bool> checksum_valid;
    std::vector<bool> pending_checksum;
};

class FaultsTest : public testing::Test {
  protected:
    FaultsTest() {
        segment.attach(guest, kGuest);
        segment.attach(peer, kPeer);
        guest_port.connect(&guest);
        peer_port.connect(&peer);
        segment.set_guest(guest, guest_port);
        route.source = kGuest;
        route.destination = kPeer;
        back.source = kPeer;
        back.destination = kGuest;
    }

    Faults::Id fault(std::string_view text) {
        const auto id = faults.add(text);
        EXPECT_TRUE(id) << (id ? "" : id.error().message);
        return id ? *const_cast<Result<Faults::Id>&>(id) : 0;
    }
    void send(std::uint32_t psn, MessageKind kind = MessageKind::Write, std::uint32_t to_qpn = 5,
              std::size_t size = 100) {
        mem::SpanList list;
        list.add(data.data(), size);
        Message message;
        message.route = &route;
        message.kind = kind;
        message.psn = psn;
        message.destination_qpn = to_qpn;
        message.source_qpn = 9;
        message.length = size;
        message.payload = kind == MessageKind::Write ? &list : nullptr;
        segment.send(message);
    }
    /// An IPv4 frame whose byte behind the header is `number`.
    void send_frame(std::uint8_t number, std::uint8_t protocol = 17, bool from_guest = true,
                    std::optional<Frame::Checksum> checksum = {}) {
        std::vector<std::byte> bytes(64);
        wire::EthernetHeader ethernet{from_guest ? kPeer : kGuest, from_guest ? kGuest : kPeer, be16(0x0800)};
        wire::Ipv4Header ip{};
        ip.version_ihl = 0x45;
        ip.protocol = protocol;
        std::memcpy(bytes.data(), &ethernet, sizeof ethernet);
        std::memcpy(bytes.data() + sizeof ethernet, &ip, sizeof ip);
        bytes[40] = std::byte{number};
        mem::SpanList list;
        list.add(bytes.data(), bytes.size());
        (from_guest ? guest_port : peer_port)
            .transmit({.data = list,
                       .insert_vlan = {},
                       .checksum = checksum,
                       .checksum_valid = !checksum,
                       .segmentation = {}});
    }
    std::vector<int> frame_numbers() const {
        std::vector<int> numbers;
        for (const auto& frame : peer.frames) {
            numbers.push_back(std::to_integer<int>(frame[40]));
        }
        return numbers;
    }
    void pass_time(Nanoseconds by) {
        clock.advance(by);
        loop.run_once(false);
    }
    std::uint64_t number(const std::string& name) {
        metrics::Registry registry;
        faults.register_metrics(registry);
        return registry.to_json()["faults"][name].get<std::uint64_t>();
    }

    FakeClock clock;
    EventLoop loop{clock};
    Segment segment{PayloadMode::Preserve, &clock};
    FramePort guest_port{segment.bridge(), "guest"};
    FramePort peer_port{segment.bridge(), "peer"};
    Host guest;
    Host peer;
    Link link;
    Faults faults{segment, link, loop, log::Logger(log::null_sink(), "")};
    Route route;
    Route back;
    std::vector<std::byte> data = std::vector<std::byte>(300'000, std::byte{0x55});
};

using Numbers = std::vector<std::uint32_t>;

TEST_F(FaultsTest, ALargePacketOfHeadersAloneTakesTheRoomOfItsHeaders) {
    fault("rate=1Gbit");
    std::vector<std::byte> header(54);
    const wire::EthernetHeader ethernet{kPeer, kGuest, be16(0x0800)};
    std::memcpy(header.data(), &ethernet, sizeof ethernet);
    guest_port.transmit({.data = mem::SpanList(),
                         .insert_vlan = {},
                         .checksum = {},
                         .segmentation = Frame::Segmentation{
                             .header = header, .segment_size = 1448, .first_segment = 0, .last = true}});
    pass_time(kMillisecond);
    EXPECT_EQ(peer.frames.size(), 1U);
}

TEST_F(FaultsTest, DropHitsEveryNthAfterTheFirstOnesAndEndsByItself) {
    const auto id = fault("drop,after=1,every=2,count=2");
    for (std::uint32_t psn = 0; psn < 5; ++psn) {
        send(psn);
    }
    EXPECT_EQ(peer.psns, (Numbers{0, 1, 3}));
    EXPECT_TRUE(faults.list().empty()) << "two hits, and over";
    EXPECT_FALSE(faults.clear(id));
    send(5);
    send(6);
    EXPECT_EQ(peer.psns, (Numbers{0, 1, 3, 5, 6}));
    EXPECT_EQ(number("drops"), 2U);
    EXPECT_EQ(number("active"), 0U);
}

TEST_F(FaultsTest, AListShowsWhatWasSeenAndHitAndClearingEndsIt) {
    const auto first = fault("drop,every=3");
    const auto second = fault("duplicate,opcode=read");
    EXPECT_NE(first, second);
    send(1);
    send(2);
    send(3);
    const auto all = faults.list();
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[0].id, first);
    EXPECT_EQ(all[0].text, "drop,every=3");
    EXPECT_EQ(all[0].seen, 3U);
    EXPECT_EQ(all[0].hits, 1U);
    EXPECT_EQ(all[1].seen, 0U);
    EXPECT_TRUE(faults.clear(first));
    send(4);
    EXPECT_EQ(peer.psns, (Numbers{1, 2, 4}));
    EXPECT_EQ(faults.clear_all(), 1U);
    EXPECT_EQ(faults.clear_all(), 0U);
}

TEST_F(FaultsTest, TheSameSeedHitsTheSameOnes) {
    const auto run = [this](const char* spec) {
        peer.psns.clear();
        const auto id = fault(spec);
        for (std::uint32_t psn = 0; psn < 200; ++psn) {
            send(psn);
        }
        faults.clear(id);
        return peer.psns;
    };
    const Numbers once = run("drop,probability=0.3,seed=5");
    EXPECT_EQ(run("drop,probability=0.3,seed=5"), once);
    EXPECT_NE(run("drop,probability=0.3,seed=6"), once);
    EXPECT_GT(once.size(), 100U);
    EXPECT_LT(once.size(), 180U);
}

TEST_F(FaultsTest, SelectorsSelect) {
    const auto hits = [this](const char* spec, auto act) {
        const auto id = fault(spec);
        act();
        const std::uint64_t count = faults.list().back().hits;
        faults.clear(id);
        return count;
    };
    const auto write = [this] { send(1); };
    const auto ack = [this] { send(1, MessageKind::Acknowledge); };
    const auto frame = [this] { send_frame(1); };
    const auto from_peer = [this] { send_frame(1, 17, false); };
    EXPECT_EQ(hits("drop,opcode=write", write), 1U);
    EXPECT_EQ(hits("drop,opcode=write", ack), 0U);
    EXPECT_EQ(hits("drop,opcode=response", ack), 1U);
    EXPECT_EQ(hits("drop,opcode=nak", ack), 0U);
    EXPECT_EQ(hits("drop,qp=5", write), 1U);
    EXPECT_EQ(hits("drop,qp=9", write), 1U);
    EXPECT_EQ(hits("drop,qp=6", write), 0U);
    EXPECT_EQ(hits("drop,what=frames", write), 0U);
    EXPECT_EQ(hits("drop,what=messages", frame), 0U);
    EXPECT_EQ(hits("drop", frame), 1U);
    EXPECT_EQ(hits("drop,direction=from-guest", write), 1U);
    EXPECT_EQ(hits("drop,direction=to-guest", write), 0U);
    EXPECT_EQ(hits("drop,direction=to-guest", from_peer), 1U);
    EXPECT_EQ(hits("drop,direction=to-guest", frame), 0U);
    EXPECT_EQ(hits("drop,to=02:00:00:00:00:02", write), 1U);
    EXPECT_EQ(hits("drop,to=02:00:00:00:00:02", from_peer), 0U);
    EXPECT_EQ(hits("drop,from=02-00-00-00-00-02", from_peer), 1U);
    EXPECT_EQ(hits("drop,protocol=udp", frame), 1U);
    EXPECT_EQ(hits("drop,protocol=icmp", frame), 0U);
    EXPECT_EQ(hits("drop,ethertype=ipv4", frame), 1U);
    EXPECT_EQ(hits("drop,ethertype=vlan", frame), 0U);
}

TEST_F(FaultsTest, WhatAGuestSendsToItselfGoesBothWays) {
    route.destination = kGuest;
    for (const char* const spec : {"drop,direction=from-guest", "drop,direction=to-guest"}) {
        const auto id = fault(spec);
        send(1);
        EXPECT_EQ(faults.list()[0].hits, 1U) << spec;
        faults.clear(id);
    }
}

TEST_F(FaultsTest, ADelayedMessageIsACopyThatComesLater) {
    fault("delay=5ms,opcode=write");
    send(1);
    send(2, MessageKind::Acknowledge);
    data.assign(data.size(), std::byte{0});
    route.destination = kGuest;
    EXPECT_EQ(peer.psns, (Numbers{2}));
    EXPECT_EQ(number("queue_bytes"), 100U);
    pass_time(5 * kMillisecond - 1);
    EXPECT_EQ(peer.psns.size(), 1U);
    pass_time(1);
    EXPECT_EQ(peer.psns, (Numbers{2, 1}));
    EXPECT_EQ(peer.payload, std::vector<std::byte>(100, std::byte{0x55}));
    EXPECT_EQ(number("queue_bytes"), 0U);
    EXPECT_EQ(number("queue_pieces"), 0U);
}

TEST_F(FaultsTest, EqualDelaysKeepTheOrderAndClearingSendsAtOnce) {
    const auto id = fault("delay=5s");
    for (std::uint32_t psn = 0; psn < 100; ++psn) {
        send(psn);
    }
    send_frame(7);
    EXPECT_TRUE(peer.psns.empty());
    faults.clear(id);
    pass_time(0);
    pass_time(0);
    ASSERT_EQ(peer.psns.size(), 100U);
    EXPECT_TRUE(std::is_sorted(peer.psns.begin(), peer.psns.end()));
    EXPECT_EQ(frame_numbers(), (std::vector<int>{7}));
}

TEST_F(FaultsTest, WhatDoesNotFitIsDroppedAndCounted) {
    fault("delay=1s");
    constexpr std::size_t kFit = HeldQueue::kMaxBytes / 300'000;
    for (std::uint32_t psn = 0; psn < kFit + 3; ++psn) {
        send(psn, MessageKind::Write, 5, 300'000);
    }
    EXPECT_EQ(number("overflow_drops"), 3U);
    EXPECT_LE(number("queue_bytes"), HeldQueue::kMaxBytes);
    faults.clear_all();
    while (number("queue_pieces") != 0) {
        pass_time(0);
    }
    EXPECT_EQ(peer.psns.size(), kFit);
}

TEST_F(FaultsTest, DuplicatesComeInOneGo) {
    fault("duplicate=2,every=2");
    send(1);
    send(2);
    send_frame(3);
    send_frame(4);
    EXPECT_EQ(peer.psns, (Numbers{1, 2, 2, 2}));
    EXPECT_EQ(frame_numbers(), (std::vector<int>{3, 4, 4, 4}));
}

TEST_F(FaultsTest, ReorderedOnesAreOvertakenByAsManyAsAskedFor) {
    fault("reorder=2,count=1");
    fault("reorder,what=frames,after=1,every=2");
    send(1);
    send(2);
    EXPECT_EQ(peer.psns, (Numbers{2})) << "over, but what it keeps back still waits";
    pass_time(10 * kMillisecond);
    EXPECT_EQ(peer.psns, (Numbers{2, 1})) << "nobody else came: not for ever";
    for (std::uint8_t frame = 1; frame <= 5; ++frame) {
        send_frame(frame);
    }
    EXPECT_EQ(frame_numbers(), (std::vector<int>{1, 2, 4, 3}));
    send_frame(6);
    EXPECT_EQ(frame_numbers(), (std::vector<int>{1, 2, 4, 3, 6, 5}));
}

TEST_F(FaultsTest, CorruptFlipsBitsOfACopy) {
    fault("corrupt=2");
    send(1);
    EXPECT_EQ(data, std::vector<std::byte>(300'000, std::byte{0x55})) << "the sender's memory";
    int flipped = 0;
    for (const std::byte byte : peer.payload) {
        flipped += __builtin_popcount(std::to_integer<unsigned>(byte ^ std::byte{0x55}));
    }
    EXPECT_EQ(flipped, 2);
    send(2, MessageKind::FetchAdd, 5, 0);
    EXPECT_NE(peer.operands.back(), 0U);
    send(3, MessageKind::Acknowledge, 5, 0);
    EXPECT_EQ(faults.list()[0].seen, 2U) << "an acknowledgement has nothing to corrupt";
}

TEST_F(FaultsTest, ACorruptedFrameHasItsChecksumFinishedSoThatTheReceiverCanNotice) {
    fault("corrupt,what=frames");
    send_frame(1, 17, true, Frame::Checksum{34, 6});
    ASSERT_EQ(peer.frames.size(), 1U);
    EXPECT_FALSE(peer.pending_checksum[0]);
    EXPECT_FALSE(peer.checksum_valid[0]);
}

TEST_F(FaultsTest, ARateSpreadsTrafficOverTimeAndDropsWhatIsTooMuch) {
    fault("rate=1Mbit,what=frames");
    for (std::uint8_t frame = 1; frame <= 4; ++frame) {
        send_frame(frame);
    }
    // 64 bytes are 512 us.
    EXPECT_TRUE(peer.frames.empty());
    pass_time(512'000);
    EXPECT_EQ(peer.frames.size(), 1U);
    pass_time(512'000 * 3 - 1);
    EXPECT_EQ(peer.frames.size(), 3U);
    pass_time(1);
    EXPECT_EQ(frame_numbers(), (std::vector<int>{1, 2, 3, 4}));
    for (int i = 0; i < 3'000; ++i) {
        send_frame(9);
    }
    EXPECT_GT(number("overflow_drops"), 900U) << "more than a second's worth";
}

TEST_F(FaultsTest, ALinkDownStopsEverythingForItsTime) {
    std::vector<bool> heard;
    link.on_change([&heard](bool up) { heard.push_back(up); });
    fault("link-down=2s");
    EXPECT_FALSE(link.up());
    send(1);
    send_frame(1);
    send_frame(2, 17, false);
    EXPECT_TRUE(peer.psns.empty() && peer.frames.empty() && guest.frames.empty());
    EXPECT_EQ(number("link_down_drops"), 3U);
    pass_time(2'000 * kMillisecond);
    EXPECT_TRUE(link.up());
    EXPECT_TRUE(faults.list().empty());
    send(2);
    EXPECT_EQ(peer.psns, (Numbers{2}));
    EXPECT_EQ(heard, (std::vector<bool>{false, true}));
}

TEST_F(FaultsTest, ALinkDownCanWaitForSomethingAndComeAgain) {
    fault("link-down=1s,protocol=icmp,every=2,count=2");
    for (int round = 0; round < 2; ++round) {
        send_frame(1, 1);
        EXPECT_TRUE(link.up());
        send_frame(2, 1);
        EXPECT_FALSE(link.up()) << round;
        pass_time(1'000 * kMillisecond);
        EXPECT_TRUE(link.up());
    }
    EXPECT_TRUE(faults.list().empty());
    EXPECT_EQ(number("link_downs"), 2U);
}

TEST_F(FaultsTest, AnOutageWithoutEndIsClearedAndOthersHaveTheirSayToo) {
    const auto first = fault("link-down");
    const auto second = fault("link-down=1s");
    link.set(Link::Source::Operator, false);
    faults.clear(first);
    pass_time(1'000 * kMillisecond);
    EXPECT_FALSE(faults.clear(second)) << "over";
    EXPECT_FALSE(link.up());
    send(1);
    EXPECT_TRUE(peer.psns.empty()) << "down is down, whoever says so";
    link.set(Link::Source::Operator, true);
    send(2);
    EXPECT_EQ(peer.psns, (Numbers{2}));
}

TEST_F(FaultsTest, SeveralFaultsWorkTogether) {
    fault("delay=1ms");
    fault("duplicate");
    fault("corrupt");
    send(1);
    EXPECT_TRUE(peer.psns.empty());
    pass_time(kMillisecond);
    EXPECT_EQ(peer.psns, (Numbers{1, 1}));
}

TEST_F(FaultsTest, ClearingAllReleasesWhatFaultsThatAreOverKeepBack) {
    const auto over = fault("delay=60s,count=1");
    send(1);
    EXPECT_FALSE(faults.clear(over)) << "over";
    EXPECT_TRUE(peer.psns.empty());
    EXPECT_EQ(faults.clear_all(), 0U);
    pass_time(0);
    EXPECT_EQ(peer.psns, (Numbers{1}));
    EXPECT_EQ(number("queue_pieces"), 0U);
}

TEST_F(FaultsTest, ClearingAllKeepsTheOrderOfTimes) {
    fault("delay=60s,opcode=write");
    fault("delay=30s,opcode=send");
    send(1, MessageKind::Write);
    send(2, MessageKind::Send);
    faults.clear_all();
    pass_time(0);
    EXPECT_EQ(peer.psns, (Numbers{2, 1}));
}

TEST_F(FaultsTest, ThereIsRoomForSoManyAndNoMore) {
    for (std::size_t i = 0; i < Faults::kMaxFaults; ++i) {
        fault("drop,qp=1");
    }
    const auto refused = faults.add("drop");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::NoSpace);
    EXPECT_EQ(faults.add("dorp").error().code, Errc::InvalidArgument);
}

TEST_F(FaultsTest, NothingIsLeftBehindWhenItEnds) {
    {
        Faults others(segment, link, loop, log::Logger(log::null_sink(), ""));
        ASSERT_TRUE(others.add("drop"));
    }
    send(1);
    EXPECT_EQ(peer.psns, (Numbers{1}));
}

}  // namespace
}  // namespace ernic::net
