// SPDX-License-Identifier: MIT
#include "nvmeof/rdma_transport.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "rdma/cm_test_support.hpp"

namespace ernic::nvmeof {
namespace {

using namespace wire::ib_cm;
using rdma::AccessRights;
using rdma::CompletionStatus;
using rdma::Opcode;
using rdma::test::CmWorld;
using wire::nvme_rdma::ConnectAccept;
using wire::nvme_rdma::ConnectReject;
using wire::nvme_rdma::RejectStatus;

constexpr std::uint32_t kPeerQpn = 10;
constexpr std::uint64_t kCommandAt = 0x100000;
constexpr std::uint64_t kResponsesAt = 0x180000;
constexpr std::uint64_t kDataAt = 0x200000;
constexpr std::uint32_t kDataBytes = 0x180000;
constexpr std::uint16_t kEntries = 32;
constexpr std::uint32_t kInCapsule = 8192;

class FakeHandler final : public QueueHandler {
  public:
    void command(std::uint16_t slot, Bytes submission, MutableBytes in_capsule) override {
        slots.push_back(slot);
        submissions.emplace_back(submission.begin(), submission.end());
        capsules.emplace_back(in_capsule.begin(), in_capsule.end());
        if (on_command) {
            on_command(slot, in_capsule);
        }
    }
    void responded(std::uint16_t slot) override { acknowledged.push_back(slot); }
    void gone() override { ++gone_count; }

    std::function<void(std::uint16_t, MutableBytes)> on_command;
    std::vector<std::uint16_t> slots;
    std::vector<std::vector<std::byte>> submissions;
    std::vector<std::vector<std::byte>> capsules;
    std::vector<std::uint16_t> acknowledged;
    int gone_count = 0;
};

class FakeAcceptor final : public Acceptor {
  public:
    std::optional<Grant> consider(const QueueRequest& request) override {
        requests.push_back(request);
        return grant;
    }
    QueueHandler& accepted(const QueueRequest& request, QueueChannel& accepted_channel) override {
        (void)request;
        channel = &accepted_channel;
        return handler;
    }
    std::optional<Grant> grant = Grant{kEntries, kInCapsule};
    std::vector<QueueRequest> requests;
    QueueChannel* channel = nullptr;
    FakeHandler handler;
};

class FakeTransfer final : public Transfer {
  public:
    void transferred(bool ok) override { results.push_back(ok); }
    std::vector<bool> results;
};

class RdmaTransportTest : public testing::Test {
  protected:
    RdmaTransportTest() {
        world.service_step = [this] { return transport.step(); };
    }

    static wire::nvme_rdma::ConnectRequest wish(std::uint16_t queue = 1, std::uint16_t receive = kEntries,
                                                std::uint16_t send = kEntries - 1) {
        wire::nvme_rdma::ConnectRequest wish{};
        wish.queue_id.set(queue);
        wish.host_receive_entries.set(receive);
        wish.host_send_entries.set(send);
        return wish;
    }
    void request(const wire::nvme_rdma::ConnectRequest& wish, std::uint32_t id = 9,
                 std::uint32_t qpn = kPeerQpn) {
        world.send(Attribute::Request, CmWorld::connection_request(id, qpn, bytes_of(wish)));
    }
    RejectStatus refused(const wire::nvme_rdma::ConnectRequest& wish) {
        request(wish);
        const auto reject = world.take_one<Reject>(Attribute::Reject);
        EXPECT_EQ(reject.reason.get(), 28);
        return static_cast<RejectStatus>(read_value<ConnectReject>(reject.private_data)->status.get());
    }
    /// A host's queue pair, connected, with receives posted. `receives`: 16 bytes each.
    void connect(std::uint32_t receives = kEntries) {
        request(wish());
        const auto reply = world.take_one<Reply>(Attribute::Reply);
        host = world.make(kPeerQpn, rdma::QpType::Rc, true);
        host->qp->enter(rdma::QpState::Init);
        rdma::QpAttributes& attributes = host->qp->attributes();
        attributes.destination_qpn = reply.qpn.get() >> 8U;
        attributes.sq_psn = reply.psn.get() >> 8U;
        attributes.rq_psn = 0x123456;
        attributes.path_mtu = 1024;
        attributes.timeout = 14;
        attributes.retry_count = 7;
        attributes.rnr_retry = 7;
        attributes.max_rd_atomic = 1;
        attributes.remote_read = attributes.remote_write = true;
        attributes.route = world.route();
        host->qp->enter(rdma::QpState::Rtr);
        host->qp->enter(rdma::QpState::Rts);
        for (std::uint32_t i = 0; i < receives; ++i) {
            world.post_receive(*host, kResponsesAt + 16 * i, 16, 0);
        }
        ready_body.local_id.set(9);
        ready_body.remote_id = reply.local_id;
        world.send(Attribute::ReadyToUse, ready_body);
        key = world.region(20, kDataAt, kDataBytes, CmWorld::all_rights());
    }
    /// `size` bytes of capsule, numbered from `seed` on.
    void command(std::uint32_t size = kSubmissionBytes, std::uint8_t seed = 0) {
        world.fill(kCommandAt, size, seed);
        world.post(*host, CmWorld::request(Opcode::Send, kCommandAt, size, 0));
        world.settle();
    }
    void respond(std::uint16_t slot, std::uint8_t value = 0x77,
                 std::optional<std::uint32_t> invalidate = std::nullopt) {
        const std::vector<std::byte> completion(kCompletionBytes, std::byte{value});
        acceptor.channel->respond(slot, completion, invalidate);
        world.settle();
    }
    QueueChannel& channel() { return *acceptor.channel; }
    FakeHandler& handler() { return acceptor.handler; }
    HostMemory memory(std::uint32_t length = kDataBytes) const { return {kDataAt, length, key}; }

