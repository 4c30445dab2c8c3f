// SPDX-License-Identifier: MIT
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "base/event_loop.hpp"
#include "base/fd.hpp"

namespace ernic {

/// A thread for what takes too long for the device thread and is asked for seldom: jobs are done one after
/// the other, and the loop is told when each has ended. Thread: the loop's, jobs aside.
class BackgroundWorker {
  public:
    using Function = std::function<void()>;

    /// The thread calls `on_start` first of all, and has done so when this returns. `loop` must outlive this.
    BackgroundWorker(EventLoop& loop, const Function& on_start);
    /// Waits for the job that is being done; those behind it are not begun, and nobody hears of any.
    ~BackgroundWorker();
    BackgroundWorker(const BackgroundWorker&) = delete;
    BackgroundWorker& operator=(const BackgroundWorker&) = delete;

    /// `job` runs in the thread, then `done`, which may be empty, in the loop's. What both capture is
    /// destroyed in the loop's thread.
    void run(Function job, Function done);
    /// Jobs that have not ended.
    [[nodiscard]] std::size_t pending() const { return pending_; }

  private:
    struct Job {
        Function work;
        Function done;
    };
    void work(const Function& on_start);
    void collect();

    EventLoop& loop_;
    UniqueFd event_;
    std::size_t pending_ = 0;
    std::mutex mutex_;
    std::condition_variable wake_;
    std::condition_variable started_;
    bool running_ = false;
    bool ending_ = false;
    std::deque<Job> to_do_;
    std::deque<Job> ended_;
    std::thread thread_;
};

}  // namespace ernic
