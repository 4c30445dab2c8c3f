// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/bytes.hpp"
#include "base/slot_table.hpp"
#include "ionic/cq_writer.hpp"
#include "ionic/event_queue.hpp"
#include "ionic/profile.hpp"
#include "mem/guest_memory.hpp"
#include "metrics/registry.hpp"
#include "rdma/engine.hpp"
#include "wire/ionic_rdma.hpp"

namespace ernic::ionic {

class RdmaQueuePair;

/// Counters of the RDMA half that are not the engine's.
struct RdmaCounters {
    metrics::Counter doorbells;
    metrics::Counter ignored_doorbells;
    metrics::Counter admin_commands;
    metrics::Counter admin_errors;
    metrics::Counter cqes;
    metrics::Counter events;
    metrics::Counter cq_overflows;
};

/// Everything the driver has created through the RDMA admin queues, by id: event queues, completion queues,
/// queue pairs. Ids are the driver's choice and index arrays directly. Thread: device.
class RdmaObjects {
  public:
    RdmaObjects(const RdmaProfile& profile, mem::GuestMemory& memory, Interrupts& interrupts,
                rdma::Engine& engine);
    ~RdmaObjects();
    RdmaObjects(const RdmaObjects&) = delete;
    RdmaObjects& operator=(const RdmaObjects&) = delete;

    /// Destroys everything; give_back() returns the host memory of most of it.
    void clear();
    /// Gives back a little of the host memory of what has been destroyed; true while there is more.
    bool give_back();

    /// Each returns nullptr for an unknown id.
    [[nodiscard]] EventQueue* event_queue(std::uint32_t id) const { return event_queues_.at(id); }
    [[nodiscard]] CompletionQueue* completion_queue(std::uint32_t id) const {
        return completion_queues_.at(id);
    }
    [[nodiscard]] RdmaQueuePair* queue_pair(std::uint32_t qpn) const { return queue_pairs_.at(qpn); }

    /// Fails: false when the id is out of range or taken.
    bool add(std::uint32_t id, std::unique_ptr<EventQueue> queue) {
        return event_queues_.put(id, std::move(queue));
    }
    bool add(std::uint32_t id, std::unique_ptr<CompletionQueue> queue) {
        return completion_queues_.put(id, std::move(queue));
    }
    [[nodiscard]] bool completion_queue_free(std::uint32_t id) const { return completion_queues_.free(id); }
    [[nodiscard]] bool queue_pair_free(std::uint32_t qpn) const { return queue_pairs_.free(qpn); }
    void add(std::uint32_t qpn, std::unique_ptr<RdmaQueuePair> qp);
    /// Both give the page table entries of the rings back.
    void remove_completion_queue(std::uint32_t id);
    void remove_queue_pair(std::uint32_t qpn);

    enum class Push : std::uint8_t { Written, Failed };
    /// Writes a CQE to CQ `cq_id` and posts what follows from it. Failed: no such CQ, or it overflowed (the
    /// CQ error event has been posted) or is dead.
    Push push(std::uint32_t cq_id, MutableBytes entry, std::uint32_t flags, bool solicited);

    /// Posts the notify event of a completion queue to its event queue. While the driver has not read the
    /// one before, this is put off until it has: however often a program arms its queue, there is one entry
    /// of it in the event queue that all programs share, and one more when the driver comes to read it.
    void notify(CompletionQueue& cq);

    /// Posts an asynchronous event of a queue pair to the event queue of its udma (0 or 1).
    void raise(std::uint32_t qpn, wire::ionic_rdma::QpEvent event);

    rdma::Engine& engine() { return engine_; }
    mem::GuestMemory& memory() { return memory_; }
    Interrupts& interrupts() { return interrupts_; }
    RdmaCounters& counters() { return counters_; }
    [[nodiscard]] const RdmaProfile& profile() const { return profile_; }
    [[nodiscard]] const SlotTable<RdmaQueuePair>& queue_pairs() const { return queue_pairs_; }
    /// The event queue of interrupt `vector` has been read empty.
    void serviced(std::uint16_t vector);

  private:
    std::optional<std::uint64_t> post(EventQueue& eq, const CompletionQueue& cq,
                                      wire::ionic_rdma::CqEvent event);

    const RdmaProfile& profile_;
    mem::GuestMemory& memory_;
    Interrupts& interrupts_;
    rdma::Engine& engine_;
    SlotTable<EventQueue> event_queues_;
    SlotTable<CompletionQueue> completion_queues_;
    SlotTable<RdmaQueuePair> queue_pairs_;
    RdmaCounters counters_;
};

}  // namespace ernic::ionic
