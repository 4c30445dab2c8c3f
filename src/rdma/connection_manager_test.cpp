// SPDX-License-Identifier: MIT
#include "rdma/connection_manager.hpp"

#include <gtest/gtest.h>

#include <set>

#include "rdma/cm_test_support.hpp"

namespace ernic::rdma {
namespace {

using namespace wire::ib_cm;
using test::CmWorld;

constexpr Nanoseconds kSecond = 1'000'000'000;

class FakeUser final : public ConnectionUser {
  public:
    void established() override { ++established_count; }
    void ended() override { ++ended_count; }
    int established_count = 0;
    int ended_count = 0;
};

class FakeListener final : public ConnectionListener {
  public:
    ConnectionAnswer requested(const ConnectionRequest& request, ConnectionId id) override {
        requests.push_back(request);
        private_data.assign(request.private_data.begin(), request.private_data.end());
        ids.push_back(id);
        if (refusal) {
            return *refusal;
        }
        ConnectionAccepted accepted{
            .user = &user, .qpn = 50 + static_cast<std::uint32_t>(ids.size()), .starting_psn = 0xabcdef};
        accepted.initiator_depth = 16;
        accepted.private_data[0] = std::byte{0x5a};
        return accepted;
    }
    FakeUser user;
    std::optional<ConnectionRefused> refusal;
    std::vector<ConnectionRequest> requests;
    std::vector<std::byte> private_data;
    std::vector<ConnectionId> ids;
};

class ConnectionManagerTest : public testing::Test {
  protected:
    ConnectionManagerTest() {
        manager.listen(test::kServicePort, listener);
        world.service_step = [this] {
            manager.step();
            return endpoint.step() || manager.has_work();
        };
    }

    void request(std::uint32_t id = 9, std::uint32_t qpn = 100) {
        world.send(Attribute::Request, CmWorld::connection_request(id, qpn));
    }
    Reply connect(std::uint32_t id = 9, std::uint32_t qpn = 100) {
        request(id, qpn);
        return world.take_one<Reply>(Attribute::Reply);
    }
    void ready(std::uint32_t id = 9) {
        ReadyToUse body{};
        body.local_id.set(id);
        body.remote_id.set(listener.ids.back());
        world.send(Attribute::ReadyToUse, body);
    }
    DisconnectRequest disconnect_request(std::uint32_t id = 9, std::uint32_t qpn = 51) {
        DisconnectRequest body{};
        body.local_id.set(id);
        body.remote_id.set(listener.ids.back());
        body.remote_qpn.set(qpn << 8U);
        return body;
    }
    std::uint16_t rejected() { return world.take_one<Reject>(Attribute::Reject).reason.get(); }

