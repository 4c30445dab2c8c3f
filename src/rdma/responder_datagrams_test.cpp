// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.hpp"
#include "rdma/engine.hpp"
#include "rdma/test_support.hpp"

namespace ernic::rdma {
namespace {

using test::Peer;
using test::World;

class LineSink final : public log::Sink {
  public:
    void write(log::Level, std::string_view, std::string_view text) override { lines.emplace_back(text); }
    std::vector<std::string> lines;
};

TEST(Datagram, CarriesTheNetworkHeader) {
    World world;
    auto a = world.make(1, QpType::Ud);
    auto b = world.make(2, QpType::Ud);
    world.bring_up(*a, 0);
    world.bring_up(*b, 0);
    const std::uint32_t key = world.region(1, 0, test::kMemorySize, World::all_rights());
    ASSERT_TRUE(world.engine.set_address_handle(3, test::kPd, World::route_to(world.mac, world.mac)));
    world.post_receive(*b, 4096, 140, key);
    world.fill(0, 100, 2);
    WorkRequest wr = World::request(Opcode::Send, 0, 100, key);
    wr.ah_id = 3;
    wr.destination_qpn = 2;
    wr.destination_qkey = 0x1234;
    world.post(*a, wr);
    wr.destination_qkey = 0x9999;
    world.post(*a, wr);
    world.run();
    ASSERT_EQ(b->owner.received.size(), 1U);
    EXPECT_EQ(b->owner.received[0].length, 140U);
    EXPECT_TRUE(world.same(0, 4096 + 40, 100));
    EXPECT_EQ(world.bytes[4096 + 20], std::byte{0x45});
    EXPECT_EQ(a->owner.sent.size(), 2U) << "a datagram completes whether or not it arrives";
    EXPECT_EQ(world.engine.counters().wrong_qkey.value(), 1U);
}

/// Two datagram QPs and a way from the first to the second.
class Datagrams : public ::testing::Test {
  protected:
    explicit Datagrams(std::uint32_t receiver_qpn = 2, net::PayloadMode mode = net::PayloadMode::Preserve)
        : world(mode), b(world.make(receiver_qpn, QpType::Ud)) {
        world.bring_up(*a, 0);
        world.bring_up(*b, 0);
        EXPECT_TRUE(world.engine.set_address_handle(3, test::kPd, World::route_to(world.mac, world.mac)));
        world.fill(0, 4096, 2);
    }
    void send(std::uint32_t length) {
        WorkRequest wr = World::request(Opcode::Send, 0, length, key);
        wr.ah_id = 3;
        wr.destination_qpn = b->qp->qpn();
        wr.destination_qkey = 0x1234;
        world.post(*a, wr);
        world.run();
    }
    /// The one receive has ended with `status`, and the QP with it.
    void expect_failed(CompletionStatus status, QpEvent event) {
        ASSERT_EQ(b->owner.received.size(), 1U);
        EXPECT_EQ(b->owner.received[0].id, 0U);
        EXPECT_EQ(b->owner.received[0].status, status);
        expect_dead(event);
    }
    void expect_dead(QpEvent event) {
        EXPECT_EQ(b->qp->state(), QpState::Error);
        EXPECT_EQ(b->owner.receive_flushes, 1);
        ASSERT_EQ(b->owner.events.size(), 1U);
        EXPECT_EQ(b->owner.events[0], event);
        EXPECT_EQ(b->qp->counters().dropped, 1U);
        ASSERT_EQ(a->owner.sent.size(), 1U);
        EXPECT_EQ(a->owner.sent[0].status, CompletionStatus::Success) << "the sender never knows";
        EXPECT_EQ(a->qp->state(), QpState::Rts);
    }

    World world;
    std::unique_ptr<Peer> a = world.make(10, QpType::Ud);
    std::unique_ptr<Peer> b;
    std::uint32_t key = world.region(1, 0, test::kMemorySize, World::all_rights());
};

TEST_F(Datagrams, AReceiveThatIsTooShortEndsWithALengthError) {
    world.post_receive(*b, 8192, 139, key);
    world.post_receive(*b, 12288, 4096, key);
    send(100);
    expect_failed(CompletionStatus::LocalLength, QpEvent::RequestError);
}

TEST_F(Datagrams, AReceiveWithABadKeyEndsWithAProtectionError) {
    world.post_receive(*b, 8192, 4096, key + 0x100);
    send(100);
    expect_failed(CompletionStatus::LocalProtection, QpEvent::Fatal);
}

TEST_F(Datagrams, AReceiveThatCannotBeReadEndsTheQueuePair) {
    b->qp->receive_posted(1);  // rung, but the owner knows of no request there
    send(100);
    EXPECT_TRUE(b->owner.received.empty()) << "its number is unknown; the flush ends it";
    expect_dead(QpEvent::Fatal);
}

class ManagementDatagrams : public Datagrams {
  protected:
    ManagementDatagrams() : Datagrams(1, net::PayloadMode::Ones) {}
};

TEST_F(ManagementDatagrams, OneThatIsTooLongIsLostAndTheQueuePairLives) {
    world.post_receive(*b, 8192, 296, key);
    send(300);
    EXPECT_TRUE(b->owner.received.empty());
    EXPECT_EQ(b->qp->state(), QpState::Rts);
    send(256);
    ASSERT_EQ(b->owner.received.size(), 1U);
    EXPECT_EQ(b->owner.received[0].status, CompletionStatus::Success);
}

TEST_F(ManagementDatagrams, ArriveAsTheyAreInEveryMode) {
    world.post_receive(*b, 8192, 296, key);
    send(256);
    ASSERT_EQ(b->owner.received.size(), 1U);
    EXPECT_TRUE(world.same(0, 8192 + 40, 256));
}

class PatternDatagrams : public Datagrams {
  protected:
    PatternDatagrams() : Datagrams(2, net::PayloadMode::Ones) {}
};

TEST_F(PatternDatagrams, APatternReplacesThePayloadAndNotTheHeader) {
    auto sink = std::make_shared<LineSink>();
    world.segment.mover().digest_with(net::PayloadDigest(log::Logger(sink, "test")));
    world.post_receive(*b, 8192, 140, key);
    send(100);
    ASSERT_EQ(b->owner.received.size(), 1U);
    EXPECT_EQ(b->owner.received[0].length, 140U);
    EXPECT_EQ(world.bytes[8192 + 20], std::byte{0x45}) << "the header of IPv4";
    for (std::size_t i = 0; i < 100; ++i) {
        ASSERT_EQ(world.bytes[8192 + 40 + i], std::byte{0xff}) << i;
    }
    ASSERT_EQ(sink->lines.size(), 1U);
    EXPECT_EQ(sink->lines[0].find("payload 1 bytes=100 "), 0U) << sink->lines[0];
}

TEST(Datagram, LongerThanThePortMtuIsALocalLengthError) {
    World world;
    auto a = world.make(1, QpType::Ud);
    world.bring_up(*a, 0);
    const std::uint32_t key = world.region(1, 0, test::kMemorySize, World::all_rights());
    ASSERT_TRUE(world.engine.set_address_handle(3, test::kPd, World::route_to(world.mac, world.mac)));
    WorkRequest wr = World::request(Opcode::Send, 0, kMaxMtu + 1, key);
    wr.ah_id = 3;
    world.post(*a, wr);
    world.run();
    ASSERT_EQ(a->owner.sent.size(), 1U);
    EXPECT_EQ(a->owner.sent[0].status, CompletionStatus::LocalLength);
}

}  // namespace
}  // namespace ernic::rdma
