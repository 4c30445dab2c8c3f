// SPDX-License-Identifier: MIT
#include "guest_sim/fixture.hpp"

namespace ernic::guest_sim {
namespace {

using std::chrono::milliseconds;
using wire::ionic_rdma::QpEvent;

/// Kernel queues (page 0): they are armed only when somebody arms them.
class Events : public GuestTest {
  protected:
    Events() {
        std::tie(client, peer) = guest.create_pair(*kernel_cq, *peer_cq, {.dbid = 0, .privileged = true});
    }
    void send(bool solicited = false, std::uint64_t wr_id = 1) {
        client->post_send({.wr_id = wr_id, .sges = {{data.iova, 8, 0}}, .solicited = solicited});
    }
    /// Posts receives, so that the peer's queue gets entries.
    void receive(int count = 1) {
        for (int i = 0; i < count; ++i) {
            peer->stage(ReceiveRequest{.wr_id = 2, .sges = {{data.iova + 64, 8, 0}}});
        }
        peer->ring_receive();
    }
    EventQueue& peer_events() { return peer_cq->events(peer->udma()); }
    Event peer_notification() { return peer_cq->notification(peer->udma()); }

    CqPtr kernel_cq = guest.create_cq({.dbid = 0, .vector = 0});
    CqPtr peer_cq = guest.create_cq({.dbid = 0, .vector = 1});
    QpPtr client;
    QpPtr peer;
    Buffer data = guest.allocate(4096);
};

TEST_F(Events, AnUnarmedQueueIsSilent) {
    receive();
    send();
    peer_cq->wait();
    EXPECT_TRUE(peer_events().silent());
}

TEST_F(Events, AnArmedQueueNotifiesOnce) {
    peer_cq->arm();
    EXPECT_TRUE(peer_events().silent(milliseconds(5)));
    receive(3);
    send();
    EXPECT_EQ(peer_events().wait(), peer_notification());
    peer_cq->wait();
    send();
    send();
    peer_cq->wait_for(2);
    EXPECT_TRUE(peer_events().silent()) << "one arm, one event";
    peer_cq->arm();
    receive();
    send();
    EXPECT_EQ(peer_events().wait(), peer_notification());
}

TEST_F(Events, ArmingWithUnreadEntriesNotifiesAtOnce) {
    receive();
    send();
    kernel_cq->wait();  // the receive has its entry too by now, and nobody has read it
    peer_cq->arm();
    EXPECT_EQ(peer_events().wait(), peer_notification());
    EXPECT_EQ(peer_cq->wait().wr_id, 2U);
}

TEST_F(Events, ASolicitedArmWaitsForASolicitedMessage) {
    receive(3);
    peer_cq->arm(true);
    send(false);
    peer_cq->wait();
    EXPECT_TRUE(peer_events().silent());
    send(true);
    EXPECT_EQ(peer_events().wait(), peer_notification());
    peer_cq->wait();
}

TEST_F(Events, ASolicitedArmAlsoHearsErrors) {
    peer_cq->arm(true);
    peer->to(QpState::Error);
    EXPECT_EQ(peer_events().wait(), peer_notification());
}

TEST_F(Events, ASendCompletionIsNotSolicited) {
    receive(2);
    kernel_cq->arm(true);
    send(true);
    kernel_cq->wait();
    EXPECT_TRUE(kernel_cq->events(client->udma()).silent());
}

TEST_F(Events, BothArmsTogether) {
    receive(2);
    peer_cq->arm(true);
    peer_cq->arm(false);
    send(false);
    EXPECT_EQ(peer_events().wait(), peer_notification()) << "the arm for anything";
    peer_cq->wait();
    send(true);
    EXPECT_EQ(peer_events().wait(), peer_notification()) << "the arm for solicited messages is still there";
}

TEST_F(Events, EventsArriveByInterruptEveryTime) {
    for (int i = 0; i < 3000; ++i) {
        peer_cq->arm();
        receive();
        send();
        ASSERT_EQ(peer_events().wait(), peer_notification()) << "round " << i;
        ASSERT_EQ(peer_cq->wait().wr_id, 2U);
        kernel_cq->wait();
    }
    // More than two laps of the event ring; the vector is masked while an interrupt is being served.
    EXPECT_GE(peer_events().interrupts(), 2900U);
}

TEST_F(Events, AUserQueueIsBornArmed) {
    auto user_cq = guest.create_cq();
    auto [first, second] = guest.create_pair(*user_cq);
    const Region memory = guest.register_memory(4096);
    first->post_send({.wr_id = 1,
                      .op = Op::Write,
                      .sges = {memory.sge(0, 8)},
                      .remote_va = memory.va + 64,
                      .rkey = memory.key});
    EXPECT_TRUE(user_cq->events(first->udma()).wait_for(user_cq->notification(first->udma())));
    expect_send(*user_cq, 1);
}

TEST_F(Events, AnOverflowingQueueIsReportedAndItsQpDies) {
    auto small = guest.create_cq({.entries = 20});
    auto [first, second] = guest.create_pair(*small, {.max_send = 255});
    small->events(0).discard();
    small->set_acknowledging(false);
    const Region memory = guest.register_memory(4096);
    // Nobody reads: one doorbell per request makes one entry per request until the ring is full.
    for (std::uint32_t i = 0; i <= small->capacity() && first->send_room() != 0; ++i) {
        first->post_send({.wr_id = i,
                          .op = Op::Write,
                          .sges = {memory.sge(0, 8)},
                          .remote_va = memory.va + 64,
                          .rkey = memory.key});
        // A round trip, so that the device sees every request on its own.
        guest.client().read_value<le32>(0, 0);
    }
    EXPECT_TRUE(small->events(first->udma()).wait_for(small->error_event(first->udma())));
    EXPECT_EQ(first->query().state(), QpState::Error);
    // The others go on.
    receive();
    send();
    EXPECT_EQ(kernel_cq->wait().status, Status::Ok);
}

TEST_F(Events, TheFirstMessageToAQpInRtrEstablishesCommunication) {
    auto first = guest.create_qp(*cq);
    auto second = guest.create_qp(*cq, {.udma = 1});
    guest.make_receiver(*second, first->qpn());
    guest.make_ready(*first, second->qpn());
    const Region memory = guest.register_memory(4096);
    second->post_receive({.wr_id = 2, .sges = memory.list()});
    first->post_send({.wr_id = 1, .sges = {memory.sge(0, 8)}});
    EXPECT_TRUE(second->async_events().wait_for(second->event(QpEvent::CommunicationEstablished)));
    for (const WorkCompletion& wc : cq->wait_for(2)) {
        EXPECT_EQ(wc.status, Status::Ok);
    }
}

TEST_F(Events, ADrainedSendQueueIsReported) {
    const Region memory = guest.register_memory(std::size_t{16} << 20U);
    auto [first, second] = guest.create_pair(*cq);
    first->post_send({.wr_id = 1,
                      .op = Op::Write,
                      .sges = {memory.sge(0, std::size_t{8} << 20U)},
                      .remote_va = memory.va + (std::size_t{8} << 20U),
                      .rkey = memory.key});
    first->modify({.state = QpState::Sqd, .sqd_notify = true});
    EXPECT_TRUE(first->async_events().wait_for(first->event(QpEvent::SqDrained)));
    // Whatever had begun is complete by now; what had not waits.
    EXPECT_EQ(first->query().state(), QpState::Sqd);
    first->to(QpState::Rts);
    expect_send(*cq, 1);
    EXPECT_TRUE(first->async_events().silent());
}

TEST_F(Events, DrainingWithoutTheWishIsNotReported) {
    auto [first, second] = guest.create_pair(*cq);
    first->modify({.state = QpState::Sqd, .sqd_notify = false});
    EXPECT_TRUE(first->async_events().silent());
}

TEST_F(Events, ADrainedQueueHoldsNewRequestsUntilItResumes) {
    auto [first, second] = guest.create_pair(*cq);
    const Region memory = guest.register_memory(4096);
    first->modify({.state = QpState::Sqd, .sqd_notify = true});
    EXPECT_TRUE(first->async_events().wait_for(first->event(QpEvent::SqDrained)));
    first->post_send({.wr_id = 1,
                      .op = Op::Write,
                      .sges = {memory.sge(0, 8)},
                      .remote_va = memory.va + 64,
                      .rkey = memory.key});
    EXPECT_TRUE(cq->silent());
    // It still answers its peer.
    second->post_send({.wr_id = 2,
                       .op = Op::Write,
                       .sges = {memory.sge(0, 8)},
                       .remote_va = memory.va + 64,
                       .rkey = memory.key});
    expect_send(*cq, 2);
    first->to(QpState::Rts);
    expect_send(*cq, 1);
}

}  // namespace
}  // namespace ernic::guest_sim
