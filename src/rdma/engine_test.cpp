// SPDX-License-Identifier: MIT
#include "rdma/engine.hpp"

#include <gtest/gtest.h>

#include "mem/test_support.hpp"
#include "rdma/test_support.hpp"

namespace ernic::rdma {
namespace {

using test::Peer;
using test::World;

/// Two connected queue pairs and one region over all of memory.
class RcPair : public ::testing::Test {
  protected:
    void SetUp() override {
        world.bring_up(*a, 11, 0xfffff0, 100);
        world.bring_up(*b, 10, 100, 0xfffff0);
    }

    World world;
    std::unique_ptr<Peer> a = world.make(10);
    std::unique_ptr<Peer> b = world.make(11);
    std::uint32_t key = world.region(1, 0, test::kMemorySize, World::all_rights());
    /// 64 MiB of address that are the same 2 MiB page again and again.
    std::uint32_t long_key = make_long_region();

  private:
    std::uint32_t make_long_region() {
        MemoryRegion region;
        region.valid = true;
        region.pd = test::kPd;
        region.rights = World::all_rights();
        region.length = 64 * 1024 * 1024;
        region.pages = *mem::test::copy_table(world.memory, mem::Iova{3 * 1024 * 1024}, 32, 21,
                                              world.engine.memory_table().tables());
        EXPECT_TRUE(world.engine.memory_table().create(9U << 8U, std::move(region)));
        return 9U << 8U;
    }
};

WorkRequest write(std::uint64_t from, std::uint64_t to, std::uint32_t length, std::uint32_t key) {
    WorkRequest wr = World::request(Opcode::Write, from, length, key);
    wr.remote_va = to;
    wr.rkey = key;
    return wr;
}

TEST_F(RcPair, WritesOfEverySizeArriveAcrossThePsnWrap) {
    std::size_t expected = 0;
    for (std::uint32_t length : {0U, 1U, 255U, 1024U, 1025U, 4096U, 262144U, 262145U, 1048576U}) {
        world.fill(0, length, static_cast<std::uint8_t>(length));
        world.post(*a, write(0, 2'000'000, length, key));
        world.run();
        ASSERT_EQ(a->owner.sent.size(), ++expected) << length;
        EXPECT_EQ(a->owner.sent.back().status, CompletionStatus::Success);
        EXPECT_TRUE(world.same(0, 2'000'000, length)) << length;
    }
    EXPECT_TRUE(b->owner.received.empty());
}

TEST_F(RcPair, MessagesLongerThanTheWindowEnd) {
    // Many SGEs over the same memory make a long message of a small world.
    static_assert(kMaxBytesInFlight < 8 * 2'000'000);
    for (const Opcode opcode : {Opcode::Send, Opcode::Write, Opcode::Read}) {
        WorkRequest wr = write(0, 0, 0, key);
        wr.opcode = opcode;
        wr.sge_count = kMaxSges;
        for (Sge& sge : wr.sges) {
            sge = {0, 2'000'000, key};
        }
        wr.length = kMaxSges * 2'000'000ULL;
        wr.rkey = long_key;
        wr.remote_va = 0;
        ReceiveRequest receive;
        receive.sge_count = kMaxSges;
        receive.sges = wr.sges;
        b->owner.receives[b->receives] = receive;
        b->qp->receive_posted(++b->receives);
        a->owner.sent.clear();
        world.post(*a, wr);
        world.run();
        ASSERT_EQ(a->owner.sent.size(), 1U) << name_of(opcode);
        EXPECT_EQ(a->owner.sent[0].status, CompletionStatus::Success) << name_of(opcode);
    }
}

TEST_F(RcPair, TheLongestMessageInTheSmallestPacketsWaitsForAReceive) {
    constexpr std::uint32_t kLongest = 1U << 31U;
    a->qp->attributes().path_mtu = b->qp->attributes().path_mtu = 256;
    const std::uint32_t all = world.region(10, 0, kLongest, World::all_rights());
    world.post(*a, World::request(Opcode::Send, 0, kLongest, all));
    world.run();
    EXPECT_EQ(a->qp->counters().rnr_naks_received, 1U);
    for (int retry = 0; retry < 2; ++retry) {
        world.advance(rnr_delay(12));
    }
    ASSERT_EQ(a->owner.sent.size(), 1U);
    EXPECT_EQ(a->owner.sent[0].status, CompletionStatus::RnrRetryExceeded);
}

TEST_F(RcPair, ALongWriteThatEndsBehindItsRegionPlacesNothing) {
    const std::uint32_t half = world.region(11, 2'000'000, 500'000, World::all_rights());
    world.fill(0, 1'000'000, 1);
    WorkRequest wr = write(0, 2'000'000, 1'000'000, key);
    wr.rkey = half;
    world.post(*a, wr);
    world.run();
    ASSERT_EQ(a->owner.sent.size(), 1U);
    EXPECT_EQ(a->owner.sent[0].status, CompletionStatus::RemoteAccess);
    EXPECT_EQ(world.bytes[2'000'000], std::byte{0});
}

TEST_F(RcPair, ReadsOfEverySizeArrive) {
    for (std::uint32_t length : {0U, 1U, 1024U, 262145U, 1048577U}) {
        world.fill(2'000'000, length, static_cast<std::uint8_t>(length + 3));
        WorkRequest wr = write(0, 2'000'000, length, key);
        wr.opcode = Opcode::Read;
        world.post(*a, wr);
        world.run();
        EXPECT_EQ(a->owner.sent.back().status, CompletionStatus::Success);
        EXPECT_TRUE(world.same(0, 2'000'000, length)) << length;
    }
    EXPECT_EQ(a->owner.sent.size(), 5U);
}

/// The engine's own port behind a wire that loses the first read response.
class LosesOneReadResponse final : public net::Port {
  public:
    explicit LosesOneReadResponse(Engine& engine) : engine_(engine) {}
    void deliver(const net::Message& message) override {
        if (message.kind == net::MessageKind::ReadResponse && !lost_) {
            lost_ = true;
            return;
        }
        engine_.deliver(message);
    }

  private:
    Engine& engine_;
    bool lost_ = false;
};

TEST_F(RcPair, AResponseBehindALostOneIsAskedForAgainWithoutWaitingForTheTimer) {
    constexpr std::uint32_t kFirst = 1000;
    constexpr std::uint32_t kSecond = 700'000;
    constexpr std::uint64_t kSource = 1'000'000;
    LosesOneReadResponse wire(world.engine);
    world.segment.attach(wire, world.mac);
    world.fill(kSource, kFirst + kSecond, 5);
    for (const auto& [offset, length] : {std::pair(0U, kFirst), std::pair(kFirst, kSecond)}) {
        WorkRequest wr = write(offset, kSource + offset, length, key);
        wr.opcode = Opcode::Read;
        world.post(*a, wr);
    }
    world.run();
    ASSERT_EQ(a->owner.sent.size(), 2U);
    EXPECT_EQ(a->owner.sent[0].status, CompletionStatus::Success);
    EXPECT_EQ(a->owner.sent[1].status, CompletionStatus::Success);
    EXPECT_TRUE(world.same(0, kSource, kFirst + kSecond));
    EXPECT_EQ(world.engine.counters().req_sequence_errors.value(), 1U);
    world.segment.detach(wire);
}

TEST_F(RcPair, SendScattersOverSgesAndReportsLength) {
    world.fill(0, 300'000, 9);
    ReceiveRequest receive;
    receive.sge_count = 3;
    receive.sges[0] = {1'000'000, 7, key};
    receive.sges[1] = {1'000'007, 0, key};
    receive.sges[2] = {1'000'007, 400'000, key};
    b->owner.receives[0] = receive;
    b->qp->receive_posted(1);
    WorkRequest wr = World::request(Opcode::SendImmediate, 0, 300'000, key);
    wr.immediate_or_key = 0xabcd;
    wr.solicited = true;
    world.post(*a, wr);
    world.run();
    ASSERT_EQ(b->owner.received.size(), 1U);
    EXPECT_EQ(b->owner.received[0].length, 300'000U);
    EXPECT_EQ(b->owner.received[0].immediate_or_key, 0xabcdU);
    EXPECT_EQ(b->owner.received[0].kind, ReceiveKind::SendImmediate);
    EXPECT_TRUE(b->owner.received[0].solicited);
    EXPECT_TRUE(world.same(0, 1'000'000, 300'000));
}

TEST_F(RcPair, ReceiverNotReadyResumesWhenAReceiveIsPosted) {
    world.fill(0, 64, 1);
    world.post(*a, World::request(Opcode::Send, 0, 64, key));
    world.run();
    EXPECT_TRUE(a->owner.sent.empty());
    world.post_receive(*b, 4096, 64, key);
    world.advance(rnr_delay(12) - 1000);
    EXPECT_TRUE(a->owner.sent.empty()) << "resumed before the minimum RNR timer";
    world.advance(2000);
    ASSERT_EQ(a->owner.sent.size(), 1U);
    EXPECT_EQ(a->owner.sent[0].status, CompletionStatus::Success);
    EXPECT_TRUE(world.same(0, 4096, 64));
}

TEST_F(RcPair, ReceiverNeverReadyFailsAfterTheRetriesAskedFor) {
    world.post(*a, World::request(Opcode::Send, 0, 64, key));
    world.run();
    for (int retry = 0; retry < 2; ++retry) {
        EXPECT_TRUE(a->owner.sent.empty());
        world.advance(rnr_delay(12));
    }
    ASSERT_EQ(a->owner.sent.size(), 1U);
    EXPECT_EQ(a->owner.sent[0].status, CompletionStatus::RnrRetryExceeded);
    EXPECT_EQ(a->qp->state(), QpState::Error);
    EXPECT_EQ(a->owner.send_flushes, 1);
    EXPECT_EQ(a->owner.receive_flushes, 1);
}

TEST_F(RcPair, WriteWithImmediateWaitsForAReceiveOnItsLastFragment) {
    world.fill(0, 600'000, 4);
    WorkRequest wr = write(0, 2'000'000, 600'000, key);
    wr.opcode = Opcode::WriteImmediate;
    wr.immediate_or_key = 77;
    world.post(*a, wr);
    world.run();
    EXPECT_TRUE(a->owner.sent.empty());
    world.post_receive(*b, 4096, 64, key);
    world.advance(rnr_delay(12));
    ASSERT_EQ(b->owner.received.size(), 1U);
    EXPECT_EQ(b->owner.received[0].length, 600'000U);
    EXPECT_EQ(b->owner.received[0].kind, ReceiveKind::WriteImmediate);
    EXPECT_TRUE(world.same(0, 2'000'000, 600'000));
    EXPECT_EQ(a->owner.sent.size(), 1U);
}

TEST_F(RcPair, MissingPeerFailsAfterItsOwnTimeouts) {
    b.reset();
    world.post(*a, write(0, 4096, 64, key));
    world.run();
    for (int retry = 0; retry < 2; ++retry) {
        world.advance(acknowledge_timeout(14));
        EXPECT_TRUE(a->owner.sent.empty());
    }
    world.advance(acknowledge_timeout(14));
    ASSERT_EQ(a->owner.sent.size(), 1U);
    EXPECT_EQ(a->owner.sent[0].status, CompletionStatus::RetryExceeded);
}

TEST_F(RcPair, PeerThatComesUpLateIsReachedByARetry) {
    b->qp->enter(QpState::Reset);
    world.fill(0, 64, 5);
    world.post(*a, write(0, 4096, 64, key));
    world.run();
    EXPECT_TRUE(a->owner.sent.empty());
    world.bring_up(*b, 10, 100, 0xfffff0);
    world.advance(acknowledge_timeout(14));
    ASSERT_EQ(a->owner.sent.size(), 1U);
    EXPECT_EQ(a->owner.sent[0].status, CompletionStatus::Success);
    EXPECT_TRUE(world.same(0, 4096, 64));
}

TEST_F(RcPair, UnknownMacIsNeverLoopedBack) {
    a->qp->attributes().route.destination = World::make_mac(99);
    world.post(*a, write(0, 4096, 64, key));
    world.run();
    for (int i = 0; i < 3; ++i) {
        world.advance(acknowledge_timeout(14));
    }
    ASSERT_EQ(a->owner.sent.size(), 1U);
    EXPECT_EQ(a->owner.sent[0].status, CompletionStatus::RetryExceeded);
}

TEST_F(RcPair, AtomicsReturnTheOriginalValue) {
    std::uint64_t value = 40;
    std::memcpy(&world.bytes[8192], &value, 8);
    WorkRequest add = World::request(Opcode::FetchAdd, 0, 8, key);
    add.remote_va = 8192;
    add.rkey = key;
    add.swap_add = 2;
    world.post(*a, add);
    WorkRequest swap = add;
    swap.opcode = Opcode::CompareSwap;
    swap.sges[0].va = 8;
    swap.compare = 42;
    swap.swap_add = 7;
    world.post(*a, swap);
    world.run();
    ASSERT_EQ(a->owner.sent.size(), 2U);
    std::uint64_t originals[2];  // NOLINT(modernize-avoid-c-arrays)
    std::memcpy(originals, world.bytes.data(), sizeof(originals));
    std::memcpy(&value, &world.bytes[8192], 8);
    EXPECT_EQ(originals[0], 40U);
    EXPECT_EQ(originals[1], 42U);
    EXPECT_EQ(value, 7U);
}

TEST_F(RcPair, MisalignedAtomicIsAnInvalidRequest) {
    WorkRequest add = World::request(Opcode::FetchAdd, 0, 8, key);
    add.remote_va = 8193;
    add.rkey = key;
    world.post(*a, add);
    world.run();
    ASSERT_EQ(a->owner.sent.size(), 1U);
    EXPECT_EQ(a->owner.sent[0].status, CompletionStatus::RemoteInvalidRequest);
    EXPECT_EQ(b->qp->state(), QpState::Error);
}

TEST_F(RcPair, RemoteErrorsHaveTheRightStatusOnBothSides) {
    WorkRequest wr = write(0, 4096, 64, key);
    wr.rkey = key + 1;  // wrong tag
    world.post(*a, wr);
    world.run();
    ASSERT_EQ(a->owner.sent.size(), 1U);
    EXPECT_EQ(a->owner.sent[0].status, CompletionStatus::RemoteAccess);
    EXPECT_EQ(b->qp->state(), QpState::Error);
    ASSERT_EQ(b->owner.events.size(), 1U);
    EXPECT_EQ(b->owner.events[0], QpEvent::AccessError);
    EXPECT_EQ(a->owner.send_flushes + a->owner.receive_flushes, 2);
    EXPECT_EQ(b->owner.send_flushes + b->owner.receive_flushes, 2);
}

TEST_F(RcPair, MessageLongerThanTheReceiveIsRefused) {
    world.post_receive(*b, 4096, 63, key);
    world.post(*a, World::request(Opcode::Send, 0, 64, key));
    world.run();
    ASSERT_EQ(b->owner.received.size(), 1U);
    EXPECT_EQ(b->owner.received[0].status, CompletionStatus::LocalLength);
    ASSERT_EQ(a->owner.sent.size(), 1U);
    EXPECT_EQ(a->owner.sent[0].status, CompletionStatus::RemoteInvalidRequest);
}

TEST_F(RcPair, LocalErrorSendsNothing) {
    world.post(*a, write(0, 4096, 64, key));
    world.post(*a, write(test::kMemorySize - 8, 4096, 64, key));
    world.post(*a, write(0, 8192, 64, key));
    world.run();
    ASSERT_EQ(a->owner.sent.size(), 2U);
    EXPECT_EQ(a->owner.sent[0].status, CompletionStatus::Success);
    EXPECT_EQ(a->owner.sent[1].status, CompletionStatus::LocalProtection);
    EXPECT_EQ(b->qp->state(), QpState::Rts);
}

TEST_F(RcPair, LongMessagesShareTheThreadInBudgetedSteps) {
    world.post(*a, write(0, 2'000'000, 2'000'000, key));
    EXPECT_TRUE(world.engine.step());
    EXPECT_TRUE(a->owner.sent.empty());
    world.run();
    EXPECT_EQ(a->owner.sent.size(), 1U);
}

TEST_F(RcPair, ErrorStopsEverythingAtOnce) {
    world.fill(0, 2'000'000, 8);
    world.post(*a, write(0, 2'000'000, 2'000'000, key));
    world.engine.step();
    b->qp->enter(QpState::Error);
    const auto before = world.bytes;
    world.run();
    EXPECT_EQ(world.bytes, before) << "bytes landed after the QP was in Error";
}

TEST_F(RcPair, DrainedEventComesWhenTheQueueIsQuiet) {
    world.post(*a, write(0, 4096, 64, key));
    a->qp->attributes().sqd_notify = true;
    a->qp->enter(QpState::Sqd);
    world.run();
    ASSERT_EQ(a->owner.events.size(), 1U);
    EXPECT_EQ(a->owner.events[0], QpEvent::SqDrained);
    EXPECT_TRUE(a->owner.sent.empty()) << "a request was started in SQD";
    a->qp->enter(QpState::Rts);
    world.run();
    EXPECT_EQ(a->owner.sent.size(), 1U);
}

TEST_F(RcPair, PostInErrorIsFlushedEachTime) {
    a->qp->enter(QpState::Error);
    world.post(*a, write(0, 4096, 64, key));
    world.run();
    EXPECT_EQ(a->owner.send_flushes, 2);
    EXPECT_TRUE(a->owner.sent.empty());
}

TEST_F(RcPair, DestroyingAScheduledQueuePairLeavesNoTrace) {
    for (int i = 0; i < 1000; ++i) {
        auto extra = world.make(20);
        world.bring_up(*extra, 21);
        world.post(*extra, write(0, 4096, 64, key));
        extra.reset();
    }
    world.run();
    EXPECT_EQ(world.engine.queue_pairs(), 2U) << "the pair of this fixture";
}

}  // namespace
}  // namespace ernic::rdma
