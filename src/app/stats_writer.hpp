// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "app/stats_file.hpp"
#include "base/event_loop.hpp"
#include "base/log.hpp"

namespace ernic::app {

/// Keeps a statistics file fresh: rewrites it every `interval` when a number changed (0: never by itself),
/// one step per round of the loop. Owns: the file and its timer. Thread: the loop's. Fails: never; a write
/// that fails is logged and tried again.
class StatsWriter {
  public:
    StatsWriter(EventLoop& loop, StatsFile file, Nanoseconds interval, const log::Logger& log);

    /// The last write of a run, at once. Fails: Io with one sentence.
    [[nodiscard]] Status finish() { return file_.write(); }

    [[nodiscard]] const std::string& directory() const { return file_.directory(); }

  private:
    /// One step of a rewrite.
    void tick();

    EventLoop& loop_;
    StatsFile file_;
    Nanoseconds interval_;
    Nanoseconds begin_ = 0;
    bool under_way_ = false;
    log::Logger log_;
    log::Limiter limiter_;
    Timer timer_;
};

}  // namespace ernic::app
