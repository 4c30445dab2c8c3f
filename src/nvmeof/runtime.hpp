// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "base/background_worker.hpp"
#include "base/event_loop.hpp"
#include "base/log.hpp"
#include "nvmeof/buffer_pool.hpp"
#include "nvmeof/counters.hpp"
#include "nvmeof/file_engine.hpp"
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
    /// Of admin queues and of Connect: who watches and controls does not wait behind data of a slow file.
    BufferPool admin_buffers{kAdminStagingBytes, work};

    /// Called by threads that are started, first of all: they give up what they do not need.
    std::function<void()> on_thread_start;
    /// Made when first asked for, which must be before a sandbox is entered.
    FileEngine& files() {
        if (files_ == nullptr) {
            files_ = make_file_engine(loop, work, log, on_thread_start);
        }
        return *files_;
    }

    /// For what would hold up the device thread: looking at files that come, unmapping memory; and, so that
    /// no file is in its way, the arithmetic of authentication. Made when first asked for, which must be
    /// before a sandbox is entered.
    BackgroundWorker& background() { return made(background_); }
    BackgroundWorker& arithmetic() { return made(arithmetic_); }

    [[nodiscard]] bool has_background() const { return background_ != nullptr; }
    /// Jobs there that have not ended.
    [[nodiscard]] std::size_t in_background() const {
        return (background_ == nullptr ? 0 : background_->pending()) +
               (arithmetic_ == nullptr ? 0 : arithmetic_->pending());
    }

    /// One budgeted step of what is pending, some tens of microseconds; false when there was nothing. To be
    /// called by the loop's worker, after the transports' own steps.
    bool step() {
        if (work.empty()) {
            return false;
        }
        (void)work.step();
        return true;
    }

  private:
    BackgroundWorker& made(std::unique_ptr<BackgroundWorker>& worker) {
        if (worker == nullptr) {
            worker = std::make_unique<BackgroundWorker>(loop, on_thread_start);
        }
        return *worker;
    }

    /// Last: its threads use the buffers.
    std::unique_ptr<FileEngine> files_;
    std::unique_ptr<BackgroundWorker> background_;
    std::unique_ptr<BackgroundWorker> arithmetic_;
};

}  // namespace ernic::nvmeof
