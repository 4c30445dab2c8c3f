// SPDX-License-Identifier: MIT
#include "app/stats_writer.hpp"

namespace ernic::app {

StatsWriter::StatsWriter(EventLoop& loop, StatsFile file, Nanoseconds interval, const log::Logger& log)
    : loop_(loop),
      file_(std::move(file)),
      interval_(interval),
      log_(log.named("stats")),
      timer_(loop, [this] { tick(); }) {
    if (interval_ != 0) {
        timer_.arm(loop_.clock().now() + interval_);
    }
}

void StatsWriter::tick() {
    if (const Result<bool> written = file_.write_if_changed(); !written) {
        log_.warn_limited(limiter_, "{}", written.error().message);
    }
    timer_.arm(loop_.clock().now() + interval_);
}

}  // namespace ernic::app
