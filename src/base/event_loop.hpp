// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "base/result.hpp"

namespace ernic {

class EventLoop;

/// A one-shot deadline on an EventLoop. Destroying it cancels it. Thread: the loop's.
class Timer {
  public:
    Timer(EventLoop& loop, std::function<void()> handler) : loop_(loop), handler_(std::move(handler)) {}
    ~Timer() { cancel(); }
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;

    /// Fires once when the loop's clock reaches `deadline`; replaces an earlier deadline.
    void arm(Nanoseconds deadline);
    void cancel();
    [[nodiscard]] bool armed() const { return armed_; }
    [[nodiscard]] Nanoseconds deadline() const { return deadline_; }

  private:
    friend class EventLoop;
    EventLoop& loop_;
    std::function<void()> handler_;
    bool armed_ = false;
    Nanoseconds deadline_ = 0;
    std::multimap<Nanoseconds, Timer*>::iterator place_;
};

/// epoll loop of the device thread: file descriptors, timers, budgeted work, and an adaptive busy-poll
/// window. It sleeps without any wake-up when there is nothing to do. Thread: one; `stop` may come from a
/// handler.
class EventLoop {
  public:
    using FdHandler = std::function<void(std::uint32_t events)>;

    explicit EventLoop(const Clock& clock);
    ~EventLoop();
    EventLoop(const EventLoop&) = delete;
    EventLoop& operator=(const EventLoop&) = delete;

    /// Whether this kernel has what the loop needs; to be asked once before run(), which would spin without
    /// it. Fails: Unsupported or Io with one sentence.
    [[nodiscard]] Status usable() const;

    /// Watches `fd` (EPOLLIN etc.). The caller keeps owning it and must remove it before closing it.
    void add(int fd, std::uint32_t events, FdHandler handler);
    void modify(int fd, std::uint32_t events);
    void remove(int fd);

    /// `worker` does one budgeted step (some tens of microseconds) and returns true while it has more to do.
    /// It is called again, for about 100 µs, before descriptors and timers have their turn.
    void set_worker(std::function<bool()> worker) { worker_ = std::move(worker); }

    /// While the busy-poll window is open, `poller` is called instead of sleeping; true means it made
    /// progress.
    void set_poller(std::function<bool()> poller) { poller_ = std::move(poller); }

    /// How long the loop spins after the last progress before it sleeps; 0 never spins.
    void set_busy_poll(Nanoseconds window) { busy_poll_ = window; }

    /// Runs until `stop`.
    void run();
    /// One round: poll (blocking only if `may_block` and nothing is runnable), handlers, timers, worker.
    void run_once(bool may_block);
    void stop() { stopped_ = true; }

    [[nodiscard]] const Clock& clock() const { return clock_; }

  private:
    friend class Timer;
    /// Milliseconds are too coarse for RNR timers of 10 µs, so the wait is in nanoseconds; -1 = for ever.
    [[nodiscard]] std::int64_t wait_time() const;
    int wait(std::int64_t nanoseconds);
    void run_timers();
    void spin();
    /// Runs the worker until it has nothing to do or has had its time; true while there is more.
    bool work();

    const Clock& clock_;
    UniqueFd epoll_;
    std::unordered_map<int, std::shared_ptr<FdHandler>> handlers_;
    std::multimap<Nanoseconds, Timer*> timers_;
    std::function<bool()> worker_;
    std::function<bool()> poller_;
    Nanoseconds busy_poll_ = 0;
    /// The busy-poll window is open, though the loop may be looking at something else meanwhile.
    bool window_open_ = false;
    Nanoseconds last_progress_ = 0;
    bool work_left_ = false;
    bool stopped_ = false;
};

}  // namespace ernic
