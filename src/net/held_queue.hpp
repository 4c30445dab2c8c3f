// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "base/event_loop.hpp"
#include "net/held_traffic.hpp"

namespace ernic::net {

/// Traffic that waits for its time, in the order of that time. Bounded in bytes and pieces; without a wake-up
/// when nothing waits. Thread: device. Owns: what waits.
class HeldQueue {
  public:
    static constexpr std::size_t kMaxBytes = std::size_t{64} * 1024 * 1024;
    static constexpr std::size_t kMaxPieces = 16384;

    struct Entry {
        HeldTraffic traffic;
        /// The fault it waits for.
        std::uint32_t fault = 0;
        /// How many others have to overtake it before it may go ahead of its time; 0: it waits for its time.
        std::uint32_t overtakers = 0;
    };
    /// Takes what has waited long enough.
    using Release = std::function<void(Entry entry)>;

    HeldQueue(EventLoop& loop, Release release)
        : loop_(loop), release_(std::move(release)), timer_(loop, [this] { on_timer(); }) {}

    /// Whether so many bytes more would fit.
    [[nodiscard]] bool room_for(std::size_t bytes) const {
        return entries_.size() < kMaxPieces && bytes <= kMaxBytes - bytes_;
    }
    /// Precondition: room_for(entry.traffic.bytes()).
    void hold(Nanoseconds due, Entry entry);
    /// Another one has passed `fault`: those that waited for it alone are released.
    void overtaken(std::uint32_t fault);
    /// What waits for `fault` is due now.
    void hurry(std::uint32_t fault);
    /// Whatever it waits for is due now.
    void hurry_all();

    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    [[nodiscard]] std::size_t pieces() const { return entries_.size(); }

  private:
    using Entries = std::multimap<Nanoseconds, Entry>;

    void on_timer();
    void make_due(const std::function<bool(const Entry&)>& wanted);
    void release(Entries::iterator place);

    EventLoop& loop_;
    Release release_;
    Entries entries_;
    std::size_t bytes_ = 0;
    Timer timer_;
};

}  // namespace ernic::net
