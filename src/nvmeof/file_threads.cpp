// SPDX-License-Identifier: MIT
#include "nvmeof/file_threads.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

#include "base/blocked_signals.hpp"

namespace ernic::nvmeof {
namespace {

std::int64_t call_now(const FileCall& call) {
    std::array<iovec, FileCall::kPieces> pieces;
    int count = 0;
    for (const mem::SpanList::Piece& piece : call.memory) {
        pieces[static_cast<std::size_t>(count++)] = {piece.data, piece.size};
    }
    const auto offset = static_cast<off_t>(call.offset);
    std::int64_t result = 0;
    switch (call.kind) {
        case FileCall::Kind::Read:
            result = preadv(call.fd, pieces.data(), count, offset);
            break;
        case FileCall::Kind::Write:
            result = pwritev(call.fd, pieces.data(), count, offset);
            break;
        case FileCall::Kind::Allocate:
            result = fallocate(call.fd, call.mode, offset, static_cast<off_t>(call.length));
            break;
        case FileCall::Kind::Synchronize:
            result = call.mode != 0 ? fsync(call.fd) : fdatasync(call.fd);
            break;
    }
    return result < 0 ? -errno : result;
}

}  // namespace

FileThreads::FileThreads(EventLoop& loop, const std::function<void()>& on_start)
    : loop_(loop), event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    for (std::vector<std::size_t>* list : {&free_, &done_, &collected_}) {
        list->reserve(kDepth);
    }
    for (std::size_t i = 0; i < kDepth; ++i) {
        free_.push_back(i);
    }
    loop_.add(event_.get(), EPOLLIN, [this](std::uint32_t) { collect(); });
    {
        const BlockedSignals blocked;
        for (std::size_t i = 0; i < kThreads; ++i) {
            threads_.emplace_back([this, on_start] { work(on_start); });
        }
    }
    std::unique_lock lock(mutex_);
    started_.wait(lock, [this] { return running_ == kThreads; });
}

FileThreads::~FileThreads() {
    {
        const std::lock_guard lock(mutex_);
        ending_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) {
        thread.join();
    }
    loop_.remove(event_.get());
}

void FileThreads::work(const std::function<void()>& on_start) {
    if (on_start) {
        on_start();
    }
    std::unique_lock lock(mutex_);
    ++running_;
    started_.notify_all();
    while (true) {
        wake_.wait(lock, [this] { return ending_ || to_do_count_ != 0; });
        if (to_do_count_ == 0) {
            return;
        }
        const std::size_t index = to_do_[first_to_do_];
        first_to_do_ = (first_to_do_ + 1) % kDepth;
        --to_do_count_;
        lock.unlock();
        const std::int64_t result = call_now(jobs_[index].call);
        lock.lock();
        jobs_[index].result = result;
        done_.push_back(index);
        const std::uint64_t one = 1;
        (void)::write(event_.get(), &one, sizeof one);
    }
}

void FileThreads::submit(const FileCall& call, StoreOperation& operation) {
    const std::size_t index = free_.back();
    free_.pop_back();
    jobs_[index].call = call;
    jobs_[index].operation = &operation;
    {
        const std::lock_guard lock(mutex_);
        to_do_[(first_to_do_ + to_do_count_++) % kDepth] = index;
    }
    wake_.notify_one();
}

void FileThreads::collect() {
    std::uint64_t count = 0;
    (void)::read(event_.get(), &count, sizeof count);
    {
        const std::lock_guard lock(mutex_);
        collected_.swap(done_);
    }
    for (const std::size_t index : collected_) {
        StoreOperation& operation = *jobs_[index].operation;
        const std::int64_t result = jobs_[index].result;
        free_.push_back(index);
        completed(operation, result);
    }
    collected_.clear();
}

}  // namespace ernic::nvmeof
