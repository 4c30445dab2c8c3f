// SPDX-License-Identifier: MIT
// What the engine does when the segment loses, repeats, reorders and delays messages
// (InfiniBand 9.7.5, 9.7.8).
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "net/faults.hpp"
#include "rdma/test_support.hpp"

namespace ernic::rdma {
namespace {

using test::Peer;
using test::World;

constexpr std::uint64_t kSource = 0;
constexpr std::uint64_t kTarget = 1'048'576;
constexpr std::uint64_t kLocal = 1'572'864;
constexpr std::uint64_t kReceive = 2'097'152;
constexpr std::uint64_t kCounter = 4'000'000;
constexpr std::uint64_t kOriginals = 4'001'000;
constexpr std::uint32_t kReceiveSize = 300'000;

class Loss : public ::testing::Test {
  protected:
    Loss() {
        world.bring_up(*a, 11, 0xfffff0, 100);
        world.bring_up(*b, 10, 100, 0xfffff0);
        a->qp->attributes().retry_count = 7;
        a->qp->attributes().rnr_retry = 7;
        std::mt19937 random(1);
        for (std::size_t i = 0; i < 1'048'576; ++i) {
            world.bytes[kSource + i] = static_cast<std::byte>(random());
        }
        expected = world.bytes;
    }

    void fault(const std::string& spec) {
        const auto added = faults.add(spec);
        ASSERT_TRUE(added) << added.error().message;
    }

    /// Lets time pass until all `count` requests have ended, or for ten seconds.
    void finish(std::size_t count) {
        world.run();
        for (int i = 0; i < 10'000 && a->owner.sent.size() < count; ++i) {
            world.advance(1'000'000);
        }
    }
    /// All have ended well, once each and in order, and memory is what it would be without any fault.
    void expect_all_well(std::size_t count, const std::string& what) {
        ASSERT_EQ(a->owner.sent.size(), count)
            << what << ": last status "
            << (a->owner.sent.empty() ? -1 : static_cast<int>(a->owner.sent.back().status));
        for (std::size_t i = 0; i < count; ++i) {
            ASSERT_EQ(a->owner.sent[i].status, CompletionStatus::Success) << what << " request " << i;
            ASSERT_EQ(a->owner.sent[i].position, i) << what;
        }
        // Copies that are still under way must not change anything either.
        faults.clear_all();
        for (int i = 0; i < 100; ++i) {
            world.advance(1'000'000);
        }
        ASSERT_EQ(a->owner.sent.size(), count) << what;
        ASSERT_EQ(b->owner.received.size(), receives) << what;
        ASSERT_TRUE(world.bytes == expected) << what;
    }

    /// Posts a request and does to `expected` what it will do to memory.
    void post(Opcode opcode, std::uint32_t length, std::uint64_t from, std::uint64_t to) {
        WorkRequest wr = World::request(opcode, from, length, key);
        wr.rkey = key;
        wr.remote_va = to;
        std::uint64_t source = from;
        std::uint64_t target = to;
        if (opcode == Opcode::Read) {
            wr.sges[0].va = target = kLocal + from % 200'000;
            wr.remote_va = source = from;
        } else if (is_atomic(opcode)) {
            post_atomic(opcode);
            return;
        } else if (opcode != Opcode::Write) {
            target = kReceive + (receives % 5) * kReceiveSize;
            world.post_receive(*b, target, kReceiveSize, key);
            ++receives;
            target = opcode == Opcode::WriteImmediate ? to : target;
        }
        if (length != 0) {
            std::memmove(&expected[target], &expected[source], length);
        }
        world.post(*a, wr);
    }
    void post_atomic(Opcode opcode) {
        std::uint64_t value = 0;
        std::memcpy(&value, &expected[kCounter], 8);
        const std::uint64_t place = kOriginals + (atomics++ % 1000) * 8;
        WorkRequest wr = World::request(opcode, place, 8, key);
        wr.rkey = key;
        wr.remote_va = kCounter;
        wr.compare = value;
        wr.swap_add = opcode == Opcode::FetchAdd ? 3 : value * 5 + 1;
        std::memcpy(&expected[place], &value, 8);
        value = opcode == Opcode::FetchAdd ? value + 3 : wr.swap_add;
        std::memcpy(&expected[kCounter], &value, 8);
        world.post(*a, wr);
    }

