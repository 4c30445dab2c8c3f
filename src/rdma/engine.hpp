// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/event_loop.hpp"
#include "base/slot_table.hpp"
#include "metrics/registry.hpp"
#include "net/port.hpp"
#include "net/segment.hpp"
#include "rdma/memory_region.hpp"
#include "rdma/queue_pair.hpp"
#include "rdma/turn_queue.hpp"
#include "rdma/types.hpp"
#include "rdma/waiting_room.hpp"

namespace ernic::rdma {

/// Error counters in the terms of the card's statistics (requester and responder side).
struct EngineCounters {
    metrics::Counter tx_messages;
    metrics::Counter tx_bytes;
    metrics::Counter rx_messages;
    metrics::Counter rx_bytes;
    metrics::Counter req_sequence_errors;
    metrics::Counter req_rnr_retry_errors;
    metrics::Counter req_remote_access_errors;
    metrics::Counter req_remote_invalid_requests;
    metrics::Counter req_remote_operation_errors;
    metrics::Counter req_retry_exceeded;
    metrics::Counter req_local_errors;
    metrics::Counter req_memory_management_errors;
    metrics::Counter req_completion_errors;
    metrics::Counter req_flushes;
    metrics::Counter req_duplicate_responses;
    metrics::Counter resp_duplicate_requests;
    metrics::Counter resp_out_of_buffer;
    metrics::Counter resp_out_of_sequence;
    metrics::Counter resp_completion_errors;
    metrics::Counter resp_flushes;
    metrics::Counter resp_local_length_errors;
    metrics::Counter resp_invalid_requests;
    metrics::Counter resp_access_errors;
    metrics::Counter resp_operation_errors;
    metrics::Counter resp_rnr_naks;
    metrics::Counter resp_answers_dropped;
    metrics::Counter unknown_qp;
    metrics::Counter wrong_qkey;
    metrics::Counter datagrams_dropped;
    metrics::Counter requests_started;
};

/// One RDMA port on the segment: keys, address handles, queue pairs, and the scheduler that shares the device
/// thread between QPs. Knows nothing of ionic. Thread: device.
class Engine final : public net::Port {
  public:
    struct Limits {
        std::uint32_t queue_pairs;
        std::uint32_t memory_regions;
        std::uint32_t address_handles;
        std::uint64_t page_table_entries;
    };

    /// All references must outlive the engine.
    Engine(const Limits& limits, mem::GuestMemory& memory, net::Segment& segment, EventLoop& loop);
    ~Engine() override;
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    /// Makes this the owner of `mac`, and of nothing else, on the segment.
    void set_mac(wire::MacAddress mac) { set_macs(std::span(&mac, 1)); }
    /// The same for several addresses; the first one is the port's own. Precondition: not empty.
    void set_macs(std::span<const wire::MacAddress> macs);
    [[nodiscard]] wire::MacAddress mac() const { return mac_; }

    /// Largest datagram payload, from the port's MTU.
    void set_port_mtu(std::uint32_t mtu) { port_mtu_ = mtu; }
    [[nodiscard]] std::uint32_t port_mtu() const { return port_mtu_; }

    void deliver(const net::Message& message) override;

    /// Adds or removes a queue pair; called by QueuePair itself. Precondition: the number is free and in
    /// range.
    void add(QueuePair& qp);
    void remove(QueuePair& qp);
    [[nodiscard]] QueuePair* find(std::uint32_t qpn) const { return qpn < qps_.size() ? qps_[qpn] : nullptr; }
    [[nodiscard]] std::uint32_t queue_pair_limit() const { return static_cast<std::uint32_t>(qps_.size()); }

    /// Address handles. `set` replaces; false for an id out of range.
    struct AddressHandle {
        std::uint32_t pd;
        net::Route route;
    };
    bool set_address_handle(std::uint32_t id, std::uint32_t pd, const net::Route& route);
    void remove_address_handle(std::uint32_t id);
    [[nodiscard]] const AddressHandle* address_handle(std::uint32_t id) const;

    /// Forgets all queue pairs, keys and address handles. A forgotten queue pair neither hears nor does
    /// anything any more; its owner may destroy it later. Services on the segment are told.
    void clear();
    /// False for a queue pair that has been forgotten.
    [[nodiscard]] bool owns(const QueuePair& qp) const { return find(qp.qpn()) == &qp; }
    /// Gives back a little of the host memory of what has been destroyed or forgotten; true while there is
    /// more.
    bool give_back();

    void on_room(Port& port) override;
    void on_gone(Port& port) override;

    /// `qp` has something to send. One that waits for room goes on waiting.
    void schedule(QueuePair& qp);
    /// `qp` has something to send, but the port it goes to is not ready. `served`: it could send something in
    /// its turn.
    void wait_for_room(QueuePair& qp, bool served);
    /// One budgeted round over the scheduled QPs; true while some are left.
    bool step();

    MemoryTable& memory_table() { return memory_table_; }
    mem::GuestMemory& memory() { return memory_; }
    net::Segment& segment() { return segment_; }
    EventLoop& loop() { return loop_; }
    EngineCounters& counters() { return counters_; }
    void register_metrics(metrics::Registry& registry);
    [[nodiscard]] std::uint32_t queue_pairs() const { return live_qps_; }

  private:
    mem::GuestMemory& memory_;
    net::Segment& segment_;
    EventLoop& loop_;
    MemoryTable memory_table_;
    std::vector<QueuePair*> qps_;
    SlotTable<AddressHandle> handles_;
    /// Whose turn it is: one with work, or none.
    QueuePair* next();

    /// QPs with work, and those that cannot do it now.
    TurnQueue ready_;
    WaitingRoom waiting_;
    /// The last turn was one of the waiting room's.
    bool waiter_ran_ = false;
    wire::MacAddress mac_;
    std::uint32_t port_mtu_ = kMaxMtu;
    std::uint32_t live_qps_ = 0;
    EngineCounters counters_;
};

}  // namespace ernic::rdma
