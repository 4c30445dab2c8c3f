// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include "base/fd.hpp"
#include "base/result.hpp"

namespace ernic::vfio_user {

/// Survives a client that shrinks a memory file it has handed over: touching the missing pages is a SIGBUS.
/// Inside a watched mapping the handler replaces the whole mapping with zero pages of our own, remembers
/// that, and the access goes on; the event loop then drops the client. Anywhere else a SIGBUS ends the
/// process as ever.
///
/// Signal dispositions belong to the process, so what is behind this is global, and one object at a time may
/// exist. The handler runs on the thread that touched the memory, in the middle of the access, and only reads
/// a fixed table and calls mmap and write.
class BusErrors {
  public:
    /// Takes over SIGBUS and gives it back when destroyed. Fails: Io.
    static Result<BusErrors> watch();
    BusErrors(BusErrors&&) noexcept = default;
    BusErrors& operator=(BusErrors&&) = delete;
    BusErrors(const BusErrors&) = delete;
    BusErrors& operator=(const BusErrors&) = delete;
    ~BusErrors();

    /// Readable when a mapping was replaced; see take(). -1 after a move.
    [[nodiscard]] int fd() const { return event_.get(); }
    /// Whether that happened since the last call.
    [[nodiscard]] bool take() const;

    /// A mapping under watch, from construction to destruction; it must be unmapped after that. There may be
    /// 4096.
    class Watched {
      public:
        Watched(std::byte* data, std::size_t size);
        ~Watched();
        Watched(const Watched&) = delete;
        Watched& operator=(const Watched&) = delete;
        /// The mapping no longer shows its file.
        [[nodiscard]] bool replaced() const;

      private:
        std::size_t slot_;
    };

  private:
    explicit BusErrors(UniqueFd event) : event_(std::move(event)) {}

    UniqueFd event_;
};

}  // namespace ernic::vfio_user
