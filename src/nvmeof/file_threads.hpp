// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/event_loop.hpp"
#include "base/fd.hpp"
#include "nvmeof/file_engine.hpp"

namespace ernic::nvmeof {

/// File operations by a few threads that block in the device thread's place; for kernels without io_uring.
/// Thread: device.
class FileThreads final : public FileEngine {
  public:
    static constexpr std::size_t kThreads = 4;

    /// The threads have called `on_start` when this returns.
    FileThreads(EventLoop& loop, const std::function<void()>& on_start);
    ~FileThreads() override;

    [[nodiscard]] const char* name() const override { return "threads"; }

  protected:
    void submit(const FileCall& call, StoreOperation& operation) override;

  private:
    struct Job {
        FileCall call;
        StoreOperation* operation = nullptr;
        std::int64_t result = 0;
    };
    void work(const std::function<void()>& on_start);
    void collect();

    EventLoop& loop_;
    UniqueFd event_;
    std::mutex mutex_;
    std::condition_variable wake_;
    std::condition_variable started_;
    std::size_t running_ = 0;
    bool ending_ = false;
    std::vector<Job> jobs_ = std::vector<Job>(kDepth);
    /// Indices of jobs. None of the lists ever holds more than kDepth.
    std::vector<std::size_t> free_;
    /// A ring.
    std::array<std::size_t, kDepth> to_do_{};
    std::size_t first_to_do_ = 0;
    std::size_t to_do_count_ = 0;
    std::vector<std::size_t> done_;
    std::vector<std::size_t> collected_;
    std::vector<std::thread> threads_;
};

}  // namespace ernic::nvmeof
