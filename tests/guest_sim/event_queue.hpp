// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>

#include "guest_sim/card.hpp"
#include "guest_sim/wait.hpp"
#include "wire/ionic_rdma.hpp"

namespace ernic::guest_sim {

/// One event as the device reported it.
struct Event {
    wire::ionic_rdma::EventType type{};
    std::uint8_t code = 0;
    std::uint32_t object = 0;

    friend bool operator==(const Event&, const Event&) = default;
};

/// An RDMA event queue with its interrupt vector, serviced as `ionic_rdma` 7.2 does in ionic_poll_eq_isr: on
/// an interrupt read until empty, ten events at a time, then unmask.
class EventQueue {
  public:
    static constexpr std::uint8_t kDepthLog2 = 10;

    EventQueue(Card& card, std::uint32_t id, std::uint32_t vector);

    /// The next event: waits for interrupts, not for memory. Empty when none comes in time.
    std::optional<Event> wait(std::chrono::nanoseconds patience = kPatience);
    /// Waits for an event that equals `wanted`; others are dropped. False when it does not come in time.
    bool wait_for(const Event& wanted, std::chrono::nanoseconds patience = kPatience);
    /// True when no event comes within `quiet`.
    bool silent(std::chrono::milliseconds quiet = std::chrono::milliseconds(20));
    /// Throws away what has come until now.
    void discard();

    [[nodiscard]] std::uint32_t id() const { return id_; }
    /// Interrupts seen so far.
    [[nodiscard]] std::uint64_t interrupts() const { return interrupts_; }

  private:
    /// Services one interrupt if one has come.
    void service();
    bool read_one();

    Card& card_;
    std::uint32_t id_;
    std::uint32_t vector_;
    int eventfd_;
    Buffer ring_;
    std::uint32_t consumer_ = 0;
    std::uint64_t interrupts_ = 0;
    std::deque<Event> events_;
};

}  // namespace ernic::guest_sim
