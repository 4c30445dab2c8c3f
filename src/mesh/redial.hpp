// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>

#include "base/event_loop.hpp"
#include "mesh/introduction.hpp"
#include "mesh/limits.hpp"

namespace ernic::mesh {

/// Attempts to reach one node, again and again with growing pauses. Thread: device.
class Redial {
  public:
    /// `attempt` makes one attempt; what comes of it is told by set() and later().
    Redial(EventLoop& loop, std::function<void()> attempt) : loop_(loop), timer_(loop, std::move(attempt)) {}

    /// The attempt under way; null: none.
    [[nodiscard]] const Introduction* current() const { return current_; }
    void set(const Introduction* current) { current_ = current; }
    [[nodiscard]] bool waiting() const { return timer_.armed(); }

    /// Attempts in the next round of the loop, with the shortest pauses behind it.
    void soon() {
        pause_ = 0;
        timer_.arm(loop_.clock().now());
    }
    /// Attempts after a pause, longer than the last one; `spread` (any number) keeps many nodes from doing so
    /// at the same time.
    void later(std::uint32_t spread) {
        pause_ = pause_ == 0 ? kFirstRetry : std::min(2 * pause_, kLastRetry);
        timer_.arm(loop_.clock().now() + pause_ / 2 + pause_ / 2 * (spread % 64) / 64);
    }
    void stop() {
        timer_.cancel();
        current_ = nullptr;
    }

  private:
    EventLoop& loop_;
    Timer timer_;
    Nanoseconds pause_ = 0;
    const Introduction* current_ = nullptr;
};

}  // namespace ernic::mesh
