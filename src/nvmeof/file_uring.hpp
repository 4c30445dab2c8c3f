// SPDX-License-Identifier: MIT
#pragma once

#include <liburing.h>
#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/event_loop.hpp"
#include "base/fd.hpp"
#include "base/result.hpp"
#include "nvmeof/file_engine.hpp"

namespace ernic::nvmeof {

/// File operations through io_uring. The ring can do what stores need and nothing else, so that it is no way
/// round a sandbox. Thread: device.
class FileUring final : public FileEngine, private Work {
  public:
    /// `loop` hears of completions; many at once are handled in pieces, by `work`. Fails: one sentence, the
    /// kernel has no io_uring or does not allow it.
    static Result<std::unique_ptr<FileUring>> make(EventLoop& loop, WorkQueue& work);
    ~FileUring() override;

    [[nodiscard]] const char* name() const override { return "io_uring"; }

  protected:
    void submit(const FileCall& call, StoreOperation& operation) override;

  private:
    FileUring(EventLoop& loop, WorkQueue& work) : loop_(loop), work_(work) {}
    Status open();
    Status restrict_to_files();
    /// Tells the kernel of what submit() has prepared.
    void hand_over();
    void reap();
    void run() override;

    EventLoop& loop_;
    WorkQueue& work_;
    /// What the kernel has of one operation; its list of pieces must stay until it has been submitted.
    struct Slot {
        StoreOperation* operation = nullptr;
        std::array<iovec, FileCall::kPieces> pieces;
    };
    std::vector<Slot> slots_ = std::vector<Slot>(kDepth);
    std::vector<std::uint32_t> free_;
    io_uring ring_{};
    bool open_ = false;
    UniqueFd event_;
};

}  // namespace ernic::nvmeof
