// SPDX-License-Identifier: MIT
#include <array>
#include <chrono>
#include <cstring>

#include "guest_sim/fixture.hpp"

namespace ernic::guest_sim {
namespace {

using wire::ionic_rdma::QpEvent;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// Two connected QPs with completion queues of their own.
class Errors : public GuestTest {
  protected:
    void SetUp() override { connect({}); }

    void connect(const ConnectionOptions& options) {
        std::tie(client, peer) = guest.create_pair(*cq, *peer_cq, {.max_sges = 2}, options);
    }
    /// The client's request fails with `status`, its QP dies and says so once per side; the event is the
    /// peer's.
    void expect_refused(Status status, QpEvent event) {
        expect_send(*cq, 1, status);
        expect_one_flush_each(*cq, *client);
        EXPECT_EQ(client->query().state(), QpState::Error);
        EXPECT_TRUE(peer->async_events().wait_for(peer->event(event)));
        expect_one_flush_each(*peer_cq, *peer);
        EXPECT_EQ(peer->query().state(), QpState::Error);
    }
    /// The client's request fails without the peer having noticed anything.
    void expect_failed_alone(Status status) {
        expect_send(*cq, 1, status);
        expect_one_flush_each(*cq, *client);
        EXPECT_EQ(client->query().state(), QpState::Error);
        EXPECT_EQ(peer->query().state(), QpState::Rts);
        EXPECT_TRUE(peer_cq->silent());
    }
    void write(std::uint64_t remote_va, std::uint32_t rkey, std::size_t size = 64) {
        client->post_send(
            {.wr_id = 1, .op = Op::Write, .sges = {from.sge(0, size)}, .remote_va = remote_va, .rkey = rkey});
    }

