// SPDX-License-Identifier: MIT
#include <cstring>
#include <map>
#include <string>

#include "guest_sim/fixture.hpp"

namespace ernic::guest_sim {
namespace {

namespace w = wire::ionic_rdma;
using w::AdminOp;
using w::AdminStatus;

class State : public GuestTest {
  protected:
    /// The named counters of one of the statistics commands.
    std::map<std::string, std::uint64_t> statistics(AdminOp headers, AdminOp values, std::uint32_t qpn) {
        const Buffer names = guest.allocate(w::kStatsBufferSize);
        const Buffer numbers = guest.allocate(w::kStatsBufferSize);
        const auto run = [&](AdminOp op, const Buffer& buffer, std::uint32_t id) {
            w::Stats command{};
            command.dma_addr.set(buffer.iova);
            command.length.set(w::kStatsBufferSize);
            command.id_ver.set(id);
            guest.rdma().command(op, command);
        };
        names.fill(0xff);
        run(headers, names, 0);
        run(values, numbers, qpn);
        std::map<std::string, std::uint64_t> result;
        for (std::size_t at = 0; at < names.size; at += sizeof(w::StatHeader)) {
            const auto header = names.get<w::StatHeader>(at);
            const std::uint32_t type = header.type_offset.get() >> 28U;
            if (type == 0) {
                break;
            }
            const std::uint32_t offset = header.type_offset.get() & 0xfffffffU;
            EXPECT_EQ(type, 7U) << "big-endian 64-bit numbers";
            EXPECT_EQ(offset % 8, 0U);
            EXPECT_LT(offset, w::kStatsBufferSize);
            EXPECT_EQ(header.name.back(), '\0');
            EXPECT_TRUE(result.emplace(header.name.data(), numbers.get<be64>(offset).get()).second)
                << "name twice: " << header.name.data();
        }
        return result;
    }
    std::map<std::string, std::uint64_t> global() {
        return statistics(AdminOp::StatsHeaders, AdminOp::StatsValues, 0);
    }
    std::map<std::string, std::uint64_t> of(const QueuePair& qp) {
        return statistics(AdminOp::QpStatsHeaders, AdminOp::QpStatsValues, qp.qpn());
    }
};

TEST_F(State, QueryShowsWhatModifySet) {
    auto qp = guest.create_qp(*cq);
    EXPECT_EQ(qp->query().state(), QpState::Reset);
    qp->modify({.state = QpState::Init, .access = w::kQpRemoteRead});
    EXPECT_EQ(qp->query().state(), QpState::Init);
    EXPECT_EQ(qp->query().sq.access_flags.get() & 7U, w::kQpRemoteRead);
    qp->modify({.state = QpState::Rtr,
                .destination_qpn = 0x123,
                .address = guest.own_address(),
                .mtu_log2 = 11,
                .rq_psn = 0xabcdef,
                .min_rnr_timer = 17,
                .max_dest_rd_atomic = 7});
    qp->modify({.state = QpState::Rts,
                .sq_psn = 0x123456,
                .timeout = 18,
                .retry_count = 5,
                .rnr_retry = 6,
                .max_rd_atomic = 3});
    const QpQuery query = qp->query();
    EXPECT_EQ(query.state(), QpState::Rts);
    EXPECT_EQ(query.rq.state_pmtu & 0xfU, 11U);
    EXPECT_EQ(query.sq.qkey_or_dest_qpn.get(), 0x123U);
    EXPECT_EQ(query.sq.rq_psn.get(), 0xabcdefU);
    EXPECT_EQ(query.sq.rnr_timer, 17);
    EXPECT_EQ(query.sq.retry_timeout, 18);
    EXPECT_EQ(query.rq.sq_psn.get(), 0x123456U);
    EXPECT_EQ(query.rq.retry_rnr, 6U << 4U | 5U);
    // The driver shows 2^depth - 1 for both, and may not show less than was asked for.
    EXPECT_GE((1U << query.rq.rrq_depth) - 1, 3U);
    EXPECT_EQ((1U << query.rq.rsq_depth) - 1, 7U);
}

TEST_F(State, AttributesWithoutTheirMaskBitAreGarbage) {
    auto qp = guest.create_qp(*cq);
    guest.make_ready(*qp, 5,
                     {.mtu_log2 = 10, .timeout = 13, .retry_count = 3, .rnr_retry = 2, .min_rnr_timer = 4});
    const QpQuery before = qp->query();
    // Only one thing changes; all other fields of the command are filled with noise.
    qp->modify({.min_rnr_timer = 9});
    QpQuery after = qp->query();
    EXPECT_EQ(after.sq.rnr_timer, 9);
    after.sq.rnr_timer = before.sq.rnr_timer;
    EXPECT_EQ(std::memcmp(&after, &before, sizeof(after)), 0);
}

TEST_F(State, ImpossibleTransitionsAreRefused) {
    auto qp = guest.create_qp(*cq);
    EXPECT_EQ(qp->try_modify({.state = QpState::Rts}), AdminStatus::BadState);
    EXPECT_EQ(qp->try_modify({.state = QpState::Rtr}), AdminStatus::BadState);
    EXPECT_EQ(qp->try_modify({.state = QpState::Sqd}), AdminStatus::BadState);
    EXPECT_EQ(qp->query().state(), QpState::Reset);
    qp->to(QpState::Init);
    qp->to(QpState::Init);
    EXPECT_EQ(qp->try_modify({.state = QpState::Rts}), AdminStatus::BadState);
    qp->to(QpState::Error);
    EXPECT_EQ(qp->try_modify({.state = QpState::Rts}), AdminStatus::BadState);
    qp->to(QpState::Error);
    qp->to(QpState::Reset);
    qp->to(QpState::Reset);
}

TEST_F(State, UnknownObjectsAreRefused) {
    auto qp = guest.create_qp(*cq);
    w::ModifyQp modify{};
    modify.id_ver.set(4000);
    EXPECT_EQ(guest.rdma().try_command(AdminOp::ModifyQp, modify), AdminStatus::BadIndex);
    w::QueryQp query{};
    query.id_ver.set(4000);
    EXPECT_EQ(guest.rdma().try_command(AdminOp::QueryQp, query), AdminStatus::BadIndex);
    w::CreateCq cq_command{};
    cq_command.eq_id.set(31);
    EXPECT_NE(guest.rdma().try_command(AdminOp::CreateCq, cq_command), AdminStatus::Ok);
    const le32 unknown_command(0);
    EXPECT_EQ(guest.rdma().try_command(static_cast<AdminOp>(200), unknown_command), AdminStatus::BadCommand);
    // No destroy command ever fails: process exit must not get stuck.
    for (const AdminOp op :
         {AdminOp::DestroyQp, AdminOp::DestroyCq, AdminOp::DestroyMr, AdminOp::DestroyAh}) {
        EXPECT_EQ(guest.rdma().try_command(op, w::Destroy{le32(0x00abcd)}), AdminStatus::Ok);
    }
}

TEST_F(State, ADoorbellFromAnotherPageIsIgnored) {
    auto [client, peer] = guest.create_pair(*cq);
    const Region memory = guest.register_memory(4096);
    const SendRequest request{.wr_id = 1,
                              .op = Op::Write,
                              .sges = {memory.sge(0, 8)},
                              .remote_va = memory.va + 64,
                              .rkey = memory.key};
    client->stage(request);
    client->ring_send(2);
    client->ring_send(0);
    EXPECT_TRUE(cq->silent());
    client->ring_send();
    expect_send(*cq, 1);
    // The same for receives: without a valid doorbell there is no buffer.
    auto [sender, receiver] = guest.create_pair(*cq, {}, {.rnr_retry = 0});
    receiver->stage(ReceiveRequest{.wr_id = 3, .sges = memory.list()});
    receiver->ring_receive(2);
    sender->post_send({.wr_id = 2, .sges = {memory.sge(0, 8)}});
    expect_send(*cq, 2, Status::RnrRetryExceeded);
}

TEST_F(State, DoorbellsOfDeadQueuesAreIgnored) {
    auto [client, peer] = guest.create_pair(*cq);
    const Region memory = guest.register_memory(4096);
    const auto type = guest.rdma().identity().send_queues.type;
    const std::uint32_t qpn = client->qpn();
    client->destroy();
    for (const std::uint32_t id : {qpn, 0xffffffU, 4095U}) {
        for (std::uint8_t queue_type = 0; queue_type < 16; ++queue_type) {
            guest.card().ring(1, queue_type, w::Doorbell::make(id, 0, 17).value());
            guest.card().ring(guest.card().doorbell_pages() - 1, queue_type,
                              w::Doorbell::make(id, 7, 0xffff).value());
        }
    }
    guest.card().ring(1, type, ~std::uint64_t{0});
    auto [first, second] = guest.create_pair(*cq);
    first->post_send({.wr_id = 1,
                      .op = Op::Write,
                      .sges = {memory.sge(0, 8)},
                      .remote_va = memory.va + 64,
                      .rkey = memory.key});
    expect_send(*cq, 1);
}

TEST_F(State, ResetStartsTheNumberingAnew) {
    auto [client, peer] = guest.create_pair(*cq);
    const Region memory = guest.register_memory(4096);
    for (int round = 0; round < 5; ++round) {
        for (std::uint64_t i = 0; i < 13; ++i) {
            peer->post_receive({.wr_id = 100, .sges = {memory.sge(0, 8)}});
            client->post_send({.wr_id = i, .sges = {memory.sge(64, 8)}});
            for (const WorkCompletion& wc : cq->wait_for(2)) {
                EXPECT_EQ(wc.status, Status::Ok);
                EXPECT_EQ(wc.wr_id, wc.receive ? 100 : i);
            }
        }
        client->to(QpState::Reset);
        peer->to(QpState::Reset);
        guest.connect(*client, *peer);
    }
}

TEST_F(State, ThousandQueuePairsAllMoveTheirData) {
    constexpr std::size_t kPairs = 500;
    auto big_cq = guest.create_cq({.entries = 2048});
    std::vector<std::pair<QpPtr, QpPtr>> pairs;
    const Region from = guest.register_memory(kPairs * 64);
    const Region to = guest.register_memory(kPairs * 64);
    fill_pattern(from.memory, 55);
    for (std::size_t i = 0; i < kPairs; ++i) {
        pairs.push_back(guest.create_pair(*big_cq, {.max_send = 15, .max_receive = 15}));
    }
    for (int round = 0; round < 3; ++round) {
        to.memory.fill(0);
        for (std::size_t i = 0; i < kPairs; ++i) {
            QueuePair& sender = round % 2 == 0 ? *pairs[i].first : *pairs[i].second;
            sender.post_send({.wr_id = i,
                              .op = Op::Write,
                              .sges = {from.sge(i * 64, 64)},
                              .remote_va = to.va + i * 64,
                              .rkey = to.key});
        }
        for (const WorkCompletion& wc : big_cq->wait_for(kPairs)) {
            ASSERT_EQ(wc.status, Status::Ok);
        }
        EXPECT_EQ(first_mismatch(to.memory, 55), kNoMismatch);
    }
}

TEST_F(State, StatisticsCountWhatHappened) {
    const auto before = global();
    EXPECT_FALSE(before.empty());
    auto [client, peer] = guest.create_pair(*cq, {}, {.rnr_retry = 1, .min_rnr_timer = 1});
    const Region memory = guest.register_memory(8192);
    for (int i = 0; i < 5; ++i) {
        client->post_send({.wr_id = 1,
                           .op = Op::Write,
                           .sges = {memory.sge(0, 1000)},
                           .remote_va = memory.va + 4096,
                           .rkey = memory.key});
        expect_send(*cq, 1);
    }
    client->post_send({.wr_id = 2,
                       .op = Op::Read,
                       .sges = {memory.sge(0, 500)},
                       .remote_va = memory.va + 4096,
                       .rkey = memory.key});
    expect_send(*cq, 2);
    const auto mine = of(*client);
    EXPECT_EQ(mine.at("write"), 5U);
    EXPECT_EQ(mine.at("write_bytes"), 5000U);
    EXPECT_EQ(mine.at("read"), 1U);
    EXPECT_EQ(mine.at("read_bytes"), 500U);
    EXPECT_EQ(mine.at("completed"), 6U);
    EXPECT_EQ(mine.at("failed"), 0U);

    client->post_send({.wr_id = 3, .sges = {memory.sge(0, 8)}});
    expect_send(*cq, 3, Status::RnrRetryExceeded);
    const auto after = global();
    EXPECT_GE(after.at("tx_rdma_ucast_bytes") - before.at("tx_rdma_ucast_bytes"), 5000U);
    EXPECT_GE(after.at("rx_rdma_ucast_bytes") - before.at("rx_rdma_ucast_bytes"), 5000U);
    EXPECT_EQ(after.at("req_rx_rnr_retry_err") - before.at("req_rx_rnr_retry_err"), 1U);
    EXPECT_EQ(after.at("resp_tx_rnr_retry_err") - before.at("resp_tx_rnr_retry_err"), 2U);
    EXPECT_GE(after.at("req_rx_cqe_err") - before.at("req_rx_cqe_err"), 1U);

    w::Stats unknown{};
    unknown.dma_addr.set(memory.memory.iova);
    unknown.length.set(w::kStatsBufferSize);
    unknown.id_ver.set(3999);
    EXPECT_EQ(guest.rdma().try_command(AdminOp::QpStatsValues, unknown), AdminStatus::BadIndex);
}

TEST_F(State, QpTypesThatDoNotExistAreRefused) {
    for (const std::uint8_t type : {1, 2, 4, 5, 6, 7, 15}) {
        w::CreateQp command{};
        command.sq_cq_id.set(cq->id(0));
        command.rq_cq_id.set(cq->id(0));
        command.sq_ring = {6, 6, 0, 0};
        command.rq_ring = {6, 6, 0, 0};
        command.sq_map_count.set(1);
        command.rq_map_count.set(1);
        command.sq_dma_addr.set(GuestRam::kBase);
        command.rq_dma_addr.set(GuestRam::kBase);
        command.id_ver.set(64);
        command.type_state = type;
        EXPECT_EQ(guest.rdma().try_command(AdminOp::CreateQp, command), AdminStatus::BadType) << int{type};
    }
}

}  // namespace
}  // namespace ernic::guest_sim
