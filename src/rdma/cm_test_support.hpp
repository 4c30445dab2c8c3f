// SPDX-License-Identifier: MIT
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#include "rdma/cm_messages.hpp"
#include "rdma/connection_manager.hpp"
#include "rdma/test_support.hpp"

/// The other side of connection management for unit tests: a guest's QP 1, and the datagrams it sends.
namespace ernic::rdma::test {

inline constexpr std::uint64_t kPeerGuid = 0x0200000000000001;
inline constexpr std::uint16_t kServicePort = 4420;

/// World, and a service's endpoint at service_mac() on the same segment, which runs with it.
class CmWorld : public World {
  public:
    CmWorld() {
        gsi = make(wire::ib_cm::kManagementQpn, QpType::Ud, true);
        gsi->qp->enter(QpState::Init);
        gsi->qp->attributes().qkey = wire::ib_cm::kManagementQkey;
        gsi->qp->enter(QpState::Rtr);
        gsi->qp->enter(QpState::Rts);
        for (std::uint32_t i = 0; i < kReceives; ++i) {
            post_receive(*gsi, receive_at(i), kReceiveSize, 0);
        }
        engine.set_address_handle(0, kPd, route());
    }

    static wire::MacAddress service_mac() { return make_mac(2); }
    [[nodiscard]] net::Route route() const {
        net::Route route = route_to(service_mac(), mac);
        route.ip4.source.set(0x0a000001);
        route.ip4.destination.set(0x0a000002);
        return route;
    }

    /// All there is to do on both sides.
    void settle() {
        for (int i = 0; i < 10'000; ++i) {
            const bool theirs = engine.step();
            const bool ours = service_step && service_step();
            if (!ours && !theirs) {
                return;
            }
        }
        FAIL() << "work without end";
    }
    void pass(Nanoseconds time) {
        clock.advance(time);
        loop.run_once(false);
        settle();
    }

    void send(const cm::Datagram& datagram, std::size_t length = wire::ib_cm::kMadSize) {
        std::memcpy(&bytes[kSendAt], datagram.data(), datagram.size());
        WorkRequest wr = request(Opcode::Send, kSendAt, static_cast<std::uint32_t>(length), 0);
        wr.ah_id = 0;
        wr.destination_qpn = wire::ib_cm::kManagementQpn;
        wr.destination_qkey = 0x80000000U;
        post(*gsi, wr);
        settle();
    }
    template <typename Body>
    void send(wire::ib_cm::Attribute attribute, const Body& body, std::uint64_t transaction = 77) {
        send(cm::datagram_of(attribute, transaction, body));
    }

    /// A REQ as Linux makes it.
    static wire::ib_cm::Request connection_request(std::uint32_t id, std::uint32_t qpn,
                                                   Bytes private_data = {}) {
        wire::ib_cm::Request body{};
        body.local_id.set(id);
        body.service_id.set(wire::ib_cm::kServicePrefixTcp | kServicePort);
        body.ca_guid.set(kPeerGuid);
        body.qpn_resources.set(qpn << 8U | 16);
        body.eecn_transport.set(20U << 3U | 1);
        body.psn_retry.set(0x123456U << 8U | 20U << 3U | 7U);
        body.partition.set(0xffff);
        body.mtu_rnr_retry = 3U << 4U | 7U;
        body.cm_retries = 15U << 4U;
        body.primary.acknowledge_timeout = 17U << 3U;
        wire::ib_cm::RdmaCmHeader header{};
        header.ip_version = 0x40;
        header.source_port.set(40000);
        header.source[12] = header.destination[12] = 10;
        header.source[15] = 1;
        header.destination[15] = 2;
        std::memcpy(body.private_data.data(), &header, sizeof header);
        std::copy(private_data.begin(), private_data.end(), body.private_data.begin() + sizeof header);
        return body;
    }

    /// The datagrams that have come since the last call.
    std::vector<cm::Datagram> take() {
        std::vector<cm::Datagram> datagrams;
        for (; taken < gsi->owner.received.size(); ++taken) {
            const ReceiveCompletion& completion = gsi->owner.received[taken];
            EXPECT_EQ(completion.length, 40 + wire::ib_cm::kMadSize);
            cm::Datagram& datagram = datagrams.emplace_back();
            std::memcpy(datagram.data(), &bytes[receive_at(completion.id) + 40], datagram.size());
            post_receive(*gsi, receive_at(gsi->receives % kReceives), kReceiveSize, 0);
        }
        return datagrams;
    }
    static wire::ib_cm::Attribute attribute_of(const cm::Datagram& datagram) {
        return static_cast<wire::ib_cm::Attribute>(cm::header_of(datagram)->attribute_id.get());
    }
    /// The only datagram that has come, which must be of this kind.
    template <typename Body>
    Body take_one(wire::ib_cm::Attribute attribute) {
        const auto datagrams = take();
        EXPECT_EQ(datagrams.size(), 1U);
        if (datagrams.size() != 1) {
            return Body{};
        }
        EXPECT_EQ(attribute_of(datagrams[0]), attribute);
        return cm::body_of<Body>(datagrams[0]);
    }

    /// One step of the service; true while there is more.
    std::function<bool()> service_step;
    std::unique_ptr<Peer> gsi;

  private:
    static constexpr std::uint32_t kReceives = 256;
    static constexpr std::uint32_t kReceiveSize = 512;
    static constexpr std::uint64_t kSendAt = 4096;
    static std::uint64_t receive_at(std::uint64_t index) { return 8192 + index % kReceives * kReceiveSize; }
    std::size_t taken = 0;
};

}  // namespace ernic::rdma::test
