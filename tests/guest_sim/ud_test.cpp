// SPDX-License-Identifier: MIT
#include <cstring>

#include "guest_sim/fixture.hpp"

namespace ernic::guest_sim {
namespace {

constexpr std::size_t kHeader = 40;
constexpr std::uint32_t kQkey = 0x11111111;

std::uint16_t ones_complement_sum(Bytes data) {
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < data.size(); i += 2) {
        sum += std::to_integer<std::uint32_t>(data[i]) << 8U | std::to_integer<std::uint32_t>(data[i + 1]);
    }
    while (sum >> 16U != 0) {
        sum = (sum & 0xffffU) + (sum >> 16U);
    }
    return static_cast<std::uint16_t>(sum);
}

class Ud : public GuestTest {
  protected:
    Ud()
        : sender(guest.create_datagram_qp(*cq, kQkey)),
          receiver(guest.create_datagram_qp(*receive_cq, kQkey, {.udma = 1})),
          ah(guest.create_ah(guest.own_address())) {
        fill_pattern(from.memory, 4);
    }
    /// A datagram of `size` bytes to the receiver.
    SendRequest datagram(std::uint64_t wr_id, std::size_t size) {
        return {.wr_id = wr_id,
                .sges = {from.sge(0, size)},
                .ah = ah,
                .remote_qpn = receiver->qpn(),
                .remote_qkey = kQkey};
    }
    /// Sends an ordinary datagram and expects it to arrive: everything is still alive.
    void expect_alive() {
        receiver->post_receive({.wr_id = 900, .sges = to.list()});
        sender->post_send(datagram(901, 16));
        EXPECT_EQ(receive_cq->wait().status, Status::Ok);
        expect_send(*cq, 901);
    }

