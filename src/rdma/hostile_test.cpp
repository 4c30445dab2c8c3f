// SPDX-License-Identifier: MIT
// Order, bounds and clean-up when requests fail, answers come late or work piles up.
#include <gtest/gtest.h>

#include <optional>
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

/// One that has no room while it is shut.
class Gate final : public net::Port {
  public:
    [[nodiscard]] bool ready(bool /*may_lose*/) const override { return open; }
    void deliver(const net::Message& message) override {
        if (message.last) {
            answered.push_back(message.psn);
        }
    }
    bool open = false;
    std::vector<std::uint32_t> answered;
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

/// Regions for fast registration, and requests with tables that take many steps.
class LongTables : public Hostile {
  protected:
    static constexpr std::uint32_t kEntries = 30'000;

    LongTables() {
        world.bring_up(*a, 10);
        for (std::uint32_t index : {2U, 3U}) {
            MemoryRegion region;
            region.kind = MemoryRegion::Kind::FastRegister;
            region.pd = test::kPd;
            EXPECT_TRUE(world.engine.memory_table().create(index << 8U, std::move(region)));
        }
    }
    static WorkRequest registration(std::uint32_t index = 2, std::uint32_t entries = kEntries) {
        WorkRequest wr{};
        wr.opcode = Opcode::RegisterMr;
        wr.immediate_or_key = index << 8U;
        wr.page_size_log2 = 12;
        wr.map_count = entries;
        return wr;
    }
    /// Engine steps until `peer` has `count` completions.
    int steps_until(const Peer& peer, std::size_t count) {
        int steps = 0;
        while (peer.owner.sent.size() < count && steps < 1000) {
            world.engine.step();
            ++steps;
        }
        return steps;
    }
};

TEST_F(LongTables, AreCopiedInPieces) {
    const MemoryTable::User user{test::kPd, 10, true};
    std::uint32_t copied = 0;
    std::uint32_t all = 0;
    std::optional<CompletionStatus> status;
    while (!status) {
        status = world.engine.memory_table().register_pages(user, registration(), copied);
        EXPECT_LE(copied, kTableEntriesAtOnce);
        all += copied;
    }
    EXPECT_EQ(*status, CompletionStatus::Success);
    EXPECT_EQ(all, kEntries);
}

TEST_F(LongTables, CostWhatTheyAreLong) {
    for (int i = 0; i < 10; ++i) {
        world.post(*a, registration());
    }
    world.post(*a, registration(2, kMaxTableEntries + 1));
    EXPECT_TRUE(world.engine.step());
    EXPECT_LE(a->owner.sent.size(), 3U) << "240 KB each";
    world.run();
    ASSERT_EQ(a->owner.sent.size(), 11U);
    EXPECT_EQ(a->owner.sent[9].status, CompletionStatus::Success);
    EXPECT_EQ(a->owner.sent[10].status, CompletionStatus::MemoryManagement);
}

TEST_F(LongTables, OneAtATimeAndEveryOneGetsItsTurn) {
    auto b = world.make(11, QpType::Rc, true);
    world.bring_up(*b, 11);
    world.post(*a, registration(2));
    world.post(*b, registration(3));
    world.run();
    ASSERT_EQ(a->owner.sent.size(), 1U);
    ASSERT_EQ(b->owner.sent.size(), 1U);
    EXPECT_EQ(a->owner.sent[0].status, CompletionStatus::Success);
    EXPECT_EQ(b->owner.sent[0].status, CompletionStatus::Success);
    EXPECT_EQ(world.engine.memory_table().page_entries_used(), 2 * kEntries);
}

TEST_F(LongTables, OfWhoLeavesInTheMiddleHoldUpNobody) {
    auto b = world.make(11, QpType::Rc, true);
    world.bring_up(*b, 11);
    const MemoryTable::User user{test::kPd, 10, true};
    std::uint32_t copied = 0;
    MemoryTable& table = world.engine.memory_table();
    for (int round = 0; round < 3; ++round) {
        auto c = world.make(12, QpType::Rc, true);
        world.bring_up(*c, 12);
        ASSERT_FALSE(table.register_pages({test::kPd, 12, true}, registration(3), copied)) << "has begun";
        EXPECT_FALSE(table.register_pages(user, registration(2), copied)) << "waits";
        EXPECT_EQ(copied, 0U);
        if (round == 0) {
            c->qp->fail();
        } else if (round == 1) {
            c->qp->enter(QpState::Sqd);
            world.post(*c, write(key));  // not in SQD, but it gets a turn
            world.run();
        } else {
            c.reset();
        }
        world.post(*b, registration(2));
        EXPECT_LT(steps_until(*b, static_cast<std::size_t>(round) + 1), 100);
    }
}

TEST_F(LongTables, CannotChangeTheirLengthOnTheWay) {
    const MemoryTable::User user{test::kPd, 10, true};
    std::uint32_t copied = 0;
    MemoryTable& table = world.engine.memory_table();
    ASSERT_FALSE(table.register_pages(user, registration(2, 60'000), copied));
    EXPECT_EQ(table.register_pages(user, registration(2, 2), copied), CompletionStatus::MemoryManagement);
    table.abandon(user.qpn);
    EXPECT_EQ(table.register_pages(user, registration(2, 2), copied), CompletionStatus::Success);
    EXPECT_EQ(table.page_entries_used(), 2U);
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

TEST_F(Hostile, AnAnswerThatJoinsOthersWhoseTurnHasComeIsNotForgotten) {
    constexpr std::uint32_t kLong = 600 * 1024;  // more than one turn sends
    Gate gate;
    world.segment.attach(gate, World::make_mac(2));
    world.bring_up(*a, 11);
    a->qp->attributes().route = World::route_to(World::make_mac(2), world.mac);
    const net::Route route = World::route_to(world.mac, World::make_mac(2));
    std::uint32_t psn = 0;
    const auto ask = [&](std::uint32_t length) {
        net::Message request;
        request.route = &route;
        request.kind = net::MessageKind::ReadRequest;
        request.destination_qpn = 10;
        request.source_qpn = 11;
        request.psn = psn;
        request.first = request.last = true;
        request.length = length;
        request.rkey = key;
        psn += std::max(1U, (length + a->qp->path_mtu() - 1) / a->qp->path_mtu());
        world.segment.send(request);
    };
    for (int i = 0; i < 4; ++i) {
        ask(kLong);
    }
    world.run();
    EXPECT_TRUE(gate.answered.empty());
    gate.open = true;
    world.segment.made_room(gate);
    for (std::size_t turn = 1; turn <= 3; ++turn) {
        EXPECT_TRUE(world.engine.step()) << "each has a turn of its own";
        EXPECT_EQ(gate.answered.size(), turn);
    }
    ask(64);  // now, while there is room, so that nobody will say that there is
    world.run();
    EXPECT_EQ(gate.answered.size(), 5U);
}

}  // namespace
}  // namespace ernic::rdma
