// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "base/bytes.hpp"
#include "base/log.hpp"
#include "mem/guest_memory.hpp"
#include "vfio_user/counters.hpp"
#include "vfio_user/dma_reader.hpp"
#include "vfio_user/log_limits.hpp"

namespace ernic::vfio_user {

/// Finds out that a VM's memory is not shared with us. With `share=off` QEMU passes a file descriptor all the
/// same, but its guest's pages are private copies: we would read zeros for ever, and nothing in the protocol
/// says so. So one page the guest has surely written is compared with what the client says is in it.
///
/// The guest goes on working meanwhile, so the page is looked at before the question and after the answer. An
/// answer that equals neither view, twice in a row, is a verdict. A refusing or silent client gives none.
/// Thread: device.
class MemoryCheck {
  public:
    MemoryCheck(DmaReader& reader, const mem::GuestMemory& memory, Counters& counters, LogLimits& limits,
                log::Logger logger);

    /// Starts a comparison of the page around `iova`; ignored while one is under way.
    void start(mem::Iova iova);

  private:
    static constexpr std::size_t kPage = 4096;
    static constexpr unsigned kTries = 2;
    using Page = std::array<std::byte, kPage>;

    void ask();
    void answer(std::optional<Bytes> theirs);

    DmaReader& reader_;
    const mem::GuestMemory& memory_;
    Counters& counters_;
    LogLimits& limits_;
    log::Logger logger_;
    bool active_ = false;
    unsigned mismatches_ = 0;
    mem::Iova page_;
    Page before_{};
};

}  // namespace ernic::vfio_user