    CqPtr receive_cq = guest.create_cq();
    QpPtr sender;
    QpPtr receiver;
    std::uint32_t ah;
    Region from = guest.register_memory(8192);
    Region to = guest.register_memory(8192);
};

TEST_F(Ud, ADatagramArrivesBehindItsFortyByteIpv4Header) {
    to.memory.fill(0xee);
    receiver->post_receive({.wr_id = 3, .sges = to.list()});
    sender->post_send(datagram(1, 1000));
    const WorkCompletion wc = receive_cq->wait();
    EXPECT_EQ(wc.status, Status::Ok);
    EXPECT_EQ(wc.wr_id, 3U);
    EXPECT_EQ(wc.length, kHeader + 1000) << "the length includes the header";
    EXPECT_EQ(wc.source_qpn, sender->qpn());
    EXPECT_TRUE(wc.ipv4);
    EXPECT_FALSE(wc.has_vlan);
    EXPECT_EQ(wc.vlan, 0);
    EXPECT_EQ(wc.source_mac, guest.card().mac());
    expect_send(*cq, 1);
    EXPECT_EQ(std::memcmp(to.memory.host + kHeader, from.memory.host, 1000), 0);
    EXPECT_TRUE(all_bytes(to.memory.part(kHeader + 1000, 64), 0xee));

    EXPECT_TRUE(all_bytes(to.memory.part(0, 20), 0));
    const auto ip = to.memory.get<wire::Ipv4Header>(20);
    EXPECT_EQ(ip.version_ihl, 0x45);
    EXPECT_EQ(ip.protocol, wire::kIpProtocolUdp);
    EXPECT_EQ(ip.source.get(), kSourceIpv4);
    EXPECT_EQ(ip.destination.get(), kDestinationIpv4);
    // IP 20, UDP 8, BTH 12, DETH 8, payload, ICRC 4.
    EXPECT_EQ(ip.total_length.get(), 20 + 8 + 12 + 8 + 1000 + 4);
    EXPECT_EQ(ones_complement_sum(to.memory.part(20, 20).bytes()), 0xffff)
        << "the header checksum must be valid";
}

TEST_F(Ud, AnIpv6HeaderIsDeliveredAsItIs) {
    SendRequest request = datagram(1, 77);
    request.ah = guest.create_ah(guest.own_address(true));
    receiver->post_receive({.wr_id = 3, .sges = to.list()});
    sender->post_send(request);
    const WorkCompletion wc = receive_cq->wait();
    EXPECT_FALSE(wc.ipv4);
    EXPECT_EQ(wc.length, kHeader + 77);
    const auto ip = to.memory.get<wire::Ipv6Header>();
    EXPECT_EQ(ip.version_class_flow.get() >> 28U, 6U);
    EXPECT_EQ(ip.next_header, wire::kIpProtocolUdp);
    // UDP 8, BTH 12, DETH 8, payload padded to 4, ICRC 4.
    EXPECT_EQ(ip.payload_length.get(), 8 + 12 + 8 + 80 + 4);
    EXPECT_EQ(ip.source[15], 1);
    EXPECT_EQ(ip.destination[15], 2);
    expect_send(*cq, 1);
}

TEST_F(Ud, AVlanTagIsReported) {
    SendRequest request = datagram(1, 8);
    Address address = guest.own_address();
    address.vlan = 0x6064;  // priority 3, VLAN 100
    request.ah = guest.create_ah(address);
    receiver->post_receive({.wr_id = 3, .sges = to.list()});
    sender->post_send(request);
    const WorkCompletion wc = receive_cq->wait();
    EXPECT_TRUE(wc.has_vlan);
    EXPECT_EQ(wc.vlan, 0x6064);
    EXPECT_TRUE(wc.ipv4);
    expect_send(*cq, 1);
}

TEST_F(Ud, ImmediateDataAndHeaderAcrossSges) {
    receiver->post_receive({.wr_id = 3, .sges = {to.sge(0, 25), to.sge(1000, 4000)}});
    SendRequest request = datagram(1, 500);
    request.op = Op::SendImmediate;
    request.immediate = 0xfeedf00d;
    sender->post_send(request);
    const WorkCompletion wc = receive_cq->wait();
    EXPECT_EQ(wc.receive_op, ReceiveOp::SendImmediate);
    EXPECT_EQ(wc.immediate_or_key, 0xfeedf00dU);
    EXPECT_EQ(wc.length, kHeader + 500);
    EXPECT_EQ(std::memcmp(to.memory.host + 1000 + 15, from.memory.host, 500), 0)
        << "the payload starts at byte 40 of the scatter list";
    expect_send(*cq, 1);
}

TEST_F(Ud, TheLargestDatagramAndOneByteMore) {
    // An interface of MTU 1500 is an RDMA port of MTU 1024.
    receiver->post_receive({.wr_id = 3, .sges = to.list()});
    sender->post_send(datagram(1, 1024));
    EXPECT_EQ(receive_cq->wait().length, kHeader + 1024);
    expect_send(*cq, 1);
    sender->post_send(datagram(2, 1025));
    expect_send(*cq, 2, Status::LocalLength);
}

TEST_F(Ud, WithoutAReceiveTheDatagramIsLostAndTheSenderIsContent) {
    sender->post_send(datagram(1, 100));
    expect_send(*cq, 1);
    EXPECT_TRUE(receive_cq->silent());
    EXPECT_EQ(receiver->query().state(), QpState::Rts);
    expect_alive();
}

TEST_F(Ud, AReceiveThatIsTooShortEndsWithAnErrorAndSoDoesItsQueuePair) {
    receiver->post_receive({.wr_id = 3, .sges = {to.sge(0, 50)}});
    sender->post_send(datagram(2, 100));
    expect_send(*cq, 2);
    const WorkCompletion wc = receive_cq->wait();
    EXPECT_EQ(wc.wr_id, 3U);
    EXPECT_EQ(wc.status, Status::LocalLength);
    EXPECT_EQ(receiver->query().state(), QpState::Error);
    // Set up anew it works again.
    receiver->to(QpState::Reset);
    EXPECT_EQ(sender->query().state(), QpState::Rts);
}

TEST_F(Ud, AReceiveWithABadKeyEndsWithAnErrorAndSoDoesItsQueuePair) {
    Sge bad = to.sge(0, 4096);
    bad.lkey += 0x100;
    receiver->post_receive({.wr_id = 3, .sges = {bad}});
    sender->post_send(datagram(2, 100));
    expect_send(*cq, 2);
    const WorkCompletion wc = receive_cq->wait();
    EXPECT_EQ(wc.wr_id, 3U);
    EXPECT_EQ(wc.status, Status::LocalProtection);
    EXPECT_EQ(receiver->query().state(), QpState::Error);
}

TEST_F(Ud, AWrongQkeyIsDropped) {
    receiver->post_receive({.wr_id = 3, .sges = to.list()});
    SendRequest request = datagram(1, 10);
    request.remote_qkey = kQkey + 1;
    sender->post_send(request);
    expect_send(*cq, 1);
    EXPECT_TRUE(receive_cq->silent());
    // InfiniBand 10.2.5: with the high bit set the QP's own Q_Key is sent, whatever the other bits say.
    request.wr_id = 2;
    request.remote_qkey = 0x80000000;
    sender->post_send(request);
    EXPECT_EQ(receive_cq->wait().wr_id, 3U);
    expect_send(*cq, 2);
}

TEST_F(Ud, ABadAddressHandleFailsTheRequest) {
    SendRequest request = datagram(1, 10);
    request.ah = ah + 100;
    sender->post_send(request);
    expect_send(*cq, 1, Status::LocalQpOperation);
}

TEST_F(Ud, AnAddressHandleOfAnotherPdFailsTheRequest) {
    SendRequest request = datagram(1, 10);
    request.ah = guest.create_ah(guest.own_address(), 5);
    sender->post_send(request);
    expect_send(*cq, 1, Status::LocalQpOperation);
}

TEST_F(Ud, ADatagramToNobodyIsSentAllTheSame) {
    SendRequest request = datagram(1, 10);
    request.remote_qpn = 0x00ff;
    sender->post_send(request);
    expect_send(*cq, 1);
    Address stranger = guest.own_address();
    stranger.destination.bytes = {2, 9, 9, 9, 9, 9};
    request.wr_id = 2;
    request.ah = guest.create_ah(stranger);
    sender->post_send(request);
    expect_send(*cq, 2);
    expect_alive();
}

TEST_F(Ud, EveryUnsignalledSendGetsAnEntryOfItsOwn) {
    for (std::uint64_t i = 0; i < 50; ++i) {
        SendRequest request = datagram(i, 10);
        request.signalled = i == 49;
        sender->stage(request);
    }
    sender->ring_send();
    expect_send(*cq, 49);
    EXPECT_TRUE(cq->silent());
    EXPECT_EQ(sender->entries().npg, 50U);
    EXPECT_EQ(sender->entries().msn, 0U);
    EXPECT_EQ(sender->send_room(), sender->send_capacity());
}

TEST_F(Ud, ManyDatagramsArriveInOrder) {
    for (std::uint64_t round = 0; round < 40; ++round) {
        for (std::uint64_t i = 0; i < 32; ++i) {
            receiver->stage(ReceiveRequest{.wr_id = i, .sges = {to.sge(i * 128, 128)}});
        }
        receiver->ring_receive();
        for (std::uint64_t i = 0; i < 32; ++i) {
            sender->stage(datagram(i, 1 + i));
        }
        sender->ring_send();
        const auto received = receive_cq->wait_for(32);
        const auto sent = cq->wait_for(32);
        for (std::uint64_t i = 0; i < 32; ++i) {
            ASSERT_EQ(received[i].wr_id, i);
            ASSERT_EQ(received[i].length, kHeader + 1 + i);
            ASSERT_EQ(sent[i].wr_id, i);
        }
    }
}

/// The management QP: number 1, kernel page, key 0, two SGEs, as the MAD layer uses it.
TEST_F(Ud, ManagementDatagramsLoopBackToQp1) {
    constexpr std::uint32_t kGsiQkey = 0x80010000;
    auto kernel_cq = guest.create_cq({.entries = 640, .dbid = 0});
    auto gsi = guest.create_datagram_qp(*kernel_cq, kGsiQkey,
                                        {.dbid = 0,
                                         .max_send = 128,
                                         .max_receive = 512,
                                         .privileged = true,
                                         .remote_privileged = false,
                                         .qpn = 1});
    const Buffer out = guest.allocate(4096);
    const Buffer in = guest.allocate(4096);
    fill_pattern(out, 6);
    gsi->post_receive({.wr_id = 1, .sges = {{in.iova, 296, 0}}});
    gsi->post_send({.wr_id = 2,
                    .sges = {{out.iova, 24, 0}, {out.iova + 24, 232, 0}},
                    .ah = ah,
                    .remote_qpn = 1,
                    .remote_qkey = kGsiQkey});
    for (const WorkCompletion& wc : kernel_cq->wait_for(2)) {
        EXPECT_EQ(wc.status, Status::Ok);
        if (wc.receive) {
            EXPECT_EQ(wc.length, 296U);
            EXPECT_EQ(wc.source_qpn, 1U);
            EXPECT_TRUE(wc.ipv4);
        }
    }
    EXPECT_EQ(std::memcmp(in.host + kHeader, out.host, 256), 0);
}

}  // namespace
}  // namespace ernic::guest_sim
