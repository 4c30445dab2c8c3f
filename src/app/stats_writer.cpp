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
    const Nanoseconds now = loop_.clock().now();
    if (!under_way_) {
        begin_ = now;
    }
    const Result<StatsFile::Progress> progress = file_.step();
    if (!progress) {
        log_.warn_limited(limiter_, "{}", progress.error().message);
    }
    under_way_ = progress && progress.value() == StatsFile::Progress::More;
    // Between two steps descriptors and work have their turn.
    timer_.arm(under_way_ ? now : begin_ + interval_);
}

}  // namespace ernic::app
