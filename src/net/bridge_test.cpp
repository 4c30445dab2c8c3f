// SPDX-License-Identifier: MIT
#include "net/bridge.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "metrics/report.hpp"
#include "net/segment.hpp"

namespace ernic::net {
namespace {

constexpr wire::MacAddress kA{{0x02, 0, 0, 0, 0, 0xa}};
constexpr wire::MacAddress kB{{0x02, 0, 0, 0, 0, 0xb}};
constexpr wire::MacAddress kC{{0x02, 0, 0, 0, 0, 0xc}};
constexpr wire::MacAddress kBroadcast{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
constexpr wire::MacAddress kMulticast{{0x33, 0x33, 0, 0, 0, 1}};

class Device final : public FrameSink {
  public:
    void transmit(const Frame& frame) override {
        ++frames;
        bytes += frame.data.bytes();
    }
    [[nodiscard]] std::size_t room() const override { return left; }

    int frames = 0;
    std::size_t bytes = 0;
    std::size_t left = SIZE_MAX;
};

class Watcher final : public Observer {
  public:
    void on_frame(const Frame& /*frame*/) override { ++frames; }
    void on_message(const Message& /*message*/) override {}
    int frames = 0;
};

class BridgeTest : public testing::Test {
  protected:
    BridgeTest() {
        a.connect(&device_a);
        b.connect(&device_b);
        c.connect(&device_c);
    }

    static void send(FramePort& from, const wire::MacAddress& source, const wire::MacAddress& destination,
                     std::size_t size = 60) {
        std::vector<std::byte> bytes(size);
        std::memcpy(bytes.data(), &destination, sizeof destination);
        std::memcpy(bytes.data() + sizeof destination, &source, sizeof source);
        mem::SpanList data;
        // In two pieces, the border inside the addresses.
        data.add(bytes.data(), 7);
        data.add(bytes.data() + 7, size - 7);
        from.transmit({.data = data, .insert_vlan = {}, .checksum = {}, .segmentation = {}});
    }
    /// How many frames A, B and C have got since the last question.
    std::vector<int> got() {
        std::vector<int> counts = {device_a.frames, device_b.frames, device_c.frames};
        device_a.frames = device_b.frames = device_c.frames = 0;
        return counts;
    }
    std::uint64_t metric(const std::string& name) {
        metrics::Registry registry;
        segment.register_metrics(registry);
        for (const FramePort* port : {&a, &b, &c}) {
            port->register_metrics(registry);
        }
        const auto value = metrics::value_of(registry, name);
        EXPECT_TRUE(value) << "no metric " << name;
        return value.value_or(0);
    }

    FakeClock clock;
    Segment segment{PayloadMode::Preserve, &clock};
    Device device_a;
    Device device_b;
    Device device_c;
    FramePort a{segment.bridge(), "a"};
    FramePort b{segment.bridge(), "b"};
    FramePort c{segment.bridge(), "c"};
};

using Counts = std::vector<int>;

TEST_F(BridgeTest, UnknownDestinationsGoEverywhereButBack) {
    send(a, kA, kB);
    EXPECT_EQ(got(), (Counts{0, 1, 1}));
    EXPECT_EQ(metric("segment.frames.flooded"), 1U);
}

TEST_F(BridgeTest, LearnedDestinationsGoToTheirPortOnly) {
    send(a, kA, kBroadcast);
    got();
    send(b, kB, kA);
    EXPECT_EQ(got(), (Counts{1, 0, 0}));
    send(a, kA, kB);
    EXPECT_EQ(got(), (Counts{0, 1, 0}));
    EXPECT_EQ(metric("segment.mac_table.entries"), 2U);
}

TEST_F(BridgeTest, GroupAddressesGoEverywhereButBack) {
    send(a, kA, kBroadcast);
    EXPECT_EQ(got(), (Counts{0, 1, 1}));
    send(b, kB, kMulticast);
    EXPECT_EQ(got(), (Counts{1, 0, 1}));
}

TEST_F(BridgeTest, FramesNeverGoBackWhereTheyCameFrom) {
    send(a, kA, kBroadcast);
    send(a, kC, kBroadcast);
    got();
    send(a, kA, kC);
    EXPECT_EQ(got(), (Counts{0, 0, 0}));
    EXPECT_EQ(metric("segment.frames.same_port"), 1U);
}

TEST_F(BridgeTest, AnAddressThatMovesIsFollowed) {
    send(a, kA, kBroadcast);
    send(c, kA, kBroadcast);
    got();
    send(b, kB, kA);
    EXPECT_EQ(got(), (Counts{0, 0, 1}));
}

TEST_F(BridgeTest, AgedAddressesAreFloodedAgain) {
    send(a, kA, kBroadcast);
    got();
    clock.advance(MacTable::kAgeing);
    send(b, kB, kA);
    EXPECT_EQ(got(), (Counts{1, 0, 1}));
}

TEST_F(BridgeTest, PortsCountWhatPasses) {
    send(a, kA, kBroadcast, 100);
    c.dropped();
    EXPECT_EQ(metric("segment.ports.a.frames_in"), 1U);
    EXPECT_EQ(metric("segment.ports.a.bytes_in"), 100U);
    EXPECT_EQ(metric("segment.ports.a.frames_out"), 0U);
    EXPECT_EQ(metric("segment.ports.b.frames_out"), 1U);
    EXPECT_EQ(metric("segment.ports.b.bytes_out"), 100U);
    EXPECT_EQ(metric("segment.ports.c.drops"), 1U);
}

TEST_F(BridgeTest, SegmentedPacketsCarryTheirAddressesInTheHeader) {
    send(b, kB, kBroadcast);
    got();
    std::array<std::byte, 54> header{};
    std::memcpy(header.data(), &kB, sizeof kB);
    std::array<std::byte, 3000> payload{};
    mem::SpanList data;
    data.add(payload.data(), payload.size());
    a.transmit({.data = data,
                .insert_vlan = {},
                .checksum = {},
                .segmentation = Frame::Segmentation{.header = header, .segment_size = 1000}});
    EXPECT_EQ(got(), (Counts{0, 1, 0}));
    EXPECT_EQ(metric("segment.ports.a.bytes_in"), 3054U);
}

TEST_F(BridgeTest, RuntsAreCountedAndDropped) {
    std::array<std::byte, 13> runt{};
    mem::SpanList data;
    data.add(runt.data(), runt.size());
    a.transmit({.data = data, .insert_vlan = {}, .checksum = {}, .segmentation = {}});
    EXPECT_EQ(got(), (Counts{0, 0, 0}));
    EXPECT_EQ(metric("segment.frames.runts"), 1U);
}

TEST_F(BridgeTest, ObserverSeesAFloodedFrameOnce) {
    Watcher watcher;
    segment.observe(&watcher);
    send(a, kA, kBroadcast);
    EXPECT_EQ(watcher.frames, 1);
    segment.observe(nullptr);
    send(a, kA, kBroadcast);
    EXPECT_EQ(watcher.frames, 1);
}

TEST_F(BridgeTest, RoomIsThatOfTheFullestOtherDevice) {
    device_a.left = 1;
    device_b.left = 5;
    EXPECT_EQ(a.room(), 5U);
    EXPECT_EQ(b.room(), 1U);
    int told = 0;
    b.on_room([&told] { ++told; });
    a.made_room();
    EXPECT_EQ(told, 1);
    b.made_room();
    EXPECT_EQ(told, 1);
}

TEST_F(BridgeTest, NothingIsSentToAPortThatIsGoneOrEmpty) {
    {
        FramePort d(segment.bridge(), "d");
        d.connect(&device_c);
        send(d, kC, kBroadcast);
        got();
    }
    b.connect(nullptr);
    send(a, kA, kC);
    EXPECT_EQ(got(), (Counts{0, 0, 1}));
}

}  // namespace
}  // namespace ernic::net
