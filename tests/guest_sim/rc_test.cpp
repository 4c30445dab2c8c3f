// SPDX-License-Identifier: MIT
#include <array>
#include <tuple>

#include "guest_sim/fixture.hpp"

namespace ernic::guest_sim {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20U;
/// Untouched bytes around a target, to see writes beyond it.
constexpr std::size_t kFence = 64;

class Rc : public GuestTest {};

TEST_F(Rc, SendDeliversDataAndCompletesOnBothSides) {
    auto receive_cq = guest.create_cq();
    auto [sender, receiver] = guest.create_pair(*cq, *receive_cq);
    const Region from = guest.register_memory(1000);
    const Region to = guest.register_memory(4096);
    fill_pattern(from.memory, 1);
    receiver->post_receive({.wr_id = 7, .sges = to.list()});
    sender->post_send({.wr_id = 5, .sges = from.list()});

    const WorkCompletion received = receive_cq->wait();
    EXPECT_TRUE(received.receive);
    EXPECT_EQ(received.wr_id, 7U);
    EXPECT_EQ(received.status, Status::Ok);
    EXPECT_EQ(received.receive_op, ReceiveOp::Send);
    EXPECT_EQ(received.length, 1000U);
    EXPECT_EQ(received.source_qpn, sender->qpn());
    EXPECT_EQ(received.qpn, receiver->qpn());
    expect_send(*cq, 5);
    EXPECT_EQ(first_mismatch(to.memory.part(0, 1000), 1), kNoMismatch);
    EXPECT_TRUE(all_bytes(to.memory.part(1000, 3096), 0)) << "bytes behind the message were written";
    EXPECT_TRUE(cq->silent());
    EXPECT_TRUE(receive_cq->silent());
}

TEST_F(Rc, SendWithImmediateCarriesItInWireOrder) {
    auto [sender, receiver] = guest.create_pair(*cq);
    const Region to = guest.register_memory(64);
    receiver->post_receive({.wr_id = 1, .sges = to.list()});
    sender->post_send({.wr_id = 2, .op = Op::SendImmediate, .sges = to.list(), .immediate = 0x12345678});
    for (const WorkCompletion& wc : cq->wait_for(2)) {
        EXPECT_EQ(wc.status, Status::Ok);
        if (wc.receive) {
            EXPECT_EQ(wc.receive_op, ReceiveOp::SendImmediate);
            EXPECT_EQ(wc.immediate_or_key, 0x12345678U);
        }
    }
}

TEST_F(Rc, ReceivesAreTakenInTheOrderTheyWerePosted) {
    auto receive_cq = guest.create_cq();
    auto [sender, receiver] = guest.create_pair(*cq, *receive_cq);
    const Region from = guest.register_memory(4096);
    const Region to = guest.register_memory(4096);
    fill_pattern(from.memory, 3);
    for (std::uint64_t i = 0; i < 16; ++i) {
        receiver->stage(ReceiveRequest{.wr_id = 100 + i, .sges = {to.sge(i * 256, 256)}});
    }
    receiver->ring_receive();
    for (std::uint64_t i = 0; i < 16; ++i) {
        sender->stage(SendRequest{.wr_id = i, .sges = {from.sge(i * 256, 200)}});
    }
    sender->ring_send();
    const auto received = receive_cq->wait_for(16);
    const auto sent = cq->wait_for(16);
    for (std::uint64_t i = 0; i < 16; ++i) {
        EXPECT_EQ(received[i].wr_id, 100 + i);
        EXPECT_EQ(received[i].length, 200U);
        EXPECT_EQ(sent[i].wr_id, i);
        EXPECT_EQ(std::memcmp(from.memory.host + i * 256, to.memory.host + i * 256, 200), 0);
    }
}

/// Every size around the packet, page and fragment borders, at odd addresses.
class RcSizes : public Rc, public ::testing::WithParamInterface<std::tuple<std::size_t, int>> {};

TEST_P(RcSizes, WriteReadAndSendMoveExactlyTheirBytes) {
    const auto [size, mtu_log2] = GetParam();
    const std::size_t at = 3;
    auto [client, peer] = guest.create_pair(*cq, {}, {.mtu_log2 = static_cast<std::uint8_t>(mtu_log2)});
    const Region from = guest.register_memory(size + at + kFence);
    const Region to = guest.register_memory(size + 2 * kFence);
    fill_pattern(from.memory, 11);
    to.memory.fill(0xee);

    const auto check = [&, size = size](const char* what) {
        const Buffer arrived = to.memory.part(kFence, size);
        EXPECT_EQ(std::memcmp(arrived.host, from.memory.host + at, size), 0) << what;
        EXPECT_TRUE(all_bytes(to.memory.part(0, kFence), 0xee)) << what << " wrote before its target";
        EXPECT_TRUE(all_bytes(to.memory.part(kFence + size, kFence), 0xee))
            << what << " wrote behind its target";
        arrived.fill(0xee);
    };
    client->post_send({.wr_id = 1,
                       .op = Op::Write,
                       .sges = {from.sge(at, size)},
                       .remote_va = to.va + kFence,
                       .rkey = to.key});
    expect_send(*cq, 1);
    check("WRITE");

    client->post_send({.wr_id = 2,
                       .op = Op::Read,
                       .sges = {to.sge(kFence, size)},
                       .remote_va = from.va + at,
                       .rkey = from.key});
    expect_send(*cq, 2);
    check("READ");

    peer->post_receive({.wr_id = 3, .sges = {to.sge(kFence, size)}});
    client->post_send({.wr_id = 4, .sges = {from.sge(at, size)}});
    for (const WorkCompletion& wc : cq->wait_for(2)) {
        EXPECT_EQ(wc.status, Status::Ok);
        if (wc.receive) {
            EXPECT_EQ(wc.length, size);
        }
    }
    check("SEND");
}

INSTANTIATE_TEST_SUITE_P(Edges, RcSizes,
                         ::testing::Combine(::testing::Values(1, 2, 63, 64, 65, 255, 256, 257, 1023, 1024,
                                                              1025, 4095, 4096, 4097, 8192, 65535, 65536,
                                                              262143, 262144, 262145),
                                            ::testing::Values(12)));
INSTANTIATE_TEST_SUITE_P(SmallPackets, RcSizes,
                         ::testing::Combine(::testing::Values(255, 257, 262145, 1000000),
                                            ::testing::Values(8, 10)));
INSTANTIATE_TEST_SUITE_P(Large, RcSizes,
                         ::testing::Combine(::testing::Values(kMiB, kMiB + 1, 8 * kMiB),
                                            ::testing::Values(12)));

TEST_F(Rc, ZeroLengthMessagesCompleteWithoutTouchingMemory) {
    auto [client, peer] = guest.create_pair(*cq);
    peer->post_receive({.wr_id = 1});
    client->post_send({.wr_id = 2});
    for (const WorkCompletion& wc : cq->wait_for(2)) {
        EXPECT_EQ(wc.status, Status::Ok);
        EXPECT_EQ(wc.length, 0U);
    }
    // InfiniBand 9.7.4.1.5 / 9.7.4.1.6: a zero-length RDMA request is not checked against its R_Key.
    client->post_send({.wr_id = 3, .op = Op::Write, .remote_va = 0x1234, .rkey = 0xdead00});
    expect_send(*cq, 3);
    client->post_send({.wr_id = 4, .op = Op::Read, .remote_va = 0x1234, .rkey = 0xdead00});
    expect_send(*cq, 4);
    // The QPs are still in order.
    EXPECT_EQ(client->query().state(), QpState::Rts);
    EXPECT_EQ(peer->query().state(), QpState::Rts);
}

TEST_F(Rc, WriteWithImmediateTakesAReceiveButNotItsBuffer) {
    auto receive_cq = guest.create_cq();
    auto [client, peer] = guest.create_pair(*cq, *receive_cq);
    const Region from = guest.register_memory(300 * 1024);
    const Region to = guest.register_memory(300 * 1024);
    const Region untouched = guest.register_memory(64);
    fill_pattern(from.memory, 5);
    untouched.memory.fill(0x77);
    peer->post_receive({.wr_id = 9, .sges = untouched.list()});
    client->post_send({.wr_id = 1,
                       .op = Op::WriteImmediate,
                       .sges = from.list(),
                       .remote_va = to.va,
                       .rkey = to.key,
                       .immediate = 0xcafe});
    const WorkCompletion wc = receive_cq->wait();
    EXPECT_EQ(wc.wr_id, 9U);
    EXPECT_EQ(wc.receive_op, ReceiveOp::WriteImmediate);
    EXPECT_EQ(wc.immediate_or_key, 0xcafeU);
    EXPECT_EQ(wc.length, 300U * 1024);
    EXPECT_EQ(first_mismatch(to.memory, 5), kNoMismatch);
    EXPECT_TRUE(all_bytes(untouched.memory, 0x77));
    expect_send(*cq, 1);
}

TEST_F(Rc, AtomicsReturnTheOriginalAndChangeTheTarget) {
    const auto pair = guest.create_pair(*cq);
    const Region target = guest.register_memory(64);
    const Region result = guest.register_memory(64);
    const std::uint64_t start = 0x0123456789abcdef;
    target.memory.set(start, 8);
    const auto run = [&](Op op, std::uint64_t compare, std::uint64_t swap_add) {
        pair.first->post_send({.op = op,
                               .sges = {result.sge(16, 8)},
                               .remote_va = target.va + 8,
                               .rkey = target.key,
                               .compare = compare,
                               .swap_add = swap_add});
        EXPECT_EQ(cq->wait().status, Status::Ok);
        return result.memory.get<std::uint64_t>(16);
    };
    EXPECT_EQ(run(Op::FetchAdd, 0, 0x1111), start);
    EXPECT_EQ(target.memory.get<std::uint64_t>(8), start + 0x1111);
    EXPECT_EQ(run(Op::CompareSwap, start, 1), start + 0x1111);
    EXPECT_EQ(target.memory.get<std::uint64_t>(8), start + 0x1111) << "a failed compare must not store";
    EXPECT_EQ(run(Op::CompareSwap, start + 0x1111, 42), start + 0x1111);
    EXPECT_EQ(target.memory.get<std::uint64_t>(8), 42U);
    EXPECT_EQ(run(Op::FetchAdd, 0, ~std::uint64_t{0}), 42U);
    EXPECT_EQ(target.memory.get<std::uint64_t>(8), 41U) << "the addition wraps";
    EXPECT_EQ(target.memory.get<std::uint64_t>(0), 0U);
    EXPECT_EQ(target.memory.get<std::uint64_t>(16), 0U);
}

TEST_F(Rc, InlineDataIsTakenFromTheRequest) {
    auto [client, peer] = guest.create_pair(*cq, {.max_inline = 480});
    const Region to = guest.register_memory(4096);
    std::array<std::byte, 480> data{};
    for (const std::size_t size : {1U, 31U, 32U, 33U, 220U, 480U}) {
        for (std::size_t i = 0; i < size; ++i) {
            data[i] = std::byte{pattern_at(i, static_cast<std::uint32_t>(size))};
        }
        to.memory.fill(0);
        client->post_send({.wr_id = size,
                           .op = Op::Write,
                           .inline_data = Bytes(data).first(size),
                           .remote_va = to.va,
                           .rkey = to.key});
        expect_send(*cq, size);
        EXPECT_EQ(first_mismatch(to.memory.part(0, size), static_cast<std::uint32_t>(size)), kNoMismatch);
        EXPECT_TRUE(all_bytes(to.memory.part(size, 64), 0));
        peer->post_receive({.wr_id = 1, .sges = {to.sge(2048, 480)}});
        client->post_send({.wr_id = size, .inline_data = Bytes(data).first(size)});
        cq->wait_for(2);
        EXPECT_EQ(first_mismatch(to.memory.part(2048, size), static_cast<std::uint32_t>(size)), kNoMismatch);
    }
}

TEST_F(Rc, GatherAndScatterAcrossEightElements) {
    auto [client, peer] = guest.create_pair(*cq, {.max_sges = 8});
    const Region from = guest.register_memory(kMiB);
    const Region to = guest.register_memory(kMiB);
    const Region flat = guest.register_memory(kMiB);
    fill_pattern(from.memory, 21);
    constexpr std::array<std::uint32_t, 8> kPieces = {1, 4095, 4096, 17, 100000, 3, 65536, 7};
    SgeList gather;
    SgeList scatter;
    std::vector<std::byte> expected;
    std::uint64_t gather_at = 5;
    std::uint64_t scatter_at = 0;
    for (std::size_t i = 0; i < kPieces.size(); ++i) {
        gather.add(from.sge(gather_at, kPieces[i]));
        const Bytes piece = from.memory.part(gather_at, kPieces[i]).bytes();
        expected.insert(expected.end(), piece.begin(), piece.end());
        gather_at += kPieces[i] + 13;
        // The other side splits the same number of bytes elsewhere.
        const std::uint32_t other = kPieces[kPieces.size() - 1 - i];
        scatter.add(to.sge(scatter_at, other));
        scatter_at += other + 29;
    }
    client->post_send({.wr_id = 1, .op = Op::Write, .sges = gather, .remote_va = flat.va, .rkey = flat.key});
    expect_send(*cq, 1);
    EXPECT_EQ(std::memcmp(flat.memory.host, expected.data(), expected.size()), 0) << "WRITE gathers";

    const auto scattered_equals = [&] {
        std::size_t done = 0;
        for (const Sge& sge : scatter) {
            if (std::memcmp(to.memory.host + (sge.va - to.va), expected.data() + done, sge.length) != 0) {
                return false;
            }
            done += sge.length;
        }
        return done == expected.size();
    };
    peer->post_receive({.wr_id = 2, .sges = scatter});
    client->post_send({.wr_id = 3, .sges = gather});
    cq->wait_for(2);
    EXPECT_TRUE(scattered_equals()) << "SEND gathers and scatters";

    to.memory.fill(0);
    client->post_send({.wr_id = 4, .op = Op::Read, .sges = scatter, .remote_va = flat.va, .rkey = flat.key});
    expect_send(*cq, 4);
    EXPECT_TRUE(scattered_equals()) << "READ scatters";
}

TEST_F(Rc, UnsignalledRequestsCompleteWithTheNextSignalledOne) {
    auto [client, peer] = guest.create_pair(*cq);
    const Region memory = guest.register_memory(4096);
    for (std::uint64_t i = 0; i < 60; ++i) {
        client->stage(SendRequest{.wr_id = i,
                                  .op = Op::Write,
                                  .sges = {memory.sge(0, 64)},
                                  .remote_va = memory.va + 2048,
                                  .rkey = memory.key,
                                  .signalled = i % 20 == 19});
    }
    client->ring_send();
    const auto completions = cq->wait_for(3);
    EXPECT_EQ(completions[0].wr_id, 19U);
    EXPECT_EQ(completions[1].wr_id, 39U);
    EXPECT_EQ(completions[2].wr_id, 59U);
    EXPECT_TRUE(cq->silent());
    EXPECT_LE(client->entries().msn, 3U) << "user QPs get cumulative entries";
    EXPECT_EQ(client->send_room(), client->send_capacity());
}

TEST_F(Rc, RingsWrapManyTimes) {
    auto receive_cq = guest.create_cq({.entries = 16});
    auto small_cq = guest.create_cq({.entries = 16});
    auto [client, peer] = guest.create_pair(*small_cq, *receive_cq, {.max_send = 15, .max_receive = 15});
    const Region from = guest.register_memory(4096);
    const Region to = guest.register_memory(4096);
    for (std::uint32_t i = 0; i < 1000; ++i) {
        from.memory.set(i);
        peer->post_receive({.wr_id = i, .sges = {to.sge(0, 4)}});
        client->post_send({.wr_id = i, .sges = {from.sge(0, 4)}});
        ASSERT_EQ(receive_cq->wait().wr_id, i);
        ASSERT_EQ(small_cq->wait().wr_id, i);
        ASSERT_EQ(to.memory.get<std::uint32_t>(), i);
    }
}

TEST_F(Rc, AWriteIsInPlaceWhenTheSendBehindItArrives) {
    auto receive_cq = guest.create_cq();
    auto [client, peer] = guest.create_pair(*cq, *receive_cq);
    const Region from = guest.register_memory(kMiB);
    const Region to = guest.register_memory(kMiB);
    fill_pattern(from.memory, 77);
    peer->post_receive({.wr_id = 1});
    client->stage(SendRequest{
        .op = Op::Write, .sges = from.list(), .remote_va = to.va, .rkey = to.key, .signalled = false});
    client->stage(SendRequest{.wr_id = 2});
    client->ring_send();
    EXPECT_EQ(receive_cq->wait().wr_id, 1U);
    EXPECT_EQ(first_mismatch(to.memory, 77), kNoMismatch);
    expect_send(*cq, 2);
}

TEST_F(Rc, MoreReadsThanTheWindowAllAllComplete) {
    auto [client, peer] = guest.create_pair(*cq, {}, {.max_rd_atomic = 1, .max_dest_rd_atomic = 1});
    const Region from = guest.register_memory(64 * 1024);
    const Region to = guest.register_memory(64 * 1024);
    fill_pattern(from.memory, 8);
    for (std::uint64_t i = 0; i < 32; ++i) {
        client->stage(SendRequest{.wr_id = i,
                                  .op = Op::Read,
                                  .sges = {to.sge(i * 2048, 2048)},
                                  .remote_va = from.va + i * 2048,
                                  .rkey = from.key});
    }
    client->ring_send();
    const auto completions = cq->wait_for(32);
    for (std::uint64_t i = 0; i < 32; ++i) {
        EXPECT_EQ(completions[i].wr_id, i);
        EXPECT_EQ(completions[i].status, Status::Ok);
    }
    EXPECT_EQ(first_mismatch(to.memory, 8), kNoMismatch);
}

TEST_F(Rc, AFencedRequestSeesTheDataOfTheReadBeforeIt) {
    auto [client, peer] = guest.create_pair(*cq);
    const Region origin = guest.register_memory(kMiB);
    const Region middle = guest.register_memory(kMiB);
    const Region final = guest.register_memory(kMiB);
    fill_pattern(origin.memory, 31);
    client->stage(SendRequest{
        .wr_id = 1, .op = Op::Read, .sges = middle.list(), .remote_va = origin.va, .rkey = origin.key});
    client->stage(SendRequest{.wr_id = 2,
                              .op = Op::Write,
                              .sges = middle.list(),
                              .remote_va = final.va,
                              .rkey = final.key,
                              .fence = true});
    client->ring_send();
    expect_send(*cq, 1);
    expect_send(*cq, 2);
    EXPECT_EQ(first_mismatch(final.memory, 31), kNoMismatch);
}

TEST_F(Rc, BothDirectionsAtOnce) {
    auto second_cq = guest.create_cq();
    auto [first, second] = guest.create_pair(*cq, *second_cq);
    const Region a = guest.register_memory(4 * kMiB);
    const Region b = guest.register_memory(4 * kMiB);
    fill_pattern(a.memory.part(0, 2 * kMiB), 1);
    fill_pattern(b.memory.part(0, 2 * kMiB), 2);
    first->post_send({.wr_id = 1,
                      .op = Op::Write,
                      .sges = {a.sge(0, 2 * kMiB)},
                      .remote_va = b.va + 2 * kMiB,
                      .rkey = b.key});
    second->post_send({.wr_id = 2,
                       .op = Op::Write,
                       .sges = {b.sge(0, 2 * kMiB)},
                       .remote_va = a.va + 2 * kMiB,
                       .rkey = a.key});
    expect_send(*cq, 1);
    expect_send(*second_cq, 2);
    EXPECT_EQ(first_mismatch(b.memory.part(2 * kMiB, 2 * kMiB), 1), kNoMismatch);
    EXPECT_EQ(first_mismatch(a.memory.part(2 * kMiB, 2 * kMiB), 2), kNoMismatch);
}

TEST_F(Rc, ARegisterReadIsAnsweredWhileAGigabyteMoves) {
    auto [client, peer] = guest.create_pair(*cq, {.max_send = 255});
    const Region from = guest.register_memory(8 * kMiB);
    const Region to = guest.register_memory(8 * kMiB);
    for (int i = 0; i < 128; ++i) {
        client->stage(SendRequest{.wr_id = 1,
                                  .op = Op::Write,
                                  .sges = from.list(),
                                  .remote_va = to.va,
                                  .rkey = to.key,
                                  .signalled = i == 127});
    }
    client->ring_send();
    const auto begin = std::chrono::steady_clock::now();
    guest.client().read_value<le32>(0, 0);
    const auto took = std::chrono::steady_clock::now() - begin;
    EXPECT_FALSE(cq->poll(std::span<WorkCompletion>()) != 0);
    expect_send(*cq, 1);
    // A millisecond is the target; a loaded build machine gets slack. The whole transfer takes about 100 ms.
    EXPECT_LT(took, kInstrumentation * std::chrono::milliseconds(20));
}

}  // namespace
}  // namespace ernic::guest_sim
