// SPDX-License-Identifier: MIT
#include "nvmeof/pace.hpp"

#include <algorithm>

namespace ernic::nvmeof {

Pace::Pace(Runtime& runtime, Nanoseconds latency, std::uint64_t iops)
    : runtime_(runtime),
      latency_(latency),
      interval_(iops == 0 ? 0 : std::max<Nanoseconds>(1'000'000'000U / iops, 1)),
      timer_(runtime.loop, [this] { release(); }) {
}

void Pace::delay(Command& command, Command::Step then) {
    const Nanoseconds begin = std::max(runtime_.loop.clock().now(), next_);
    next_ = begin + interval_;
    command.due = begin + latency_;
    const bool first = waiting_.empty();
    command.wait_in(waiting_, then);
    if (first) {
        timer_.arm(command.due);
    }
}

void Pace::release() {
    const Nanoseconds now = runtime_.loop.clock().now();
    while (!waiting_.empty()) {
        auto& command = static_cast<Command&>(waiting_.front());
        if (command.due > now) {
            timer_.arm(command.due);
            return;
        }
        waiting_.pop();
        runtime_.work.add(command);
    }
}

}  // namespace ernic::nvmeof
