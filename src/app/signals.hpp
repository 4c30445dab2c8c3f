// SPDX-License-Identifier: MIT
#pragma once

#include <functional>

#include "base/event_loop.hpp"
#include "base/fd.hpp"
#include "base/result.hpp"

namespace ernic::app {

/// Turns SIGTERM, SIGINT and SIGHUP into a call on the loop, and SIGPIPE into nothing (a client that hangs up
/// shows as EPIPE). No code ever runs in a signal handler. Owns: the signalfd. Thread: the loop's, and every
/// thread started later inherits the blocked signals.
class Signals {
  public:
    /// Fails: Io when the kernel refuses.
    static Result<Signals> watch(EventLoop& loop, std::function<void(int signal)> handler);

    Signals(Signals&&) = default;
    Signals& operator=(Signals&&) = delete;
    Signals(const Signals&) = delete;
    Signals& operator=(const Signals&) = delete;
    ~Signals();

  private:
    Signals(EventLoop& loop, UniqueFd fd) : loop_(&loop), fd_(std::move(fd)) {}

    EventLoop* loop_;
    UniqueFd fd_;
};

}  // namespace ernic::app
