// SPDX-License-Identifier: MIT
#pragma once

#include "base/event_loop.hpp"
#include "base/log.hpp"
#include "nvmeof/buffer_pool.hpp"
#include "nvmeof/counters.hpp"
#include "nvmeof/limits.hpp"
#include "nvmeof/work_queue.hpp"

namespace ernic::nvmeof {

/// What all targets of a process share. Built in app, outlives every target. Thread: device.
struct Runtime {
    Runtime(EventLoop& event_loop, log::Logger logger) : loop(event_loop), log(std::move(logger)) {}

    EventLoop& loop;
    log::Logger log;
    Counters counters;
    WorkQueue work;
    BufferPool buffers{kStagingBytes, work};

    /// One budgeted step of what is pending, some tens of microseconds; true while there is more. To be
    /// called by the loop's worker.
    bool step() { return work.step(); }
};

}  // namespace ernic::nvmeof
