// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.hpp"
#include "guest_sim/card.hpp"
#include "guest_sim/event_queue.hpp"
#include "guest_sim/id_allocator.hpp"
#include "wire/ionic_rdma.hpp"

namespace ernic::guest_sim {

class QueuePair;

/// The RDMA driver's part of the card: reset, event queues, one admin queue, ids (`ionic_rdma` 7.2,
/// ionic_create_rdma_admin, ionic_admin_post). Fails: GuestError.
class RdmaDriver {
  public:
    /// EQ 0 and 1 carry asynchronous events, the others completions, in pairs of one per udma.
    static constexpr std::uint32_t kEventQueues = 8;

    explicit RdmaDriver(Card& card);

    using Status = wire::ionic_rdma::AdminStatus;
    /// Runs one admin command and returns its status.
    Status try_command(wire::ionic_rdma::AdminOp op, Bytes body);
    template <WireValue T>
    Status try_command(wire::ionic_rdma::AdminOp op, const T& body) {
        return try_command(op, bytes_of(body));
    }
    /// Runs one that must succeed.
    template <WireValue T>
    void command(wire::ionic_rdma::AdminOp op, const T& body) {
        check(op, try_command(op, bytes_of(body)));
    }
    /// Posts a command without waiting for it; `finish_commands` waits for all of them.
    void post_command(wire::ionic_rdma::AdminOp op, Bytes body);
    void finish_commands();

    /// RDMA_RESET_LIF: every RDMA object of the card is gone afterwards. The driver cannot be used any more.
    void reset_lif();

    /// Event queue of completion vector `vector` for CQs of `udma`.
    [[nodiscard]] EventQueue& completion_events(std::uint32_t vector, std::uint32_t udma);
    /// Where the asynchronous events of a queue pair arrive.
    [[nodiscard]] EventQueue& async_events(std::uint32_t qpn) { return *event_queues_[udma_of(qpn)]; }

    [[nodiscard]] std::uint32_t udma_of(std::uint32_t id) const { return id >> udma_shift_ & 1U; }
    [[nodiscard]] const wire::ionic::LifRdmaIdentity& identity() const { return card_.lif().rdma; }
    UdmaIds& queue_pair_ids() { return queue_pair_ids_; }
    UdmaIds& completion_queue_ids() { return completion_queue_ids_; }
    /// The next unused index of a memory region or window; indexes are not used twice.
    std::uint32_t next_memory_index() { return next_memory_index_++; }
    std::uint32_t next_address_handle() { return next_address_handle_++; }

    /// Queue pairs by number, for completions to find them; null where there is none.
    [[nodiscard]] QueuePair* queue_pair(std::uint32_t qpn) const {
        return qpn < queue_pairs_.size() ? queue_pairs_[qpn] : nullptr;
    }
    void set_queue_pair(std::uint32_t qpn, QueuePair* qp) { queue_pairs_.at(qpn) = qp; }

    Card& card() { return card_; }

  private:
    static void check(wire::ionic_rdma::AdminOp op, Status status);
    /// Consumes the completion of the oldest command.
    Status take_completion();
    void create_admin_queue();

    Card& card_;
    std::uint32_t udma_shift_;
    UdmaIds queue_pair_ids_;
    UdmaIds completion_queue_ids_;
    std::uint32_t next_memory_index_ = 1;
    std::uint32_t next_address_handle_ = 0;
    std::vector<QueuePair*> queue_pairs_;
    std::vector<std::unique_ptr<EventQueue>> event_queues_;

    Buffer admin_ring_;
    Buffer admin_completions_;
    std::uint32_t admin_cq_ = 0;
    std::uint32_t producer_ = 0;  ///< admin slots filled
    std::uint32_t oldest_ = 0;    ///< first slot of the oldest command not yet completed
    std::uint32_t completions_read_ = 0;
};

}  // namespace ernic::guest_sim
