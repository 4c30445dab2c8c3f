// SPDX-License-Identifier: MIT
#include "net/loop_ports.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/clock.hpp"
#include "metrics/report.hpp"

namespace ernic::net {
namespace {

constexpr wire::MacAddress kGuest{{0x02, 0, 0, 0, 0, 1}};
constexpr wire::MacAddress kMirror{{0x02, 0, 0, 0, 0, 2}};
constexpr wire::MacAddress kOther{{0x02, 0, 0, 0, 0, 3}};

/// Keeps what comes back.
class Guest final : public FrameSink {
  public:
    void transmit(const Frame& frame) override {
        std::vector<std::byte> bytes;
        if (frame.segmentation) {
            bytes.assign(frame.segmentation->header.begin(), frame.segmentation->header.end());
        }
        for (const auto& piece : frame.data) {
            bytes.insert(bytes.end(), piece.data, piece.data + piece.size);
        }
        frames.push_back(bytes);
        vlan = frame.insert_vlan;
        segment_size = frame.segmentation ? frame.segmentation->segment_size : 0;
    }
    std::vector<std::vector<std::byte>> frames;
    std::optional<std::uint16_t> vlan;
    std::uint16_t segment_size = 0;
};

std::vector<std::byte> frame_to(const wire::MacAddress& destination, const wire::MacAddress& source,
                                std::size_t size = 64) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i) {
        bytes[i] = static_cast<std::byte>(i);
    }
    const wire::EthernetHeader header{destination, source, be16(0x88b5)};
    std::memcpy(bytes.data(), &header, sizeof header);
    return bytes;
}

class LoopPorts : public testing::Test {
  protected:
    LoopPorts() { port.connect(&guest); }
    void send(std::vector<std::byte> bytes, std::optional<std::uint16_t> vlan = {}) {
        mem::SpanList data;
        data.add(bytes.data(), 9);  // the border lies in the addresses
        data.add(bytes.data() + 9, bytes.size() - 9);
        port.transmit({.data = data, .insert_vlan = vlan, .checksum = {}, .segmentation = {}});
    }
    std::uint64_t metric(const std::string& name) {
        metrics::Registry registry;
        port.register_metrics(registry);
        mirror.register_metrics(registry);
        const auto value = metrics::value_of(registry, name);
        EXPECT_TRUE(value) << "no metric " << name;
        return value.value_or(0);
    }

    FakeClock clock;
    Bridge bridge{&clock};
    FramePort port{bridge, "guest"};
    ReflectPort mirror{bridge, "reflect", kMirror};
    Guest guest;
};

TEST_F(LoopPorts, AFrameComesBackWithItsAddressesTurned) {
    const auto sent = frame_to(kMirror, kGuest);
    send(sent, 5);
    ASSERT_EQ(guest.frames.size(), 1U);
    EXPECT_EQ(guest.frames[0], frame_to(kGuest, kMirror));
    EXPECT_EQ(guest.vlan, 5);
}

TEST_F(LoopPorts, ALargePacketComesBackInOnePiece) {
    const auto header = frame_to(kMirror, kGuest, 54);
    std::vector<std::byte> payload(3000, std::byte{7});
    mem::SpanList data;
    data.add(payload.data(), payload.size());
    port.transmit(
        {.data = data,
         .insert_vlan = {},
         .checksum = {},
         .segmentation = Frame::Segmentation{.header = header, .segment_size = 1000, .last = true}});
    ASSERT_EQ(guest.frames.size(), 1U);
    EXPECT_EQ(guest.segment_size, 1000);
    auto wanted = frame_to(kGuest, kMirror, 54);
    wanted.insert(wanted.end(), payload.begin(), payload.end());
    EXPECT_EQ(guest.frames[0], wanted);
}

TEST_F(LoopPorts, NothingElseComesBack) {
    send(frame_to(kOther, kGuest));                                  // flooded, but not for it
    send(frame_to({{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}, kGuest));  // broadcast
    send(frame_to(kMirror, {{0x03, 0, 0, 0, 0, 1}}));                // from a group
    EXPECT_EQ(guest.frames.size(), 0U);
}

TEST_F(LoopPorts, TwoMirrorsDoNotThrowAFrameToAndFroForEver) {
    ReflectPort second(bridge, "reflect2", kOther);
    send(frame_to(kOther, kGuest));  // the bridge knows now where the second one is
    ASSERT_EQ(guest.frames.size(), 1U);
    // A frame in its name, kept back by a fault until then.
    auto late = frame_to(kMirror, kOther);
    mem::SpanList data;
    data.add(late.data(), late.size());
    mirror.transmit({.data = data, .insert_vlan = {}, .checksum = {}, .segmentation = {}});
    EXPECT_EQ(metric("segment.ports.reflect.drops"), 1U);
    send(frame_to(kMirror, kGuest));
    EXPECT_EQ(guest.frames.size(), 2U) << "and they still work";
}

TEST_F(LoopPorts, TheNullPortTakesEverything) {
    NullPort null(bridge, "null");
    std::vector<std::byte> large(70'000);
    std::memcpy(large.data(), frame_to(kOther, kGuest).data(), 64);
    send(large);
    metrics::Registry registry;
    null.register_metrics(registry);
    EXPECT_EQ(registry.to_json()["segment"]["ports"]["null"]["bytes_out"], 70'000);
    EXPECT_EQ(guest.frames.size(), 0U);
}

}  // namespace
}  // namespace ernic::net
