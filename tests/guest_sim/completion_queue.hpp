// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "guest_sim/event_queue.hpp"
#include "guest_sim/rdma_driver.hpp"
#include "guest_sim/requests.hpp"
#include "guest_sim/wait.hpp"

namespace ernic::guest_sim {

/// A verbs completion queue: two hardware queues, one per udma, polled like rdma-core 65 does
/// (ionic_poll_cq). A completion that would wedge a real CQ (bad type, MSN outside the window, request not
/// posted) throws GuestError.
class CompletionQueue {
  public:
    struct Options {
        /// Completions the application wants to leave unread; 100 more slots are for flushes.
        std::uint32_t entries = 256;
        std::uint16_t dbid = 1;
        std::uint32_t vector = 0;
    };

    CompletionQueue(RdmaDriver& driver, const Options& options);
    ~CompletionQueue() = default;
    CompletionQueue(const CompletionQueue&) = delete;
    CompletionQueue& operator=(const CompletionQueue&) = delete;

    /// Fills `out` with what has completed; returns how many.
    std::size_t poll(std::span<WorkCompletion> out);
    /// The next completion. Fails: GuestError when none comes.
    WorkCompletion wait(std::chrono::nanoseconds patience = kPatience);
    /// The next `count` completions.
    std::vector<WorkCompletion> wait_for(std::size_t count, std::chrono::nanoseconds patience = kPatience);
    /// True when nothing completes within `quiet`.
    bool silent(std::chrono::milliseconds quiet = std::chrono::milliseconds(20));

    /// Asks for an event at the next completion, or the next solicited or failed one. Rings both hardware
    /// queues.
    void arm(bool solicited_only = false);
    /// Tells the device how far the rings have been read.
    void acknowledge();
    /// Before a request is posted: keeps at most a ring of completions on their way. `count` requests more.
    void reserve(std::uint32_t udma, std::uint32_t count);
    /// False: the device is never told that anything was read, to make a queue overflow.
    void set_acknowledging(bool on) { acknowledging_ = on; }

    void destroy();
    /// Unread entries of a QP that is reset or destroyed must not reach its successor of the same number: the
    /// host takes the number out of them in the ring.
    void forget(std::uint32_t qpn);

    [[nodiscard]] std::uint32_t id(std::uint32_t udma) const { return rings_[udma].id; }
    [[nodiscard]] std::uint32_t capacity() const { return depth_ - 1; }
    [[nodiscard]] EventQueue& events(std::uint32_t udma) { return *rings_[udma].events; }
    [[nodiscard]] Event notification(std::uint32_t udma) const;
    [[nodiscard]] Event error_event(std::uint32_t udma) const;
    /// Hardware entries read so far; requests without entries of their own do not count.
    [[nodiscard]] std::uint64_t entries_read() const { return rings_[0].consumer + rings_[1].consumer; }

    /// The number of retired requests of QPs of `udma`, for reserve().
    void retired(std::uint32_t udma) { --rings_[udma].under_way; }

  private:
    struct HardwareQueue {
        std::uint32_t id = 0;
        Buffer ring;
        EventQueue* events = nullptr;
        std::uint32_t consumer = 0;
        std::uint32_t acknowledged = 0;
        std::uint16_t arms = 0;
        std::uint16_t solicited_arms = 0;
        /// Requests posted to QPs of this queue and not yet retired.
        std::uint32_t under_way = 0;
    };

    void create(std::uint32_t udma, std::uint32_t vector);
    /// The last word of the entry at `position` (also in `word`, host order), null while that entry is not
    /// written.
    [[nodiscard]] std::uint32_t* readable(const HardwareQueue& queue, std::uint32_t position,
                                          std::uint32_t& word) const;
    void ring(const HardwareQueue& queue, std::uint8_t ring, std::uint32_t index);
    void acknowledge(HardwareQueue& queue);
    bool poll_one(WorkCompletion& out);
    /// Digests hardware entries until one yields a completion. False when the ring is empty.
    bool read_entry(HardwareQueue& queue, WorkCompletion& out, bool& produced);
    void queue_for_retirement(QueuePair& qp);

    RdmaDriver& driver_;
    std::uint16_t dbid_;
    std::uint32_t depth_ = 0;
    bool acknowledging_ = true;
    std::array<HardwareQueue, 2> rings_;
    /// QPs whose send queue may have completions to report, and those being flushed.
    std::vector<std::uint32_t> retiring_;
};

}  // namespace ernic::guest_sim
