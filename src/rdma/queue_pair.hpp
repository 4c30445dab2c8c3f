// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "metrics/registry.hpp"
#include "rdma/memory_region.hpp"
#include "rdma/requester.hpp"
#include "rdma/responder.hpp"
#include "rdma/types.hpp"

namespace ernic::rdma {

class Engine;
class TurnQueue;

/// Everything MODIFY_QP sets. Codes are the InfiniBand ones.
struct QpAttributes {
    std::uint32_t destination_qpn = 0;
    std::uint32_t qkey = 0;
    std::uint32_t sq_psn = 0;
    std::uint32_t rq_psn = 0;
    std::uint32_t rate_limit_kbps = 0;
    std::uint32_t path_mtu = 1024;
    std::uint8_t timeout = 0;
    std::uint8_t retry_count = 0;
    std::uint8_t rnr_retry = 0;
    std::uint8_t min_rnr_timer = 0;
    /// Reads and atomics this side may have under way / accepts.
    std::uint32_t max_rd_atomic = 1;
    std::uint32_t max_dest_rd_atomic = 1;
    bool remote_write = false;
    bool remote_read = false;
    bool remote_atomic = false;
    bool sqd_notify = false;
    net::Route route;
};

/// Counters of one QP, as shown in the statistics file.
struct QpCounters {
    std::array<std::uint64_t, kOpcodeCount> requests{};
    std::array<std::uint64_t, kOpcodeCount> bytes{};
    std::uint64_t completed = 0;
    std::uint64_t failed = 0;
    std::uint64_t received = 0;
    std::uint64_t received_bytes = 0;
    std::uint64_t rnr_naks_sent = 0;
    std::uint64_t rnr_naks_received = 0;
    std::uint64_t timeouts = 0;
    std::uint64_t dropped = 0;
};

/// A queue pair: attributes, state, and the two protocol halves. Built and owned by the Engine's user,
/// registered with the Engine. Thread: device.
class QueuePair {
  public:
    struct Identity {
        std::uint32_t qpn = 0;
        std::uint32_t pd = 0;
        QpType type = QpType::Rc;
        /// Key 0 means plain bus addresses for local / remote accesses.
        bool privileged = false;
        bool remote_privileged = false;
        /// Ring capacities; powers of two.
        std::uint32_t sq_depth = 1;
        std::uint32_t rq_depth = 1;
    };

    /// The engine and the owner must outlive the queue pair.
    QueuePair(Engine& engine, QueueOwner& owner, const Identity& identity);
    ~QueuePair();
    QueuePair(const QueuePair&) = delete;
    QueuePair& operator=(const QueuePair&) = delete;

    [[nodiscard]] const Identity& identity() const { return identity_; }
    [[nodiscard]] std::uint32_t qpn() const { return identity_.qpn; }
    [[nodiscard]] QpState state() const { return state_; }
    /// Payload bytes of one packet of this connection; never 0, whatever the guest has set.
    [[nodiscard]] std::uint32_t path_mtu() const {
        return std::max<std::uint32_t>(attributes_.path_mtu, 256);
    }
    /// How this QP's own requests and receives look at the key table.
    [[nodiscard]] MemoryTable::User local_user() const {
        return {identity_.pd, identity_.qpn, identity_.privileged};
    }
    /// How its peer's requests do.
    [[nodiscard]] MemoryTable::User remote_user() const {
        return {identity_.pd, identity_.qpn, identity_.remote_privileged};
    }
    [[nodiscard]] QpAttributes& attributes() { return attributes_; }
    [[nodiscard]] const QpAttributes& attributes() const { return attributes_; }

    /// True when InfiniBand 10.3.1 allows going from the present state to `to`.
    [[nodiscard]] bool may_enter(QpState to) const;
    /// Enters `to`; attributes have been set before. On return no DMA of a state left behind is running.
    /// Precondition: may_enter(to).
    void enter(QpState to);
    /// To Error, on request or because of a fault: forgets what is under way and flushes both sides.
    void fail();

    /// The host has posted: producer indexes as rung, modulo the ring.
    void send_posted(std::uint32_t producer_index);
    void receive_posted(std::uint32_t producer_index);

    /// Sends within `budget` what there is to send; true when there is more to do at once. For the engine.
    bool step(Budget& budget);

    /// The requester has nothing under way in SQD: reports SQ drained once if that was asked for.
    void drained();

    Requester& requester() { return requester_; }
    Responder& responder() { return responder_; }
    Engine& engine() { return engine_; }
    QueueOwner& owner() { return owner_; }
    QpCounters& counters() { return counters_; }
    [[nodiscard]] const QpCounters& counters() const { return counters_; }

    /// Its place in one of the engine's queues. The engine's business alone.
    struct Turn {
        TurnQueue* queue = nullptr;
        QueuePair* before = nullptr;
        QueuePair* behind = nullptr;
    };
    Turn turn;

  private:
    void flush();

    bool drain_pending_ = false;

    Engine& engine_;
    QueueOwner& owner_;
    Identity identity_;
    QpState state_ = QpState::Reset;
    QpAttributes attributes_;
    QpCounters counters_;
    Requester requester_;
    Responder responder_;
};

}  // namespace ernic::rdma
