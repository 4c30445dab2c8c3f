// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.hpp"
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

    /// Destroys everything.
    void clear();

    /// Each returns nullptr for an unknown id.
    [[nodiscard]] EventQueue* event_queue(std::uint32_t id) const { return at(event_queues_, id); }
    [[nodiscard]] CompletionQueue* completion_queue(std::uint32_t id) const {
        return at(completion_queues_, id);
    }
    [[nodiscard]] RdmaQueuePair* queue_pair(std::uint32_t qpn) const { return at(queue_pairs_, qpn); }

    /// Fails: false when the id is out of range or taken.
    bool add(std::uint32_t id, std::unique_ptr<EventQueue> queue) {
        return put(event_queues_, id, std::move(queue));
    }
    bool add(std::uint32_t id, std::unique_ptr<CompletionQueue> queue) {
        return put(completion_queues_, id, std::move(queue));
    }
    [[nodiscard]] bool completion_queue_free(std::uint32_t id) const {
        return id < completion_queues_.size() && completion_queues_[id] == nullptr;
    }
    [[nodiscard]] bool queue_pair_free(std::uint32_t qpn) const {
        return qpn < queue_pairs_.size() && queue_pairs_[qpn] == nullptr;
    }
    void add(std::uint32_t qpn, std::unique_ptr<RdmaQueuePair> qp);
    /// Both give the page table entries of the rings back.
    void remove_completion_queue(std::uint32_t id);
    void remove_queue_pair(std::uint32_t qpn);

    enum class Push : std::uint8_t { Written, Failed };
    /// Writes a CQE to CQ `cq_id` and posts what follows from it. Failed: no such CQ, or it overflowed (the
    /// CQ error event has been posted) or is dead.
    Push push(std::uint32_t cq_id, MutableBytes entry, std::uint32_t flags, bool solicited);

    /// Posts an event of a completion queue to its event queue.
    void notify(const CompletionQueue& cq, wire::ionic_rdma::CqEvent event);

    /// Posts an asynchronous event of a queue pair to the event queue of its udma (0 or 1).
    void raise(std::uint32_t qpn, wire::ionic_rdma::QpEvent event);

    rdma::Engine& engine() { return engine_; }
    mem::GuestMemory& memory() { return memory_; }
    Interrupts& interrupts() { return interrupts_; }
    RdmaCounters& counters() { return counters_; }
    [[nodiscard]] const RdmaProfile& profile() const { return profile_; }
    [[nodiscard]] const std::vector<std::unique_ptr<RdmaQueuePair>>& queue_pairs() const {
        return queue_pairs_;
    }
    /// The event queue of interrupt `vector` has been read empty.
    void serviced(std::uint16_t vector);

  private:
    template <typename T>
    static T* at(const std::vector<std::unique_ptr<T>>& table, std::uint32_t id) {
        return id < table.size() ? table[id].get() : nullptr;
    }
    template <typename T>
    static bool put(std::vector<std::unique_ptr<T>>& table, std::uint32_t id, std::unique_ptr<T> object) {
        if (id >= table.size() || table[id]) {
            return false;
        }
        table[id] = std::move(object);
        return true;
    }

    const RdmaProfile& profile_;
    mem::GuestMemory& memory_;
    Interrupts& interrupts_;
    rdma::Engine& engine_;
    std::vector<std::unique_ptr<EventQueue>> event_queues_;
    std::vector<std::unique_ptr<CompletionQueue>> completion_queues_;
    std::vector<std::unique_ptr<RdmaQueuePair>> queue_pairs_;
    RdmaCounters counters_;
};

}  // namespace ernic::ionic
