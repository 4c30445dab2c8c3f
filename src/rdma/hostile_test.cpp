// SPDX-License-Identifier: MIT
// Order, bounds and clean-up when requests fail, answers come late or work piles up.
#include <gtest/gtest.h>

#include <vector>

#include "rdma/engine.hpp"
#include "rdma/test_support.hpp"

namespace ernic::rdma {
namespace {

using test::Peer;
using test::World;

constexpr Nanoseconds kAcknowledgeTimeout = acknowledge_timeout(14);

/// A peer that keeps what it hears and answers only when the test does.
class SilentPort final : public net::Port {
  public:
    void deliver(const net::Message& message) override { heard.push_back(message); }
    std::vector<net::Message> heard;
};

class Hostile : public ::testing::Test {
  protected:
    WorkRequest write(std::uint32_t lkey) {
        WorkRequest wr = World::request(Opcode::Write, 0, 64, lkey);
        wr.remote_va = 4096;
        wr.rkey = key;
        return wr;
    }

    World world;
    std::unique_ptr<Peer> a = world.make(10, QpType::Rc, true);
    std::uint32_t key = world.region(1, 0, test::kMemorySize, World::all_rights());
};

TEST_F(Hostile, ALostRequestTimesOutAlthoughOneBehindItHasFailedAlready) {
    world.bring_up(*a, 11);
    a->qp->attributes().route = World::route_to(World::make_mac(99), world.mac);  // nobody
    world.post(*a, write(key));
    world.post(*a, write(0x12345600));
    world.run();
    EXPECT_TRUE(a->owner.sent.empty()) << "the first one may still be acknowledged";
    for (int i = 0; i < 4; ++i) {
        world.advance(kAcknowledgeTimeout + 1);
    }
    ASSERT_EQ(a->owner.sent.size(), 1U);
    EXPECT_EQ(a->owner.sent[0].position, 0U);
    EXPECT_EQ(a->owner.sent[0].status, CompletionStatus::RetryExceeded);
    EXPECT_EQ(a->owner.send_flushes, 1);
    EXPECT_EQ(a->qp->state(), QpState::Error);
}

TEST_F(Hostile, ARequestThatIsRepeatedCompletesBeforeTheFailedOneBehindIt) {
    auto b = world.make(11);
    world.bring_up(*a, 11);
    world.bring_up(*b, 10);
    world.post(*a, World::request(Opcode::Send, 0, 64, key));  // no receive yet
    world.post(*a, write(0x12345600));
    world.run();
    EXPECT_TRUE(a->owner.sent.empty());
    world.post_receive(*b, 8192, 64, key);
    world.advance(rnr_delay(12) + 1);
    ASSERT_EQ(a->owner.sent.size(), 2U);
    EXPECT_EQ(a->owner.sent[0].status, CompletionStatus::Success);
    EXPECT_EQ(a->owner.sent[1].status, CompletionStatus::LocalProtection);
    EXPECT_EQ(b->owner.received.size(), 1U);
}

TEST_F(Hostile, ALateAnswerDoesNotStopTheWaitForAReceiver) {
    SilentPort peer;
    world.segment.attach(peer, World::make_mac(2));
    world.bring_up(*a, 11);
    a->qp->attributes().route = World::route_to(World::make_mac(2), world.mac);
    WorkRequest read = World::request(Opcode::Read, 0, 64, key);
    read.rkey = key;
    world.post(*a, read);
    world.post(*a, World::request(Opcode::Send, 0, 64, key));
    world.run();
    ASSERT_EQ(peer.heard.size(), 2U);
    const net::Route back = World::route_to(world.mac, World::make_mac(2));
    net::Message answer;
    answer.route = &back;
    answer.destination_qpn = 10;
    answer.source_qpn = 11;
    answer.kind = net::MessageKind::Acknowledge;
    answer.syndrome = net::Syndrome::RnrNak;
    answer.rnr_timer = 12;
    answer.psn = 1;
    world.segment.send(answer);
    std::byte data[64] = {};  // NOLINT(modernize-avoid-c-arrays)
    mem::SpanList payload;
    payload.add(data, sizeof(data));
    answer.kind = net::MessageKind::ReadResponse;
    answer.psn = 0;
    answer.length = sizeof(data);
    answer.payload = &payload;
    world.segment.send(answer);
    world.run();
    peer.heard.clear();
    world.advance(rnr_delay(12) + 1);
    EXPECT_FALSE(peer.heard.empty()) << "the send is repeated when the receiver's time is over";
    world.segment.detach(peer);
}

TEST_F(Hostile, LocalRequestsSpendTheBudgetOfAStep) {
    MemoryRegion region;
    region.kind = MemoryRegion::Kind::FastRegister;
    region.pd = test::kPd;
    ASSERT_TRUE(world.engine.memory_table().create(2 << 8U, std::move(region)));
    world.bring_up(*a, 11);
    WorkRequest invalidate{};
    invalidate.opcode = Opcode::LocalInvalidate;
    invalidate.immediate_or_key = 2 << 8U;
    for (std::uint32_t i = 0; i < 2 * kRequestsPerStep; ++i) {
        world.post(*a, invalidate);
    }
    EXPECT_TRUE(world.engine.step());
    EXPECT_LE(a->owner.sent.size(), kRequestsPerStep);
    world.run();
    EXPECT_EQ(a->owner.sent.size(), 2 * kRequestsPerStep);
}

TEST_F(Hostile, AFastRegistrationCostsWhatItsTableIsLong) {
    world.bring_up(*a, 11);
    MemoryRegion region;
    region.kind = MemoryRegion::Kind::FastRegister;
    region.pd = test::kPd;
    ASSERT_TRUE(world.engine.memory_table().create(2 << 8U, std::move(region)));
    WorkRequest registration{};
    registration.opcode = Opcode::RegisterMr;
    registration.immediate_or_key = 2 << 8U;
    registration.page_size_log2 = 12;
    registration.map_count = 60'000;
    for (int i = 0; i < 10; ++i) {
        world.post(*a, registration);
    }
    EXPECT_TRUE(world.engine.step());
    EXPECT_LE(a->owner.sent.size(), 2U) << "480 KB each";
    registration.map_count = kMaxTableEntries + 1;
    world.post(*a, registration);
    world.run();
    ASSERT_EQ(a->owner.sent.size(), 11U);
    EXPECT_EQ(a->owner.sent[9].status, CompletionStatus::Success);
    EXPECT_EQ(a->owner.sent[10].status, CompletionStatus::MemoryManagement);
}

TEST_F(Hostile, QueuePairsLeaveTheQueueOfWorkFromAnywhere) {
    auto b = world.make(11);
    auto c = world.make(12);
    for (Peer* peer : {a.get(), b.get(), c.get()}) {
        world.bring_up(*peer, peer->qp->qpn());
        world.post(*peer, write(key));
    }
    b.reset();
    world.run();
    EXPECT_EQ(a->owner.sent.size(), 1U);
    EXPECT_EQ(c->owner.sent.size(), 1U);
    world.post(*c, write(key));
    c.reset();
    world.post(*a, write(key));
    a.reset();
    EXPECT_FALSE(world.engine.step());
}

/// Fails its queue pair at the first receive, as an owner does whose completion queue is full.
class FullOwner final : public QueueOwner {
  public:
    bool fetch_send(std::uint32_t /*position*/, WorkRequest& request) override {
        request = World::request(Opcode::Send, 0, 64, key);
        request.destination_qpn = 20;
        request.destination_qkey = 0x1234;
        return true;
    }
    bool fetch_receive(std::uint32_t /*position*/, ReceiveRequest& request) override {
        request.sge_count = 1;
        request.sges[0] = {4096, 4096, key};
        return true;
    }
    void send_completed(const SendCompletion& /*completion*/) override { ++completed_after[flushes]; }
    void send_batch_done() override {}
    void receive_completed(const ReceiveCompletion& /*completion*/) override { qp->fail(); }
    void flushed(Side side) override { flushes += side == Side::Send ? 1 : 0; }
    void raise(QpEvent /*event*/) override {}

    QueuePair* qp = nullptr;
    std::uint32_t key = 0;
    int flushes = 0;
    std::map<int, int> completed_after;
};

TEST_F(Hostile, ADatagramToItselfThatFailsTheQueuePairIsFlushedOnly) {
    FullOwner owner;
    owner.key = key;
    QueuePair::Identity identity;
    identity.qpn = 20;
    identity.pd = test::kPd;
    identity.type = QpType::Ud;
    identity.sq_depth = identity.rq_depth = 16;
    QueuePair qp(world.engine, owner, identity);
    owner.qp = &qp;
    ASSERT_TRUE(world.engine.set_address_handle(0, test::kPd, World::route_to(world.mac, world.mac)));
    qp.enter(QpState::Init);
    qp.attributes().qkey = 0x1234;
    qp.enter(QpState::Rtr);
    qp.enter(QpState::Rts);
    qp.receive_posted(1);
    qp.send_posted(1);
    world.run();
    EXPECT_EQ(owner.flushes, 1);
    EXPECT_TRUE(owner.completed_after.empty());
}

}  // namespace
}  // namespace ernic::rdma
