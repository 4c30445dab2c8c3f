// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "base/clock.hpp"
#include "base/event_loop.hpp"
#include "nvmeof/command.hpp"
#include "nvmeof/runtime.hpp"
#include "nvmeof/work_queue.hpp"

namespace ernic::nvmeof {

/// A slower device than there is: every command waits for its latency, and commands begin no faster than so
/// many in a second. Without commands no timer is armed. Thread: device.
class Pace {
  public:
    /// 0: none. `iops` commands in a second at most.
    Pace(Runtime& runtime, Nanoseconds latency, std::uint64_t iops);

    [[nodiscard]] bool active() const { return latency_ != 0 || interval_ != 0; }
    /// `then` is called when the command's time has come.
    void delay(Command& command, Command::Step then);

  private:
    void release();

    Runtime& runtime_;
    Nanoseconds latency_;
    /// Between the beginnings of two commands.
    Nanoseconds interval_;
    /// When the next command may begin.
    Nanoseconds next_ = 0;
    /// In the order of their times.
    WorkQueue waiting_;
    Timer timer_;
};

}  // namespace ernic::nvmeof
