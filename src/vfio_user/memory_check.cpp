// SPDX-License-Identifier: MIT
#include "vfio_user/memory_check.hpp"

#include <algorithm>
#include <utility>

namespace ernic::vfio_user {

MemoryCheck::MemoryCheck(DmaReader& reader, const mem::GuestMemory& memory, Counters& counters,
                         LogLimits& limits, log::Logger logger)
    : reader_(reader), memory_(memory), counters_(counters), limits_(limits), logger_(std::move(logger)) {
}

void MemoryCheck::start(mem::Iova iova) {
    if (active_) {
        return;
    }
    page_ = mem::Iova{iova.value & ~std::uint64_t{kPage - 1}};
    mismatches_ = 0;
    ask();
}

void MemoryCheck::ask() {
    active_ = false;
    if (!memory_.read(page_, before_)) {
        logger_.warn_limited(limits_.memory_unreachable,
                             "guest memory at {:#x} cannot be reached; give the VM shared memory "
                             "(-object memory-backend-memfd,share=on) if this is RAM",
                             page_.value);
        return;
    }
    active_ = reader_.read(page_, kPage, [this](std::optional<Bytes> theirs) { answer(theirs); });
}

void MemoryCheck::answer(std::optional<Bytes> theirs) {
    active_ = false;
    Page after{};
    if (!theirs || !memory_.read(page_, after)) {
        logger_.debug("memory check at {:#x}: no verdict", page_.value);
        return;
    }
    if (std::ranges::equal(*theirs, before_) || std::ranges::equal(*theirs, after)) {
        counters_.memory_checks.add();
        logger_.debug("memory check at {:#x}: shared", page_.value);
        return;
    }
    if (++mismatches_ < kTries) {
        ask();
        return;
    }
    counters_.memory_checks.add();
    counters_.memory_mismatches.add();
    logger_.error_limited(
        limits_.memory_not_shared,
        "guest memory at {:#x} differs from what the VM sees: the VM's memory backend lacks share=on, so the "
        "device cannot work",
        page_.value);
}

}  // namespace ernic::vfio_user