    World world;
    std::unique_ptr<Peer> a = world.make(10);
    std::unique_ptr<Peer> b = world.make(11);
    std::uint32_t key = world.region(1, 0, test::kMemorySize, World::all_rights());
    net::Link link;
    net::Faults faults{world.segment, link, world.loop, log::Logger(log::null_sink(), "")};
    std::vector<std::byte> expected;
    std::size_t receives = 0;
    std::uint64_t atomics = 0;
};

constexpr std::array kRemote = {Opcode::Send,        Opcode::Write,    Opcode::WriteImmediate, Opcode::Read,
                                Opcode::CompareSwap, Opcode::FetchAdd, Opcode::SendImmediate};

class EachFault : public Loss, public ::testing::WithParamInterface<const char*> {};

TEST_P(EachFault, LeavesEveryOperationExecutedOnceAndInOrder) {
    fault(GetParam());
    std::size_t count = 0;
    for (const std::uint32_t length : {0U, 1U, 5'000U, 290'000U}) {
        for (const Opcode opcode : kRemote) {
            post(opcode, length, kSource + length, kTarget + count * 100);
            ++count;
        }
    }
    finish(count);
    expect_all_well(count, GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Loss, EachFault,
    ::testing::Values("drop,opcode=send,count=1", "drop,opcode=send,every=3", "drop,opcode=write,every=3",
                      "drop,opcode=read,every=3", "drop,opcode=atomic,every=3", "drop,opcode=ack,every=2",
                      "drop,opcode=ack,count=6", "drop,opcode=nak", "drop,opcode=read_response,every=3",
                      "drop,opcode=atomic_response,every=3", "drop,opcode=response,every=5",
                      "drop,opcode=request,every=4", "drop,probability=0.1", "duplicate",
                      "duplicate=3,opcode=request", "duplicate,opcode=response", "reorder,every=2",
                      "reorder=3,every=3", "reorder,opcode=request,every=2", "delay=1ms",
                      "delay=1ms,opcode=request", "delay=5ms,opcode=response",
                      "delay=30ms,opcode=read_response", "delay=90ms,opcode=ack,every=3",
                      "delay=100us,jitter=3ms", "delay=200ms,every=7", "rate=1Gbit", "rate=200Mbit"));

TEST_F(Loss, RandomFaultsAndRandomOperationsEndInTheRightMemory) {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
        const std::string with_seed = ",seed=" + std::to_string(seed);
        fault("drop,probability=0.08" + with_seed);
        fault("duplicate,probability=0.1" + with_seed);
        fault("reorder,probability=0.1" + with_seed);
        fault("delay=1ms,jitter=3ms,probability=0.2" + with_seed);
        std::mt19937 random(static_cast<unsigned>(seed));
        const std::size_t before = a->owner.sent.size();
        constexpr std::size_t kCount = 60;
        constexpr std::array<std::uint32_t, 6> kLengths = {0, 1, 1'000, 5'000, 70'000, 290'000};
        for (std::size_t i = 0; i < kCount; ++i) {
            post(kRemote[random() % kRemote.size()], kLengths[random() % kLengths.size()],
                 kSource + random() % 700'000, kTarget + random() % 200'000);
            if (random() % 4 == 0) {
                world.advance(random() % 2'000'000);
            }
        }
        finish(before + kCount);
        expect_all_well(before + kCount, "seed " + std::to_string(seed));
    }
}

class Forever : public Loss, public ::testing::WithParamInterface<std::pair<const char*, Opcode>> {};

TEST_P(Forever, EndsInRetryExceededAfterTheRetriesAskedForAndNotBefore) {
    const auto& [spec, opcode] = GetParam();
    fault(spec);
    a->qp->attributes().retry_count = 3;
    post(opcode, 5'000, kSource, kTarget);
    world.run();
    for (int retry = 0; retry < 3; ++retry) {
        world.advance(acknowledge_timeout(14));
        ASSERT_TRUE(a->owner.sent.empty()) << spec << " after " << retry;
    }
    world.advance(acknowledge_timeout(14));
    ASSERT_EQ(a->owner.sent.size(), 1U) << spec;
    EXPECT_EQ(a->owner.sent[0].status, CompletionStatus::RetryExceeded) << spec;
    EXPECT_EQ(a->qp->state(), QpState::Error);
    EXPECT_EQ(b->qp->state(), QpState::Rts) << "the peer has done nothing wrong";
    EXPECT_LE(b->owner.received.size(), 1U);
    EXPECT_EQ(world.engine.counters().req_retry_exceeded.value(), 1U);
}

INSTANTIATE_TEST_SUITE_P(Loss, Forever,
                         ::testing::Values(std::pair("drop", Opcode::Write),
                                           std::pair("drop,opcode=send", Opcode::Send),
                                           std::pair("drop,opcode=write,qp=11", Opcode::Write),
                                           std::pair("drop,opcode=read", Opcode::Read),
                                           std::pair("drop,opcode=cmp_swap", Opcode::CompareSwap),
                                           std::pair("drop,opcode=fetch_add", Opcode::FetchAdd),
                                           std::pair("drop,opcode=ack", Opcode::Send),
                                           std::pair("drop,opcode=read_response", Opcode::Read),
                                           std::pair("drop,opcode=atomic_response", Opcode::FetchAdd)));

TEST_F(Loss, AReadThatIsNeverAnsweredFailsHoweverMuchBehindItIsAcknowledged) {
    fault("drop,opcode=read_response");
    a->qp->attributes().retry_count = 3;
    post(Opcode::Read, 1'000, kSource, kSource);
    for (int i = 0; i < 10; ++i) {
        post(Opcode::Write, 1'000, kSource, kTarget);
    }
    world.run();
    for (int i = 0; i < 4; ++i) {
        world.advance(acknowledge_timeout(14));
    }
    ASSERT_EQ(a->owner.sent.size(), 1U);
    EXPECT_EQ(a->owner.sent[0].status, CompletionStatus::RetryExceeded);
    EXPECT_EQ(a->owner.sent[0].opcode, Opcode::Read);
}

TEST_F(Loss, AGapInALongReadIsRepairedWithoutWaitingForTheTimer) {
    fault("drop,opcode=read_response,after=1,count=1");
    post(Opcode::Read, 800'000, kSource, kSource);
    world.run();
    EXPECT_EQ(a->owner.sent.size(), 1U);
    EXPECT_EQ(a->qp->counters().timeouts, 0U);
}

TEST_F(Loss, ALostRequestIsRepairedByASequenceNakWithoutWaitingForTheTimer) {
    fault("drop,opcode=write,after=1,count=1");
    for (int i = 0; i < 5; ++i) {
        post(Opcode::Write, 1'000, kSource + i * 1'000U, kTarget + i * 1'000U);
    }
    world.run();
    expect_all_well(5, "nak");
    EXPECT_EQ(a->qp->counters().timeouts, 0U);
    EXPECT_EQ(world.engine.counters().req_sequence_errors.value(), 1U);
}

TEST_F(Loss, ManyAtomicsWithoutAnswerAreAllReplayed) {
    a->qp->attributes().max_rd_atomic = 62;
    fault("drop,opcode=atomic_response,count=62");
    for (int i = 0; i < 62; ++i) {
        post(Opcode::FetchAdd, 8, 0, 0);
    }
    finish(62);
    expect_all_well(62, "atomics");
}

TEST_F(Loss, ACopyOfAReadThatComesWhenItsRegionIsGoneHurtsNobody) {
    const std::uint32_t short_lived = world.region(12, 0, 4096, World::all_rights());
    WorkRequest read = World::request(Opcode::Read, kLocal, 64, key);
    read.rkey = short_lived;
    fault("delay=100ms,opcode=read,count=1");
    world.post(*a, read);
    world.run();
    world.advance(acknowledge_timeout(14));
    ASSERT_EQ(a->owner.sent.size(), 1U) << "the repetition is not delayed";
    world.engine.memory_table().destroy(short_lived);
    world.advance(100'000'000);
    EXPECT_EQ(world.engine.counters().resp_duplicate_requests.value(), 1U);
    EXPECT_EQ(b->qp->state(), QpState::Rts);
    EXPECT_TRUE(b->owner.events.empty());
}

TEST_F(Loss, CopiesOfAReceiverNotReadyAnswerCountOnce) {
    a->qp->attributes().rnr_retry = 1;
    fault("duplicate=4,opcode=nak");
    world.post(*a, World::request(Opcode::Send, kSource, 64, key));
    world.post(*a, World::request(Opcode::Send, kSource, 64, key));
    world.run();
    EXPECT_TRUE(a->owner.sent.empty());
    world.post_receive(*b, kReceive, 64, key);
    world.post_receive(*b, kReceive, 64, key);
    world.advance(rnr_delay(12));
    ASSERT_EQ(a->owner.sent.size(), 2U);
    EXPECT_EQ(a->owner.sent[1].status, CompletionStatus::Success);
}

TEST_F(Loss, CorruptedPayloadArrivesAndTheSendersMemoryStaysAsItIs) {
    fault("corrupt=3,opcode=write,count=1");
    post(Opcode::Write, 1'000, kSource, kTarget);
    world.run();
    ASSERT_EQ(a->owner.sent.size(), 1U);
    EXPECT_EQ(a->owner.sent[0].status, CompletionStatus::Success) << "nobody has noticed";
    EXPECT_FALSE(world.same(kSource, kTarget, 1'000));
    EXPECT_EQ(std::memcmp(&world.bytes[kSource], &expected[kSource], 1'000), 0);
    int flipped = 0;
    for (std::size_t i = 0; i < 1'000; ++i) {
        flipped += __builtin_popcount(
            std::to_integer<unsigned>(world.bytes[kSource + i] ^ world.bytes[kTarget + i]));
    }
    EXPECT_EQ(flipped, 3);
}

class DatagramLoss : public Loss {
  protected:
    DatagramLoss() {
        for (Peer* const peer : {sender.get(), receiver.get()}) {
            world.bring_up(*peer, 0);
        }
        EXPECT_TRUE(world.engine.set_address_handle(1, test::kPd, World::route_to(world.mac, world.mac)));
        for (int i = 0; i < 10; ++i) {
            world.post_receive(*receiver, kReceive + i * 1'000U, 1'000, key);
        }
    }
    void send(std::uint64_t from) {
        WorkRequest wr = World::request(Opcode::Send, from, 500, key);
        wr.ah_id = 1;
        wr.destination_qpn = 21;
        wr.destination_qkey = 0x1234;
        world.post(*sender, wr);
    }
    std::unique_ptr<Peer> sender = world.make(20, QpType::Ud);
    std::unique_ptr<Peer> receiver = world.make(21, QpType::Ud);
};

TEST_F(DatagramLoss, LostDatagramsAreLostAndTheSenderDoesNotKnow) {
    fault("drop,opcode=ud,every=2");
    for (int i = 0; i < 6; ++i) {
        send(kSource);
    }
    world.advance(1'000'000'000);
    EXPECT_EQ(sender->owner.sent.size(), 6U);
    EXPECT_EQ(receiver->owner.received.size(), 3U);
}

TEST_F(DatagramLoss, CopiedAndDelayedDatagramsArriveThatOftenEvenWhenTheSenderIsGone) {
    fault("duplicate,opcode=ud");
    fault("delay=2ms,opcode=ud");
    send(kSource);
    world.run();
    EXPECT_TRUE(receiver->owner.received.empty());
    sender.reset();
    world.engine.remove_address_handle(1);
    world.advance(2'000'000);
    EXPECT_EQ(receiver->owner.received.size(), 2U);
    EXPECT_TRUE(world.same(kSource, kReceive + 40, 500));
    EXPECT_TRUE(world.same(kSource, kReceive + 1'040, 500));
}

TEST_F(Loss, AnAnswerThatComesBetweenTurnsStartsNoTimer) {
    a->qp->attributes().timeout = 1;
    a->qp->attributes().retry_count = 0;
    fault("delay=1us,opcode=response,count=1");
    post(Opcode::Write, 64, kSource, kTarget);
    post(Opcode::Write, 1'000'000, kSource + 100, kTarget);
    for (int turn = 0; turn < 10'000 && a->owner.sent.size() < 2; ++turn) {
        world.engine.step();
        for (const Nanoseconds pause : {Nanoseconds{2'000}, acknowledge_timeout(1) * 10}) {
            world.clock.advance(pause);
            world.loop.run_once(false);
        }
    }
    EXPECT_EQ(a->qp->counters().timeouts, 0U);
    expect_all_well(2, "slow turns, a late answer");
}

TEST_F(Loss, WaitingForOnesOwnTurnIsNotALateAnswer) {
    // Messages of several turns, of which only the last fragment is acknowledged, and a device thread that is
    // busy elsewhere between two turns.
    a->qp->attributes().timeout = 1;
    a->qp->attributes().retry_count = 0;
    for (std::uint32_t i = 0; i < 4; ++i) {
        post(Opcode::Write, 1'000'000, kSource + i, kTarget);
    }
    for (int turn = 0; turn < 10'000 && a->owner.sent.size() < 4; ++turn) {
        world.engine.step();
        world.clock.advance(acknowledge_timeout(1) * 10);
        world.loop.run_once(false);
    }
    EXPECT_EQ(a->qp->counters().timeouts, 0U);
    EXPECT_EQ(world.engine.counters().resp_duplicate_requests.value(), 0U);
    expect_all_well(4, "slow turns");
}

}  // namespace
}  // namespace ernic::rdma
