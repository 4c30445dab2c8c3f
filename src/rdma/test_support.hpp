// SPDX-License-Identifier: MIT
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "base/event_loop.hpp"
#include "rdma/engine.hpp"

/// A small verbs world for unit tests: guest memory over a buffer, one engine on a segment, and queue owners
/// that keep their work requests and completions in vectors. Time stands still until a test advances it.
namespace ernic::rdma::test {

inline constexpr std::uint64_t kMemorySize = 4 * 1024 * 1024;
inline constexpr std::uint32_t kPd = 7;

class FakeOwner final : public QueueOwner {
  public:
    bool fetch_send(std::uint32_t position, WorkRequest& request) override {
        const auto found = sends.find(position);
        if (found == sends.end()) {
            request.id = 0;
            request.opcode = Opcode::Send;
            return false;
        }
        request = *found->second;
        return true;
    }
    bool fetch_receive(std::uint32_t position, ReceiveRequest& request) override {
        const auto found = receives.find(position);
        if (found == receives.end()) {
            return false;
        }
        request = found->second;
        return true;
    }
    void send_completed(const SendCompletion& completion) override { sent.push_back(completion); }
    void send_batch_done() override {}
    void receive_completed(const ReceiveCompletion& completion) override { received.push_back(completion); }
    void flushed(Side side) override { ++(side == Side::Send ? send_flushes : receive_flushes); }
    void raise(QpEvent event) override { events.push_back(event); }

    std::map<std::uint32_t, std::unique_ptr<WorkRequest>> sends;
    std::map<std::uint32_t, ReceiveRequest> receives;
    std::vector<SendCompletion> sent;
    std::vector<ReceiveCompletion> received;
    std::vector<QpEvent> events;
    int send_flushes = 0;
    int receive_flushes = 0;
};

/// A queue pair with its owner and the next free ring positions.
struct Peer {
    FakeOwner owner;
    std::unique_ptr<QueuePair> qp;
    std::uint32_t sends = 0;
    std::uint32_t receives = 0;
};

class World {
  public:
    explicit World(net::PayloadMode mode = net::PayloadMode::Preserve) : segment(mode) {
        memory.publish({mem::Region{*Range::make(0, kMemorySize), bytes.data(), true, true}});
        memory.set_enabled(true);
        engine.set_mac(mac);
    }

    static wire::MacAddress make_mac(std::uint8_t last) { return {{0x02, 0, 0, 0, 0, last}}; }

    static net::Route route_to(wire::MacAddress destination, wire::MacAddress source) {
        net::Route route;
        route.destination = destination;
        route.source = source;
        route.ipv4 = true;
        route.ip4.version_ihl = 0x45;
        return route;
    }

    std::unique_ptr<Peer> make(std::uint32_t qpn, QpType type = QpType::Rc, bool privileged = false) {
        auto peer = std::make_unique<Peer>();
        QueuePair::Identity identity;
        identity.qpn = qpn;
        identity.pd = kPd;
        identity.type = type;
        identity.privileged = privileged;
        identity.sq_depth = 1024;
        identity.rq_depth = 1024;
        peer->qp = std::make_unique<QueuePair>(engine, peer->owner, identity);
        return peer;
    }

    /// RESET to RTS with all rights, towards `destination_qpn` on this engine's own port.
    void bring_up(Peer& peer, std::uint32_t destination_qpn, std::uint32_t sq_psn = 0,
                  std::uint32_t rq_psn = 0) {
        peer.qp->enter(QpState::Init);
        QpAttributes& a = peer.qp->attributes();
        a.destination_qpn = destination_qpn;
        a.qkey = 0x1234;
        a.sq_psn = sq_psn;
        a.rq_psn = rq_psn;
        a.timeout = 14;
        a.retry_count = 2;
        a.rnr_retry = 2;
        a.min_rnr_timer = 12;
        a.max_rd_atomic = 4;
        a.remote_write = a.remote_read = a.remote_atomic = true;
        a.route = route_to(mac, mac);
        peer.qp->enter(QpState::Rtr);
        peer.qp->enter(QpState::Rts);
    }

    /// A region of plain memory at its own address; returns its key.
    std::uint32_t region(std::uint32_t index, std::uint64_t va, std::uint64_t length, AccessRights rights) {
        MemoryRegion region;
        region.valid = true;
        region.pd = kPd;
        region.rights = rights;
        region.va = va;
        region.length = length;
        region.pages = mem::PageList::contiguous(mem::Iova{va});
        const std::uint32_t key = index << 8U | 0x5aU;
        EXPECT_TRUE(engine.memory_table().create(key, std::move(region)));
        return key;
    }
    static AccessRights all_rights() { return {true, true, true, true, true, false}; }

    static WorkRequest request(Opcode opcode, std::uint64_t va, std::uint32_t length, std::uint32_t lkey) {
        WorkRequest wr{};
        wr.opcode = opcode;
        wr.signalled = true;
        wr.length = length;
        if (length != 0) {
            wr.sge_count = 1;
            wr.sges[0] = {va, length, lkey};
        }
        return wr;
    }

    void post(Peer& peer, WorkRequest wr) {
        wr.id = peer.sends;
        peer.owner.sends[peer.sends] = std::make_unique<WorkRequest>(wr);
        peer.qp->send_posted(++peer.sends & 1023U);
    }
    void post_receive(Peer& peer, std::uint64_t va, std::uint32_t length, std::uint32_t lkey) {
        ReceiveRequest request;
        request.id = peer.receives;
        request.sge_count = 1;
        request.sges[0] = {va, length, lkey};
        peer.owner.receives[peer.receives] = request;
        peer.qp->receive_posted(++peer.receives & 1023U);
    }

    /// Runs all work there is; fails the test when it never ends.
    void run() {
        for (int i = 0; i < 10'000; ++i) {
            if (!engine.step()) {
                return;
            }
        }
        FAIL() << "work without end";
    }
    /// Lets time pass and fires what is due.
    void advance(Nanoseconds by) {
        clock.advance(by);
        loop.run_once(false);
        run();
    }

    void fill(std::uint64_t at, std::size_t size, std::uint8_t seed) {
        for (std::size_t i = 0; i < size; ++i) {
            bytes[at + i] = static_cast<std::byte>(seed + i * 31 + (i >> 8U));
        }
    }
    [[nodiscard]] bool same(std::uint64_t a, std::uint64_t b, std::size_t size) const {
        return std::memcmp(&bytes[a], &bytes[b], size) == 0;
    }

    FakeClock clock;
    EventLoop loop{clock};
    std::vector<std::byte> bytes = std::vector<std::byte>(kMemorySize);
    mem::GuestMemory memory;
    net::Segment segment;
    wire::MacAddress mac = make_mac(1);
    Engine engine{{64, 256, 16, 1U << 16U}, memory, segment, loop};
};

}  // namespace ernic::rdma::test