    CmWorld world;
    FakeAcceptor acceptor;
    TransportCounters counters;
    rdma::ConnectionCounters connection_counters;
    RdmaTransport transport{world.segment,
                            world.loop,
                            {CmWorld::service_mac(), {net::IpAddress::v4(0x0a000002)}, {4420, 8009}},
                            acceptor,
                            counters,
                            connection_counters,
                            log::Logger(log::null_sink(), "")};
    std::unique_ptr<rdma::test::Peer> host;
    ReadyToUse ready_body{};
    std::uint32_t key = 0;
};

TEST_F(RdmaTransportTest, AConnectionIsGrantedWhatBothSidesCan) {
    request(wish(3, 20, 127));
    const auto reply = world.take_one<Reply>(Attribute::Reply);
    EXPECT_EQ(read_value<ConnectAccept>(reply.private_data)->controller_receive_entries.get(), 20);
    EXPECT_EQ(reply.initiator_depth, 16);
    ASSERT_EQ(acceptor.requests.size(), 1U);
    EXPECT_EQ(acceptor.requests[0].queue_id, 3);
    EXPECT_EQ(acceptor.requests[0].host_receive_entries, 20);
    EXPECT_EQ(acceptor.requests[0].host_send_entries, 128);
    EXPECT_EQ(transport.connections(), 1U);
    EXPECT_EQ(acceptor.channel, nullptr);
}

TEST_F(RdmaTransportTest, WhatCannotBeGrantedIsRefusedWithItsStatus) {
    auto strange = wish();
    strange.record_format.set(1);
    EXPECT_EQ(refused(strange), RejectStatus::InvalidRecordFormat);
    EXPECT_EQ(refused(wish(1, kEntries, 0)), RejectStatus::InvalidHostSendEntries);
    EXPECT_EQ(refused(wish(1, 1, kEntries)), RejectStatus::InvalidHostReceiveEntries);
    acceptor.grant.reset();
    EXPECT_EQ(refused(wish()), RejectStatus::NoResources);
    acceptor.grant = Acceptor::Grant{0xffff, 1U << 20U};
    EXPECT_EQ(refused(wish(1, 0xffff, 0xffff)), RejectStatus::NoResources);
    acceptor.grant = Acceptor::Grant{kEntries, kInCapsule};
    auto body = CmWorld::connection_request(9, kPeerQpn, bytes_of(wish()));
    body.qpn_resources.set(kPeerQpn << 8U);
    world.send(Attribute::Request, body);
    auto reject = world.take_one<Reject>(Attribute::Reject);
    EXPECT_EQ(read_value<ConnectReject>(reject.private_data)->status.get(),
              static_cast<std::uint16_t>(RejectStatus::InvalidInboundReads));
    body = CmWorld::connection_request(9, kPeerQpn, bytes_of(wish()));
    body.private_data[35] = std::byte{3};  // to 10.0.0.3
    world.send(Attribute::Request, body);
    reject = world.take_one<Reject>(Attribute::Reject);
    EXPECT_EQ(reject.reason.get(), 8);
    EXPECT_EQ(transport.connections(), 0U);
}

TEST_F(RdmaTransportTest, ACommandReachesItsHandlerAndItsResponseTheHost) {
    connect();
    command(kSubmissionBytes + 5000, 3);
    ASSERT_EQ(handler().slots.size(), 1U);
    EXPECT_EQ(std::memcmp(handler().submissions[0].data(), &world.bytes[kCommandAt], kSubmissionBytes), 0);
    ASSERT_EQ(handler().capsules[0].size(), 5000U);
    EXPECT_EQ(std::memcmp(handler().capsules[0].data(), &world.bytes[kCommandAt + kSubmissionBytes], 5000),
              0);
    respond(handler().slots[0]);
    ASSERT_EQ(host->owner.received.size(), 1U);
    EXPECT_EQ(host->owner.received[0].length, kCompletionBytes);
    EXPECT_EQ(world.bytes[kResponsesAt + 15], std::byte{0x77});
    EXPECT_EQ(handler().acknowledged, handler().slots);
    EXPECT_EQ(counters.in_capsule_bytes.value(), 5000U);
}

TEST_F(RdmaTransportTest, ACommandThatOvertakesReadyToUseIsServed) {
    request(wish());
    const auto reply = world.take_one<Reply>(Attribute::Reply);
    host = world.make(kPeerQpn, rdma::QpType::Rc, true);
    world.bring_up(*host, reply.qpn.get() >> 8U, reply.psn.get() >> 8U, 0x123456);
    host->qp->attributes().route = world.route();
    world.post_receive(*host, kResponsesAt, 16, 0);
    command();
    ASSERT_EQ(handler().slots.size(), 1U);
    respond(handler().slots[0]);
    EXPECT_EQ(host->owner.received.size(), 1U);
    world.pass(100'000'000'000U);
    EXPECT_TRUE(world.take().empty());  // no REP is repeated
}

TEST_F(RdmaTransportTest, SlotsAreUsedAgainWithoutEnd) {
    connect();
    handler().on_command = [&](std::uint16_t slot, MutableBytes) {
        const std::vector<std::byte> completion(kCompletionBytes);
        channel().respond(slot, completion, std::nullopt);
    };
    for (std::uint32_t i = 0; i < 70'000; ++i) {
        command();
        if (host->receives - host->owner.received.size() < 4) {
            world.post_receive(*host, kResponsesAt, 16, 0);
        }
        host->owner.sends.clear();
    }
    EXPECT_EQ(handler().acknowledged.size(), 70'000U);
    for (const std::uint16_t slot : handler().slots) {
        ASSERT_LT(slot, kEntries);
    }
}

TEST_F(RdmaTransportTest, MoreThanAQueueOfCommandsWaitsUntilSlotsAreFree) {
    connect(2 * kEntries);
    for (std::uint32_t i = 0; i < kEntries + 3; ++i) {
        world.post(*host, CmWorld::request(Opcode::Send, kCommandAt, kSubmissionBytes, 0));
    }
    world.settle();
    EXPECT_EQ(handler().slots.size(), kEntries);
    std::vector<std::uint16_t> slots = handler().slots;
    for (const std::uint16_t slot : slots) {
        respond(slot);
    }
    world.pass(1'000'000'000);
    EXPECT_EQ(handler().slots.size(), kEntries + 3U);
}

TEST_F(RdmaTransportTest, ALongTransferGoesBothWaysInOnePiece) {
    connect();
    std::vector<std::byte> ours(kDataBytes - 100);
    for (std::size_t i = 0; i < ours.size(); ++i) {
        ours[i] = static_cast<std::byte>(i * 7 + (i >> 9U));
    }
    mem::SpanList from;
    from.add(ours.data(), ours.size());
    FakeTransfer written;
    channel().write_host(memory(), 100, from, &written);
    EXPECT_TRUE(written.results.empty());
    world.settle();
    EXPECT_EQ(written.results, std::vector<bool>{true});
    EXPECT_EQ(std::memcmp(&world.bytes[kDataAt + 100], ours.data(), ours.size()), 0);

    std::vector<std::byte> back(ours.size());
    mem::SpanList to;
    to.add(back.data(), back.size());
    FakeTransfer read;
    channel().read_host(memory(), 100, to, read);
    world.settle();
    EXPECT_EQ(read.results, std::vector<bool>{true});
    EXPECT_EQ(back, ours);
    EXPECT_EQ(counters.bytes_to_hosts.value(), ours.size());
    EXPECT_EQ(counters.bytes_from_hosts.value(), ours.size());
}

TEST_F(RdmaTransportTest, ManyPiecesMakeOneTransfer) {
    connect();
    // Every other 100 bytes, so that no two touch: as many pieces as a list takes.
    std::vector<std::byte> ours(200 * mem::SpanList::kCapacity, std::byte{0xee});
    mem::SpanList pieces;
    for (std::size_t i = 0; i < mem::SpanList::kCapacity; ++i) {
        std::fill_n(ours.begin() + static_cast<std::ptrdiff_t>(200 * i), 100, static_cast<std::byte>(i));
        ASSERT_TRUE(pieces.add(ours.data() + 200 * i, 100));
    }
    FakeTransfer written;
    channel().write_host(memory(), 0, pieces, &written);
    world.settle();
    EXPECT_EQ(written.results, std::vector<bool>{true});
    for (std::size_t i = 0; i < mem::SpanList::kCapacity; ++i) {
        ASSERT_EQ(world.bytes[kDataAt + 100 * i], static_cast<std::byte>(i));
        ASSERT_EQ(world.bytes[kDataAt + 100 * i + 99], static_cast<std::byte>(i));
    }
    world.fill(kDataAt, 100 * mem::SpanList::kCapacity, 9);
    FakeTransfer read;
    channel().read_host(memory(), 0, pieces, read);
    world.settle();
    EXPECT_EQ(read.results, std::vector<bool>{true});
    EXPECT_EQ(ours[200 * 127 + 99], world.bytes[kDataAt + 100 * 127 + 99]);
    EXPECT_EQ(ours[200 * 127 + 100], std::byte{0xee});
}

TEST_F(RdmaTransportTest, AResponseComesBehindItsDataAndInvalidatesTheKey) {
    connect();
    rdma::MemoryRegion region;
    region.kind = rdma::MemoryRegion::Kind::FastRegister;
    region.valid = true;
    region.pd = rdma::test::kPd;
    region.rights = CmWorld::all_rights();
    region.va = kDataAt;
    region.length = 4096;
    region.pages = mem::PageList::contiguous(mem::Iova{kDataAt});
    constexpr std::uint32_t kFastKey = 21U << 8U | 1U;
    ASSERT_TRUE(world.engine.memory_table().create(kFastKey, std::move(region)));
    command();
    std::vector<std::byte> ours(4096, std::byte{0x42});
    mem::SpanList from;
    from.add(ours.data(), ours.size());
    channel().write_host({kDataAt, 4096, kFastKey}, 0, from, nullptr);
    respond(handler().slots[0], 0x77, kFastKey);
    EXPECT_EQ(world.bytes[kDataAt + 4095], std::byte{0x42});
    ASSERT_EQ(host->owner.received.size(), 1U);
    EXPECT_EQ(host->owner.received[0].kind, rdma::ReceiveKind::SendInvalidate);
    EXPECT_EQ(host->owner.received[0].immediate_or_key, kFastKey);
    EXPECT_EQ(handler().gone_count, 0);
    // Now it is good for nothing more.
    FakeTransfer late;
    channel().write_host({kDataAt, 4096, kFastKey}, 0, from, &late);
    world.settle();
    EXPECT_EQ(late.results, std::vector<bool>{false});
    EXPECT_EQ(handler().gone_count, 1);
}

TEST_F(RdmaTransportTest, AKeyThatCannotBeInvalidatedEndsTheConnection) {
    connect();
    command();
    respond(handler().slots[0], 0x77, key);
    EXPECT_EQ(handler().gone_count, 1);
}

TEST_F(RdmaTransportTest, ABadKeyEndsTheConnectionAndAllTransfers) {
    connect();
    std::vector<std::byte> ours(4096);
    mem::SpanList pieces;
    pieces.add(ours.data(), ours.size());
    FakeTransfer first;
    FakeTransfer second;
    channel().write_host({kDataAt, 4096, key + 1}, 0, pieces, &first);
    channel().read_host(memory(), 0, pieces, second);
    world.settle();
    EXPECT_EQ(first.results, std::vector<bool>{false});
    EXPECT_EQ(second.results, std::vector<bool>{false});
    EXPECT_EQ(handler().gone_count, 1);
    EXPECT_EQ(counters.lost.value(), 1U);
    EXPECT_EQ(transport.connections(), 0U);
    world.take_one<DisconnectRequest>(Attribute::DisconnectRequest);
}

TEST_F(RdmaTransportTest, ATransferBeyondTheRegionIsRefusedByTheHost) {
    connect();
    std::vector<std::byte> ours(8192);
    mem::SpanList pieces;
    pieces.add(ours.data(), ours.size());
    FakeTransfer done;
    channel().write_host(memory(), kDataBytes - 4096, pieces, &done);
    world.settle();
    EXPECT_EQ(done.results, std::vector<bool>{false});
    EXPECT_EQ(handler().gone_count, 1);
}

TEST_F(RdmaTransportTest, AMessageTooShortForACommandEndsTheConnection) {
    connect();
    command(kSubmissionBytes - 1);
    EXPECT_TRUE(handler().slots.empty());
    EXPECT_EQ(handler().gone_count, 1);
    EXPECT_EQ(counters.bad_capsules.value(), 1U);
    world.take_one<DisconnectRequest>(Attribute::DisconnectRequest);
}

TEST_F(RdmaTransportTest, ACapsuleLongerThanGrantedEndsTheConnection) {
    connect();
    command(kSubmissionBytes + kInCapsule + 1);
    EXPECT_TRUE(handler().slots.empty());
    EXPECT_EQ(handler().gone_count, 1);
}

TEST_F(RdmaTransportTest, AHostThatDisconnectsIsGoneAndAnotherMayCome) {
    connect();
    command();
    DisconnectRequest body{};
    body.local_id.set(9);
    body.remote_id = ready_body.remote_id;
    body.remote_qpn.set(host->qp->attributes().destination_qpn << 8U);
    world.send(Attribute::DisconnectRequest, body);
    world.take_one<DisconnectReply>(Attribute::DisconnectReply);
    EXPECT_EQ(handler().gone_count, 1);
    EXPECT_EQ(transport.connections(), 0U);
    EXPECT_EQ(counters.lost.value(), 0U);
    request(wish(), 10, kPeerQpn);
    world.take_one<Reply>(Attribute::Reply);
    EXPECT_EQ(transport.connections(), 1U);
}

TEST_F(RdmaTransportTest, ClosingWaitsForResponsesAndThenDisconnects) {
    connect();
    command();
    const std::vector<std::byte> completion(kCompletionBytes, std::byte{0x55});
    channel().respond(handler().slots[0], completion, std::nullopt);
    channel().close();
    EXPECT_EQ(handler().gone_count, 0);
    world.settle();
    ASSERT_EQ(host->owner.received.size(), 1U);
    EXPECT_EQ(world.bytes[kResponsesAt], std::byte{0x55});
    EXPECT_EQ(handler().gone_count, 1);
    world.take_one<DisconnectRequest>(Attribute::DisconnectRequest);
    EXPECT_EQ(counters.lost.value(), 0U);
}

TEST_F(RdmaTransportTest, AHostThatHasDiedIsNoticedByWhatItDoesNotAcknowledge) {
    connect();
    command();
    host.reset();
    respond(handler().slots[0]);
    for (int i = 0; i < 20 && handler().gone_count == 0; ++i) {
        world.pass(1'000'000'000);
    }
    EXPECT_EQ(handler().gone_count, 1);
    EXPECT_EQ(counters.lost.value(), 1U);
}

TEST_F(RdmaTransportTest, AHostThatTakesNoResponsesDoesNotKeepItsQueueForEver) {
    connect(0);  // its request has asked for RNR retries without end
    command();
    respond(handler().slots[0]);
    for (int i = 0; i < 60 && handler().gone_count == 0; ++i) {
        world.pass(1'000'000'000);
    }
    EXPECT_EQ(handler().gone_count, 1);
}

TEST_F(RdmaTransportTest, AnIdleConnectionCostsNoTimer) {
    request(wish());
    EXPECT_TRUE(transport.timer_armed()) << "its reply may be lost";
    world.take();
    connect();  // asks again, as if it were lost
    EXPECT_FALSE(transport.timer_armed());
    command();
    respond(handler().slots[0]);
    EXPECT_FALSE(transport.step());
    world.take();
    world.pass(1'000'000'000'000);
    EXPECT_FALSE(transport.timer_armed());
    EXPECT_TRUE(world.take().empty());
}

}  // namespace
}  // namespace ernic::nvmeof