    CmWorld world;
    Endpoint endpoint{world.segment, world.loop, CmWorld::service_mac(), {4, ManagementPort::kDatagrams}};
    ConnectionCounters counters;
    ConnectionManager manager{endpoint, counters, log::Logger(log::null_sink(), "")};
    FakeListener listener;
};

TEST_F(ConnectionManagerTest, ARequestIsReadAndAnswered) {
    const std::array<std::byte, 2> consumer = {std::byte{1}, std::byte{2}};
    world.send(Attribute::Request, CmWorld::connection_request(9, 100, consumer), 0x1122334455667788);
    const auto datagrams = world.take();
    ASSERT_EQ(datagrams.size(), 1U);
    EXPECT_EQ(cm::header_of(datagrams[0])->transaction_id.get(), 0x1122334455667788U);
    const auto reply = cm::body_of<Reply>(datagrams[0]);
    EXPECT_EQ(CmWorld::attribute_of(datagrams[0]), Attribute::Reply);
    EXPECT_EQ(reply.local_id.get(), listener.ids.at(0));
    EXPECT_NE(reply.local_id.get(), 0U);
    EXPECT_EQ(reply.remote_id.get(), 9U);
    EXPECT_EQ(reply.qpn.get(), 51U << 8U);
    EXPECT_EQ(reply.psn.get(), 0xabcdef00U);
    EXPECT_EQ(reply.initiator_depth, 16);
    EXPECT_EQ(reply.responder_resources, 0);
    EXPECT_EQ(reply.rnr_retry >> 5U, 7);
    EXPECT_EQ(reply.delay_flow_control & 1U, 1U);
    EXPECT_EQ(reply.private_data[0], std::byte{0x5a});
    // EUI-64 of 02:00:00:00:00:02.
    EXPECT_EQ(reply.ca_guid.get(), 0x000000fffe000002U);

    const ConnectionRequest& seen = listener.requests.at(0);
    EXPECT_EQ(seen.port, test::kServicePort);
    EXPECT_EQ(seen.source.to_string(), "10.0.0.1");
    EXPECT_EQ(seen.destination.to_string(), "10.0.0.2");
    EXPECT_EQ(seen.peer_qpn, 100U);
    EXPECT_EQ(seen.starting_psn, 0x123456U);
    EXPECT_EQ(seen.path_mtu, 1024U);
    EXPECT_EQ(seen.responder_resources, 16);
    EXPECT_EQ(seen.initiator_depth, 0);
    EXPECT_EQ(seen.retry_count, 7);
    EXPECT_EQ(seen.rnr_retry_count, 7);
    EXPECT_EQ(seen.acknowledge_timeout, 17);
    EXPECT_EQ(seen.route.destination, world.mac);
    EXPECT_EQ(seen.route.source, CmWorld::service_mac());
    EXPECT_EQ(seen.route.ip4.source.get(), 0x0a000002U);
    EXPECT_EQ(listener.private_data.size(), kConsumerPrivate);
    EXPECT_EQ(listener.private_data[1], std::byte{2});
}

TEST_F(ConnectionManagerTest, AConnectionLivesFromReadyToUseToDisconnect) {
    connect();
    EXPECT_TRUE(manager.timer_armed());
    EXPECT_EQ(listener.user.established_count, 0);
    ready();
    EXPECT_EQ(listener.user.established_count, 1);
    ready();
    EXPECT_EQ(listener.user.established_count, 1);
    world.pass(1000 * kSecond);
    EXPECT_FALSE(manager.timer_armed());
    EXPECT_TRUE(world.take().empty());

    world.send(Attribute::DisconnectRequest, disconnect_request());
    const auto reply = world.take_one<DisconnectReply>(Attribute::DisconnectReply);
    EXPECT_EQ(reply.local_id.get(), listener.ids[0]);
    EXPECT_EQ(reply.remote_id.get(), 9U);
    EXPECT_EQ(listener.user.ended_count, 1);
    // A second one, because the answer was lost, is answered too.
    world.send(Attribute::DisconnectRequest, disconnect_request());
    world.take_one<DisconnectReply>(Attribute::DisconnectReply);
    EXPECT_EQ(listener.user.ended_count, 1);
    EXPECT_EQ(manager.connections(), 1U);
    world.pass(10 * kSecond);
    EXPECT_EQ(manager.connections(), 0U);
    EXPECT_FALSE(manager.timer_armed());
}

TEST_F(ConnectionManagerTest, ARepeatedRequestGetsTheSameReplyUntilItIsReady) {
    const Reply first = connect();
    const Reply second = connect();
    EXPECT_EQ(std::memcmp(&first, &second, sizeof first), 0);
    EXPECT_EQ(listener.requests.size(), 1U);
    ready();
    request();
    EXPECT_TRUE(world.take().empty());
    world.send(Attribute::DisconnectRequest, disconnect_request());
    world.take();
    request();
    EXPECT_EQ(rejected(), static_cast<std::uint16_t>(RejectReason::StaleConnection));
    EXPECT_EQ(listener.requests.size(), 1U);
}

TEST_F(ConnectionManagerTest, AReplyWithoutAnswerIsRepeatedAndThenGivenUp) {
    connect();
    int replies = 0;
    for (int i = 0; i < 40 && listener.user.ended_count == 0; ++i) {
        world.pass(5 * kSecond);
        for (const cm::Datagram& datagram : world.take()) {
            if (CmWorld::attribute_of(datagram) == Attribute::Reply) {
                ++replies;
            } else {
                ASSERT_EQ(CmWorld::attribute_of(datagram), Attribute::Reject);
                const auto reject = cm::body_of<Reject>(datagram);
                EXPECT_EQ(reject.reason.get(), static_cast<std::uint16_t>(RejectReason::Timeout));
                EXPECT_EQ(reject.about >> 6U, 1);
                EXPECT_EQ(reject.information_length >> 1U, 8);
            }
        }
    }
    EXPECT_EQ(replies, 15);
    EXPECT_EQ(listener.user.ended_count, 1);
    EXPECT_EQ(counters.timeouts.value(), 1U);
    world.pass(10 * kSecond);
    EXPECT_EQ(manager.connections(), 0U);
}

TEST_F(ConnectionManagerTest, AReceiptPostponesTheNextReply) {
    connect();
    Receipt body{};
    body.local_id.set(9);
    body.remote_id.set(listener.ids[0]);
    body.about = 1U << 6U;
    body.service_timeout = 22U << 3U;  // 17 s
    world.send(Attribute::MessageReceiptAcknowledgement, body);
    world.pass(15 * kSecond);
    EXPECT_TRUE(world.take().empty());
    world.pass(10 * kSecond);
    world.take_one<Reply>(Attribute::Reply);
}

TEST_F(ConnectionManagerTest, TheFirstMessageIsAsGoodAsReadyToUse) {
    connect();
    manager.heard(listener.ids[0]);
    world.pass(100 * kSecond);
    EXPECT_TRUE(world.take().empty());
    ready();
    EXPECT_EQ(listener.user.established_count, 0);
}

TEST_F(ConnectionManagerTest, OurDisconnectIsRepeatedUntilAnswered) {
    connect();
    ready();
    manager.disconnect(listener.ids[0]);
    world.settle();
    const auto first = world.take_one<DisconnectRequest>(Attribute::DisconnectRequest);
    EXPECT_EQ(first.remote_qpn.get(), 100U << 8U);
    EXPECT_EQ(first.remote_id.get(), 9U);
    world.pass(5 * kSecond);
    const auto second = world.take_one<DisconnectRequest>(Attribute::DisconnectRequest);
    EXPECT_EQ(std::memcmp(&first, &second, sizeof first), 0);
    DisconnectReply body{};
    body.local_id.set(9);
    body.remote_id.set(listener.ids[0]);
    world.send(Attribute::DisconnectReply, body);
    world.pass(20 * kSecond);
    EXPECT_TRUE(world.take().empty());
    EXPECT_EQ(manager.connections(), 0U);
    EXPECT_EQ(listener.user.ended_count, 0);
}

TEST_F(ConnectionManagerTest, DisconnectsThatCrossAreBothAnswered) {
    connect();
    ready();
    manager.disconnect(listener.ids[0]);
    world.settle();
    world.take();
    world.send(Attribute::DisconnectRequest, disconnect_request());
    world.take_one<DisconnectReply>(Attribute::DisconnectReply);
    world.pass(5 * kSecond);
    EXPECT_TRUE(world.take().empty());
}

TEST_F(ConnectionManagerTest, APeerThatDiedIsGivenUp) {
    connect();
    ready();
    manager.disconnect(listener.ids[0]);
    for (int i = 0; i < 20; ++i) {
        world.pass(5 * kSecond);
        world.take();
    }
    world.pass(5 * kSecond);
    EXPECT_EQ(manager.connections(), 0U);
    EXPECT_EQ(counters.timeouts.value(), 1U);
}

TEST_F(ConnectionManagerTest, ANewRequestOfTheSameQueuePairEndsTheOldConnection) {
    connect();
    ready();
    request(10, 100);
    EXPECT_EQ(rejected(), static_cast<std::uint16_t>(RejectReason::StaleConnection));
    EXPECT_EQ(listener.user.ended_count, 1);
    EXPECT_EQ(counters.stale.value(), 1U);
    connect(10, 100);
    EXPECT_EQ(listener.requests.size(), 2U);
}

TEST_F(ConnectionManagerTest, AResetOfThePeersCardForgetsItsConnections) {
    connect();
    ready();
    world.engine.clear();
    EXPECT_EQ(listener.user.ended_count, 1);
    EXPECT_EQ(manager.connections(), 0U);
    EXPECT_EQ(counters.ended_by_reset.value(), 1U);
    world.pass(100 * kSecond);
    EXPECT_EQ(counters.unsent.value() + counters.timeouts.value(), 0U);
}

TEST_F(ConnectionManagerTest, WhatCannotBeIsRejectedWithItsReason) {
    auto body = CmWorld::connection_request(9, 100);
    body.service_id.set(kServicePrefixTcp | 4421);
    world.send(Attribute::Request, body);
    const auto reject = world.take_one<Reject>(Attribute::Reject);
    EXPECT_EQ(reject.reason.get(), static_cast<std::uint16_t>(RejectReason::InvalidServiceId));
    EXPECT_EQ(reject.local_id.get(), 0U);
    EXPECT_EQ(reject.remote_id.get(), 9U);
    EXPECT_EQ(reject.about, 0);

    body = CmWorld::connection_request(9, 100);
    body.service_id.set(0x0000000001110000 | test::kServicePort);
    world.send(Attribute::Request, body);
    EXPECT_EQ(rejected(), 8);
    body = CmWorld::connection_request(9, 100);
    body.private_data[0] = std::byte{1};
    world.send(Attribute::Request, body);
    EXPECT_EQ(rejected(), 8);
    body = CmWorld::connection_request(9, 100);
    body.private_data[1] = std::byte{0x50};
    world.send(Attribute::Request, body);
    EXPECT_EQ(rejected(), 8);
    body = CmWorld::connection_request(9, 100);
    body.eecn_transport.set(1U << 1U);
    world.send(Attribute::Request, body);
    EXPECT_EQ(rejected(), 9);
    body = CmWorld::connection_request(9, 1);
    world.send(Attribute::Request, body);
    EXPECT_EQ(rejected(), 1);
    for (const std::uint8_t code : {0, 6, 15}) {
        body = CmWorld::connection_request(9, 100);
        body.mtu_rnr_retry = static_cast<std::uint8_t>(code << 4U);
        world.send(Attribute::Request, body);
        EXPECT_EQ(rejected(), 26);
    }
    listener.refusal = ConnectionRefused{.reason = RejectReason::Consumer};
    listener.refusal->private_data[3] = std::byte{7};
    world.send(Attribute::Request, CmWorld::connection_request(9, 100));
    const auto consumer = world.take_one<Reject>(Attribute::Reject);
    EXPECT_EQ(consumer.reason.get(), 28);
    EXPECT_EQ(consumer.private_data[3], std::byte{7});
    EXPECT_EQ(manager.connections(), 0U);
    EXPECT_EQ(counters.refused.value(), 10U);
}

TEST_F(ConnectionManagerTest, ResolutionOfDatagramServicesIsUnsupported) {
    ServiceResolutionRequest body{};
    body.request_id.set(5);
    body.service_id.set(0x0000000001110000 | 7);
    world.send(Attribute::ServiceResolutionRequest, body);
    const auto reply = world.take_one<ServiceResolutionReply>(Attribute::ServiceResolutionReply);
    EXPECT_EQ(reply.request_id.get(), 5U);
    EXPECT_EQ(reply.status, ServiceResolutionReply::kUnsupported);
    EXPECT_EQ(reply.service_id.get(), body.service_id.get());
}

TEST_F(ConnectionManagerTest, AnUnknownConnectionIsDisconnectedAllTheSame) {
    DisconnectRequest body{};
    body.local_id.set(1234);
    body.remote_id.set(4321);
    world.send(Attribute::DisconnectRequest, body);
    const auto reply = world.take_one<DisconnectReply>(Attribute::DisconnectReply);
    EXPECT_EQ(reply.local_id.get(), 4321U);
    EXPECT_EQ(reply.remote_id.get(), 1234U);
}

TEST_F(ConnectionManagerTest, WhatDoesNotFitIsIgnored) {
    connect();
    ready();
    const auto ignored = [&] { return counters.ignored.value(); };
    const auto before = ignored();
    world.send(Attribute::DisconnectRequest, disconnect_request(9, 52));  // another QP of ours
    world.send(Attribute::Reject, Reject{});
    world.send(Attribute::DisconnectReply, DisconnectReply{});
    world.send(Attribute::Reply, Reply{});
    world.send(Attribute::LoadAlternatePath, ReadyToUse{});
    world.send(static_cast<Attribute>(0x99), ReadyToUse{});
    EXPECT_EQ(ignored() - before, 6U);
    // Of another class, and shorter than a datagram.
    cm::Datagram foreign{};
    foreign[0] = std::byte{1};
    foreign[1] = std::byte{4};
    world.send(foreign);
    EXPECT_EQ(ignored() - before, 7U);
    world.send(foreign, 100);
    EXPECT_TRUE(world.take().empty());
    EXPECT_EQ(listener.user.ended_count, 0);
}

TEST_F(ConnectionManagerTest, ARejectedReplyEndsTheConnection) {
    connect();
    Reject body{};
    body.local_id.set(9);
    body.remote_id.set(listener.ids[0]);
    body.about = 1U << 6U;
    world.send(Attribute::Reject, body);
    EXPECT_EQ(listener.user.ended_count, 1);
}

TEST_F(ConnectionManagerTest, TheTableIsBounded) {
    // Twice the four queue pairs of the endpoint.
    for (std::uint32_t i = 0; i < 8; ++i) {
        connect(9 + i, 100 + i);
    }
    request(30, 130);
    EXPECT_EQ(rejected(), static_cast<std::uint16_t>(RejectReason::NoResources));
    world.send(Attribute::DisconnectRequest, disconnect_request(16, 58));
    world.take();
    EXPECT_EQ(manager.connections(), 8U);
    // One that has ended makes room.
    connect(30, 130);
    EXPECT_EQ(manager.connections(), 8U);
}

TEST_F(ConnectionManagerTest, AStormOfRequestsIsAnsweredAndLeavesNothingBehind) {
    std::set<std::uint32_t> ids;
    for (std::uint32_t i = 0; i < 1000; ++i) {
        const Reply reply = connect(1000 + i, 100 + i);
        ids.insert(reply.local_id.get());
        DisconnectRequest body = disconnect_request(1000 + i, 51 + i);
        world.send(Attribute::DisconnectRequest, body);
        world.take_one<DisconnectReply>(Attribute::DisconnectReply);
    }
    EXPECT_EQ(ids.size(), 1000U);
    EXPECT_LE(manager.connections(), 8U);
    EXPECT_EQ(counters.unsent.value(), 0U);
}

}  // namespace
}  // namespace ernic::rdma
