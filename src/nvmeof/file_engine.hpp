// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/event_loop.hpp"
#include "base/log.hpp"
#include "nvmeof/store.hpp"

namespace ernic::nvmeof {

/// One system call's worth of work on a file, as a way to do it sees it.
struct FileCall {
    enum class Kind : std::uint8_t { Read, Write, Allocate, Synchronize };
    static constexpr std::size_t kPieces = 128;

    Kind kind = Kind::Read;
    int fd = -1;
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    /// Of fallocate(2); of synchronising: not 0 when attributes count, too (fsync, not fdatasync).
    int mode = 0;
    /// Of a read or write.
    mem::SpanList memory;
    /// The file is read and written through the page cache, which copies.
    bool cached = false;
};

/// Does what file stores are asked for without ever blocking the device thread: at most kDepth operations at
/// once, the others wait in the order in which they came. Goes on after short reads and writes, and writes
/// zeroes where a file system has no other way. How the calls are made is a derived class's business.
/// Thread: device.
class FileEngine {
  public:
    static constexpr unsigned kDepth = 256;

    virtual ~FileEngine() = default;
    FileEngine(const FileEngine&) = delete;
    FileEngine& operator=(const FileEngine&) = delete;

    /// `operation.store()` is a FileStore.
    void start(StoreOperation& operation);
    /// False: it is under way, and done() follows.
    bool cancel(StoreOperation& operation);
    /// Operations that are under way.
    [[nodiscard]] unsigned in_flight() const { return in_flight_; }
    /// "io_uring" or "threads".
    [[nodiscard]] virtual const char* name() const = 0;

  protected:
    FileEngine() = default;
    /// Begins `call`; `operation` names it in completed(), never from inside this. The call's memory list
    /// need not stay.
    virtual void submit(const FileCall& call, StoreOperation& operation) = 0;
    /// A call has returned: bytes or 0, or a negative errno.
    void completed(StoreOperation& operation, std::int64_t result);

  private:
    void issue(StoreOperation& operation);
    /// False: there is nothing else to try.
    bool try_otherwise(StoreOperation& operation, int error);

    unsigned in_flight_ = 0;
    WorkQueue waiting_;
};

/// io_uring where the kernel has it, otherwise a few threads, which call `on_thread_start` first; says in one
/// line which of them and why. To be made before a sandbox is entered.
std::unique_ptr<FileEngine> make_file_engine(EventLoop& loop, WorkQueue& work, const log::Logger& log,
                                             const std::function<void()>& on_thread_start);

}  // namespace ernic::nvmeof
