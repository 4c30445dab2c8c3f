// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "ionic/interrupts.hpp"
#include "mem/guest_memory.hpp"
#include "mem/ring.hpp"
#include "metrics/registry.hpp"
#include "wire/ionic_rdma.hpp"

namespace ernic::ionic {

/// An RDMA event queue: a ring of 4-byte entries and one interrupt vector. The driver never says how far it
/// has read, but it always reads until the queue is empty before it unmasks the vector (`ionic_rdma` 7.2,
/// ionic_poll_eq_isr); entries beyond one ring between two such moments wait here. Thread: device.
class EventQueue {
  public:
    /// Where events that nobody will see are told of; shared by all event queues of a card.
    struct Losses {
        metrics::Counter events;
        log::Limiter limiter;
        log::Logger log;
    };

    /// All references must outlive the queue.
    EventQueue(mem::GuestMemory& memory, Interrupts& interrupts, mem::Ring ring, std::uint16_t vector,
               Losses& losses)
        : memory_(memory),
          interrupts_(interrupts),
          ring_(std::move(ring)),
          vector_(vector),
          losses_(losses) {}

    /// Makes one event visible, then raises the vector. `word` is made by wire::ionic_rdma::event_word.
    /// Returns its number, for unread(). Fails: an event beyond kParked waiting ones, or for a ring that is
    /// not in memory, is lost, counted and logged; nullopt.
    std::optional<std::uint64_t> post(std::uint32_t word);

    /// False when the driver has certainly read the event with this number. Numbers start at 1.
    [[nodiscard]] bool unread(std::uint64_t number) const { return number > read_; }

    /// Remembers a completion queue whose next event has to wait until its last one has been read: what a
    /// program makes of its own queues must not crowd out the events of others. Precondition: it does not
    /// wait here already, and its last event is unread, so that serviced() will come.
    void defer(std::uint32_t cq_id) { deferred_.push_back(cq_id); }
    void forget(std::uint32_t cq_id) {
        deferred_.erase(std::remove(deferred_.begin(), deferred_.end(), cq_id), deferred_.end());
    }
    [[nodiscard]] std::vector<std::uint32_t> take_deferred() { return std::exchange(deferred_, {}); }

    /// The driver has read everything posted before now (its vector was unmasked).
    void serviced();

    [[nodiscard]] std::uint16_t vector() const { return vector_; }

  private:
    static constexpr std::size_t kParked = 65536;
    /// False when the ring's memory is gone.
    bool write(std::uint32_t word);
    void lose(std::uint32_t word, const char* reason);

    mem::GuestMemory& memory_;
    Interrupts& interrupts_;
    mem::Ring ring_;
    std::uint16_t vector_;
    std::uint32_t producer_ = 0;
    std::uint32_t serviced_ = 0;
    std::deque<std::uint32_t> parked_;
    /// Events that have left `parked_` or never were in it, and how many of them the driver has read. Unlike
    /// `producer_` this counts a parked event that could not be written, so that numbers stay true.
    std::uint64_t passed_ = 0;
    std::uint64_t read_ = 0;
    std::vector<std::uint32_t> deferred_;
    Losses& losses_;
};

}  // namespace ernic::ionic