    CqPtr peer_cq = guest.create_cq();
    QpPtr client;
    QpPtr peer;
    Region from = guest.register_memory(4096);
    Region to = guest.register_memory(4096);
};

// ---- Receiver not ready

TEST_F(Errors, WithoutReceiveAFiniteRnrRetryEnds) {
    // Code 20 is 10.24 ms; three retries mean at least 30 ms.
    connect({.rnr_retry = 3, .min_rnr_timer = 20});
    const auto begin = Clock::now();
    client->post_send({.wr_id = 1, .sges = from.list()});
    expect_failed_alone(Status::RnrRetryExceeded);
    EXPECT_GE(Clock::now() - begin, milliseconds(30));
}

TEST_F(Errors, RnrRetryZeroFailsAtOnce) {
    connect({.rnr_retry = 0, .min_rnr_timer = 31});
    const auto begin = Clock::now();
    client->post_send({.wr_id = 1, .sges = from.list()});
    expect_send(*cq, 1, Status::RnrRetryExceeded);
    EXPECT_LT(Clock::now() - begin, milliseconds(400)) << "code 31 would be 491 ms";
}

TEST_F(Errors, WithInfiniteRnrRetryTheSendWaitsForItsReceive) {
    connect({.rnr_retry = 7, .min_rnr_timer = 1});
    fill_pattern(from.memory, 2);
    client->stage(SendRequest{.wr_id = 1, .sges = from.list()});
    client->stage(SendRequest{
        .wr_id = 2, .op = Op::Write, .sges = {from.sge(0, 8)}, .remote_va = to.va, .rkey = to.key});
    client->ring_send();
    EXPECT_TRUE(cq->silent(milliseconds(50)));
    peer->post_receive({.wr_id = 3, .sges = to.list()});
    const WorkCompletion wc = peer_cq->wait();
    EXPECT_EQ(wc.wr_id, 3U);
    EXPECT_EQ(wc.status, Status::Ok);
    expect_send(*cq, 1);
    expect_send(*cq, 2);
    EXPECT_EQ(first_mismatch(to.memory, 2), kNoMismatch);
}

TEST_F(Errors, AReceiverThatIsAlwaysLateLosesNothing) {
    connect({.rnr_retry = 7, .min_rnr_timer = 1});
    constexpr std::uint32_t kMessages = 30;
    for (std::uint32_t i = 0; i < kMessages; ++i) {
        from.memory.set(i, i * 8);
        client->stage(SendRequest{.wr_id = i, .sges = {from.sge(i * 8, 8)}});
    }
    client->ring_send();
    for (std::uint32_t i = 0; i < kMessages; ++i) {
        peer->post_receive({.wr_id = i, .sges = {to.sge(i * 8, 8)}});
        ASSERT_EQ(peer_cq->wait().wr_id, i);
        ASSERT_EQ(to.memory.get<std::uint32_t>(i * 8), i);
    }
    cq->wait_for(kMessages);
}

TEST_F(Errors, AWriteWithImmediateWithoutReceiveWaitsToo) {
    connect({.rnr_retry = 1, .min_rnr_timer = 1});
    client->post_send(
        {.wr_id = 1, .op = Op::WriteImmediate, .sges = from.list(), .remote_va = to.va, .rkey = to.key});
    expect_failed_alone(Status::RnrRetryExceeded);
}

// ---- Refused by the responder

TEST_F(Errors, UnknownRemoteKey) {
    write(to.va, 0x00abcd00);
    expect_refused(Status::RemoteAccess, QpEvent::AccessError);
}

TEST_F(Errors, WrongTagOfARemoteKey) {
    write(to.va, to.key + 1);
    expect_refused(Status::RemoteAccess, QpEvent::AccessError);
}

TEST_F(Errors, RemoteKeyZeroIsNobodysKey) {
    write(to.memory.iova, 0);
    expect_refused(Status::RemoteAccess, QpEvent::AccessError);
    EXPECT_TRUE(all_bytes(to.memory, 0));
}

TEST_F(Errors, BehindTheRemoteRegion) {
    write(to.va + to.length - 63, to.key);
    expect_refused(Status::RemoteAccess, QpEvent::AccessError);
    EXPECT_TRUE(all_bytes(to.memory, 0)) << "not a byte of a refused write may arrive";
}

TEST_F(Errors, BeforeTheRemoteRegion) {
    write(to.va - 1, to.key);
    expect_refused(Status::RemoteAccess, QpEvent::AccessError);
}

TEST_F(Errors, AnAddressThatWraps) {
    write(~std::uint64_t{0} - 10, to.key);
    expect_refused(Status::RemoteAccess, QpEvent::AccessError);
}

TEST_F(Errors, ARegionWithoutRemoteWrite) {
    const Region read_only = guest.register_memory(4096, kLocalWrite | kRemoteRead);
    write(read_only.va, read_only.key);
    expect_refused(Status::RemoteAccess, QpEvent::AccessError);
}

TEST_F(Errors, ARegionWithoutRemoteRead) {
    const Region write_only = guest.register_memory(4096, kLocalWrite | kRemoteWrite);
    client->post_send({.wr_id = 1,
                       .op = Op::Read,
                       .sges = {from.sge(0, 64)},
                       .remote_va = write_only.va,
                       .rkey = write_only.key});
    expect_refused(Status::RemoteAccess, QpEvent::AccessError);
}

TEST_F(Errors, ARegionWithoutRemoteAtomic) {
    const Region plain = guest.register_memory(4096, kLocalWrite | kRemoteWrite | kRemoteRead);
    client->post_send({.wr_id = 1,
                       .op = Op::FetchAdd,
                       .sges = {from.sge(0, 8)},
                       .remote_va = plain.va,
                       .rkey = plain.key,
                       .swap_add = 1});
    expect_refused(Status::RemoteAccess, QpEvent::AccessError);
}

TEST_F(Errors, ARegionOfAnotherPd) {
    const Region foreign = guest.register_memory(4096, kAllAccess, 9);
    write(foreign.va, foreign.key);
    expect_refused(Status::RemoteAccess, QpEvent::AccessError);
}

TEST_F(Errors, ADestroyedRegion) {
    guest.destroy(to);
    write(to.va, to.key);
    expect_refused(Status::RemoteAccess, QpEvent::AccessError);
}

TEST_F(Errors, AQpThatDoesNotAllowWrites) {
    connect({.access = wire::ionic_rdma::kQpRemoteRead});
    write(to.va, to.key);
    expect_refused(Status::RemoteInvalidRequest, QpEvent::RequestError);
}

TEST_F(Errors, AQpThatDoesNotAllowReads) {
    connect({.access = wire::ionic_rdma::kQpRemoteWrite});
    client->post_send(
        {.wr_id = 1, .op = Op::Read, .sges = {from.sge(0, 64)}, .remote_va = to.va, .rkey = to.key});
    expect_refused(Status::RemoteInvalidRequest, QpEvent::RequestError);
}

TEST_F(Errors, AMisalignedAtomicIsAnInvalidRequest) {
    client->post_send({.wr_id = 1,
                       .op = Op::FetchAdd,
                       .sges = {from.sge(0, 8)},
                       .remote_va = to.va + 4,
                       .rkey = to.key,
                       .swap_add = 1});
    expect_refused(Status::RemoteInvalidRequest, QpEvent::RequestError);
}

TEST_F(Errors, AReceiveThatIsTooShort) {
    peer->post_receive({.wr_id = 8, .sges = {to.sge(0, 10)}});
    client->post_send({.wr_id = 1, .sges = {from.sge(0, 11)}});
    const WorkCompletion wc = peer_cq->wait();
    EXPECT_EQ(wc.wr_id, 8U);
    EXPECT_EQ(wc.status, Status::LocalLength);
    expect_refused(Status::RemoteInvalidRequest, QpEvent::RequestError);
}

TEST_F(Errors, AReceiveWithABadKey) {
    peer->post_receive({.wr_id = 8, .sges = {{to.va, 64, 0x00abcd00}}});
    client->post_send({.wr_id = 1, .sges = {from.sge(0, 64)}});
    const WorkCompletion wc = peer_cq->wait();
    EXPECT_EQ(wc.wr_id, 8U);
    EXPECT_EQ(wc.status, Status::LocalProtection);
    expect_refused(Status::RemoteOperation, QpEvent::Fatal);
}

TEST_F(Errors, AReceiveIntoARegionWithoutLocalWrite) {
    const Region read_only = guest.register_memory(4096, 0);
    peer->post_receive({.wr_id = 8, .sges = read_only.list()});
    client->post_send({.wr_id = 1, .sges = {from.sge(0, 64)}});
    EXPECT_EQ(peer_cq->wait().status, Status::LocalProtection);
    expect_refused(Status::RemoteOperation, QpEvent::Fatal);
}

// ---- Found by the requester

TEST_F(Errors, ALocalKeyThatDoesNotExist) {
    client->post_send({.wr_id = 1,
                       .op = Op::Write,
                       .sges = {{from.va, 64, 0x00abcd00}},
                       .remote_va = to.va,
                       .rkey = to.key});
    expect_failed_alone(Status::LocalProtection);
}

TEST_F(Errors, ALocalKeyZeroWithoutPrivilege) {
    client->post_send({.wr_id = 1,
                       .op = Op::Write,
                       .sges = {{from.memory.iova, 64, 0}},
                       .remote_va = to.va,
                       .rkey = to.key});
    expect_failed_alone(Status::LocalProtection);
}

TEST_F(Errors, ALocalElementBehindItsRegion) {
    client->post_send({.wr_id = 1,
                       .op = Op::Write,
                       .sges = {{from.va + from.length - 10, 11, from.key}},
                       .remote_va = to.va,
                       .rkey = to.key});
    expect_failed_alone(Status::LocalProtection);
}

TEST_F(Errors, TheSecondElementOfALongMessageIsBad) {
    const Region big = guest.register_memory(std::size_t{1} << 20U);
    client->post_send({.wr_id = 1,
                       .op = Op::Write,
                       .sges = {big.sge(0, 600000), {big.va, 64, 0x00abcd00}},
                       .remote_va = big.va,
                       .rkey = big.key});
    expect_send(*cq, 1, Status::LocalProtection);
}

TEST_F(Errors, AReadIntoARegionWithoutLocalWrite) {
    const Region read_only = guest.register_memory(4096, kRemoteRead);
    client->post_send(
        {.wr_id = 1, .op = Op::Read, .sges = {read_only.sge(0, 64)}, .remote_va = to.va, .rkey = to.key});
    expect_failed_alone(Status::LocalProtection);
}

TEST_F(Errors, ALocalRegionOfAnotherPd) {
    const Region foreign = guest.register_memory(4096, kAllAccess, 9);
    client->post_send(
        {.wr_id = 1, .op = Op::Write, .sges = {foreign.sge(0, 64)}, .remote_va = to.va, .rkey = to.key});
    expect_failed_alone(Status::LocalProtection);
}

TEST_F(Errors, AnUnknownOpcode) {
    std::array<std::byte, 64> entry{};
    entry[8] = std::byte{0x3f};
    client->stage_raw(entry);
    client->ring_send();
    const WorkCompletion wc = cq->wait();
    EXPECT_EQ(wc.status, Status::LocalQpOperation);
    expect_one_flush_each(*cq, *client);
}

TEST_F(Errors, MoreElementsThanAnEntryHolds) {
    std::array<std::byte, 64> entry{};
    entry[8] = std::byte{static_cast<std::uint8_t>(Op::Write)};
    entry[9] = std::byte{200};
    client->stage_raw(entry);
    client->ring_send();
    EXPECT_EQ(cq->wait().status, Status::LocalQpOperation);
    EXPECT_EQ(peer->query().state(), QpState::Rts);
}

// ---- Nobody there

TEST(BackendNone, EvenTheCardItselfIsOutOfReach) {
    ServerProcess server(ServerProcess::Options{.arguments = {"--backend", "none"}});
    {
        Guest guest(server);
        const CqPtr cq = guest.create_cq();
        const auto pair = guest.create_pair(*cq, {}, {.timeout = 10, .retry_count = 1});
        const Region memory = guest.register_memory(4096);
        pair.first->post_send({.wr_id = 1,
                               .op = Op::Write,
                               .sges = {memory.sge(0, 8)},
                               .remote_va = memory.va + 64,
                               .rkey = memory.key});
        EXPECT_EQ(cq->wait().status, Status::RetryExceeded);
    }
    EXPECT_EQ(server.stop(), 0);
}

TEST_F(Errors, AMissingPeerExceedsTheRetriesAfterItsOwnTimeout) {
    // 4.096 us << 12 = 16.8 ms; the first try and two retries. InfiniBand 9.7.6.1.3 allows up to four times
    // that.
    auto lonely = guest.create_qp(*cq);
    guest.make_ready(*lonely, 999, {.timeout = 12, .retry_count = 2});
    const auto begin = Clock::now();
    lonely->post_send(
        {.wr_id = 1, .op = Op::Write, .sges = {from.sge(0, 8)}, .remote_va = to.va, .rkey = to.key});
    expect_send(*cq, 1, Status::RetryExceeded);
    const auto took = Clock::now() - begin;
    EXPECT_GE(took, milliseconds(50));
    EXPECT_LE(took, milliseconds(202));
    expect_one_flush_each(*cq, *lonely);
}

TEST_F(Errors, APeerThatIsNotReadyToReceiveExceedsTheRetries) {
    auto first = guest.create_qp(*cq);
    auto second = guest.create_qp(*cq, {.udma = 1});
    second->modify({.state = QpState::Init, .access = 7});
    guest.make_ready(*first, second->qpn(), {.timeout = 8, .retry_count = 1});
    first->post_send(
        {.wr_id = 1, .op = Op::Write, .sges = {from.sge(0, 8)}, .remote_va = to.va, .rkey = to.key});
    expect_send(*cq, 1, Status::RetryExceeded);
}

TEST_F(Errors, AnUnknownMacExceedsTheRetries) {
    auto lonely = guest.create_qp(*cq);
    ConnectionOptions options{.timeout = 8, .retry_count = 1};
    guest.make_receiver(*lonely, client->qpn(), options);
    Address stranger = guest.own_address();
    stranger.destination.bytes = {2, 9, 9, 9, 9, 9};
    lonely->modify({.address = stranger});
    lonely->modify({.state = QpState::Rts,
                    .sq_psn = 0,
                    .timeout = 8,
                    .retry_count = 1,
                    .rnr_retry = 7,
                    .max_rd_atomic = 1});
    lonely->post_send({.wr_id = 1, .sges = {from.sge(0, 8)}});
    expect_send(*cq, 1, Status::RetryExceeded);
}

TEST_F(Errors, APeerThatListensToSomebodyElseExceedsTheRetries) {
    // `peer` is connected to `client`, not to this one.
    auto stranger = guest.create_qp(*cq);
    guest.make_ready(*stranger, peer->qpn(), {.timeout = 8, .retry_count = 1});
    stranger->post_send(
        {.wr_id = 1, .op = Op::Write, .sges = {from.sge(0, 8)}, .remote_va = to.va, .rkey = to.key});
    expect_send(*cq, 1, Status::RetryExceeded);
    EXPECT_EQ(peer->query().state(), QpState::Rts);
    write(to.va, to.key);
    expect_send(*cq, 1);
}

TEST_F(Errors, APeerDestroyedMeanwhileExceedsTheRetries) {
    connect({.timeout = 8, .retry_count = 1});
    write(to.va, to.key);
    expect_send(*cq, 1);
    peer->destroy();
    write(to.va, to.key);
    expect_send(*cq, 1, Status::RetryExceeded);
}

TEST_F(Errors, TimeoutZeroWaitsForEver) {
    auto lonely = guest.create_qp(*cq);
    guest.make_ready(*lonely, 999, {.timeout = 0, .retry_count = 0});
    lonely->post_send({.wr_id = 1, .sges = {from.sge(0, 8)}});
    EXPECT_TRUE(cq->silent(milliseconds(100)));
    lonely->to(QpState::Error);
    EXPECT_EQ(cq->wait().status, Status::Flushed);
}

// ---- The road to the Error state

TEST_F(Errors, RequestsBeforeTheBadOneSucceedAndThoseBehindAreFlushed) {
    for (std::uint64_t i = 0; i < 10; ++i) {
        client->stage(SendRequest{.wr_id = i,
                                  .op = Op::Write,
                                  .sges = {from.sge(0, 64)},
                                  .remote_va = to.va + i * 64,
                                  .rkey = i == 6 ? 0x00abcd00 : to.key,
                                  .signalled = i % 2 == 1});
    }
    for (std::uint64_t i = 0; i < 3; ++i) {
        client->stage(ReceiveRequest{.wr_id = 50 + i, .sges = to.list()});
    }
    client->ring_receive();
    from.memory.fill(0x5a);
    client->ring_send();
    // 1, 3, 5 succeed; 6 fails although unsignalled; 7, 8, 9 are flushed, 8 although unsignalled; the
    // receives too.
    std::vector<std::pair<std::uint64_t, Status>> sends;
    std::vector<std::uint64_t> receives;
    for (const WorkCompletion& wc : cq->wait_for(10)) {
        if (wc.receive) {
            EXPECT_EQ(wc.status, Status::Flushed);
            receives.push_back(wc.wr_id);
        } else {
            sends.emplace_back(wc.wr_id, wc.status);
        }
    }
    const std::vector<std::pair<std::uint64_t, Status>> expected = {
        {1, Status::Ok},      {3, Status::Ok},      {5, Status::Ok},     {6, Status::RemoteAccess},
        {7, Status::Flushed}, {8, Status::Flushed}, {9, Status::Flushed}};
    EXPECT_EQ(sends, expected);
    EXPECT_EQ(receives, (std::vector<std::uint64_t>{50, 51, 52}));
    EXPECT_TRUE(all_bytes(to.memory.part(0, 6 * 64), 0x5a));
    EXPECT_TRUE(all_bytes(to.memory.part(6 * 64, 4 * 64), 0)) << "nothing behind the error may be executed";
    expect_one_flush_each(*cq, *client);
}

TEST_F(Errors, ModifyToErrorFlushesBothQueuesOnce) {
    client->stage(ReceiveRequest{.wr_id = 1, .sges = to.list()});
    client->stage(ReceiveRequest{.wr_id = 2, .sges = to.list()});
    client->ring_receive();
    client->to(QpState::Error);
    const auto flushed = cq->wait_for(2);
    EXPECT_EQ(flushed[0].wr_id, 1U);
    EXPECT_EQ(flushed[0].status, Status::Flushed);
    EXPECT_EQ(flushed[1].wr_id, 2U);
    expect_one_flush_each(*cq, *client);
    // Once more must not flush once more.
    client->to(QpState::Error);
    expect_one_flush_each(*cq, *client);
}

TEST_F(Errors, EveryDoorbellOfADeadQpIsAnsweredWithAFlush) {
    client->to(QpState::Error);
    expect_one_flush_each(*cq, *client);
    client->post_send({.wr_id = 4, .sges = {from.sge(0, 8)}});
    EXPECT_EQ(cq->wait().status, Status::Flushed);
    EXPECT_EQ(client->entries().send_flush, 2U);
    client->post_receive({.wr_id = 5, .sges = to.list()});
    const WorkCompletion wc = cq->wait();
    EXPECT_EQ(wc.wr_id, 5U);
    EXPECT_EQ(wc.status, Status::Flushed);
}

TEST_F(Errors, ADeadQpCanBeResetAndConnectedAgain) {
    write(to.va, 0x00abcd00);
    expect_refused(Status::RemoteAccess, QpEvent::AccessError);
    client->to(QpState::Reset);
    peer->to(QpState::Reset);
    guest.connect(*client, *peer);
    fill_pattern(from.memory, 9);
    for (std::uint64_t i = 0; i < 200; ++i) {
        write(to.va, to.key);
        expect_send(*cq, 1);
    }
    EXPECT_EQ(first_mismatch(to.memory.part(0, 64), 9), kNoMismatch);
}

TEST_F(Errors, AnErrorOfOneQpLeavesOthersAlone) {
    auto [other, other_peer] = guest.create_pair(*cq);
    write(to.va, 0x00abcd00);
    expect_refused(Status::RemoteAccess, QpEvent::AccessError);
    other->post_send(
        {.wr_id = 77, .op = Op::Write, .sges = {from.sge(0, 8)}, .remote_va = to.va, .rkey = to.key});
    expect_send(*cq, 77);
}

}  // namespace
}  // namespace ernic::guest_sim
