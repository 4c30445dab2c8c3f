// SPDX-License-Identifier: MIT
#include "base/background_worker.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

#include "base/blocked_signals.hpp"

namespace ernic {

BackgroundWorker::BackgroundWorker(EventLoop& loop, const Function& on_start)
    : loop_(loop), event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    loop_.add(event_.get(), EPOLLIN, [this](std::uint32_t) { collect(); });
    {
        const BlockedSignals blocked;
        thread_ = std::thread([this, on_start] { work(on_start); });
    }
    std::unique_lock lock(mutex_);
    started_.wait(lock, [this] { return running_; });
}

BackgroundWorker::~BackgroundWorker() {
    {
        const std::lock_guard lock(mutex_);
        ending_ = true;
    }
    wake_.notify_all();
    thread_.join();
    loop_.remove(event_.get());
}

void BackgroundWorker::work(const Function& on_start) {
    if (on_start) {
        on_start();
    }
    std::unique_lock lock(mutex_);
    running_ = true;
    started_.notify_all();
    while (true) {
        wake_.wait(lock, [this] { return ending_ || !to_do_.empty(); });
        if (ending_) {
            return;
        }
        Job job = std::move(to_do_.front());
        to_do_.pop_front();
        lock.unlock();
        job.work();
        lock.lock();
        ended_.push_back(std::move(job));
        const std::uint64_t one = 1;
        (void)::write(event_.get(), &one, sizeof one);
    }
}

void BackgroundWorker::run(Function job, Function done) {
    ++pending_;
    {
        const std::lock_guard lock(mutex_);
        to_do_.push_back({std::move(job), std::move(done)});
    }
    wake_.notify_one();
}

void BackgroundWorker::collect() {
    std::uint64_t count = 0;
    (void)::read(event_.get(), &count, sizeof count);
    std::deque<Job> ended;
    {
        const std::lock_guard lock(mutex_);
        ended.swap(ended_);
    }
    for (const Job& job : ended) {
        --pending_;
        if (job.done) {
            job.done();
        }
    }
}

}  // namespace ernic
