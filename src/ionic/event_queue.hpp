// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <deque>

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
    /// Fails: an event beyond kParked waiting ones, or for a ring that is not in memory, is lost, counted and
    /// logged.
    void post(std::uint32_t word);

    /// The driver has read everything posted before now (its vector was unmasked).
    void serviced();

    [[nodiscard]] std::uint16_t vector() const { return vector_; }

  private:
    static constexpr std::size_t kParked = 65536;
    void write(std::uint32_t word);
    void lose(std::uint32_t word, const char* reason);

    mem::GuestMemory& memory_;
    Interrupts& interrupts_;
    mem::Ring ring_;
    std::uint16_t vector_;
    std::uint32_t producer_ = 0;
    std::uint32_t serviced_ = 0;
    std::deque<std::uint32_t> parked_;
    Losses& losses_;
};

}  // namespace ernic::ionic
