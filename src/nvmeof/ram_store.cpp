// SPDX-License-Identifier: MIT
#include "nvmeof/ram_store.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>

#include "nvmeof/limits.hpp"

namespace ernic::nvmeof {
namespace {

constexpr std::uint64_t kPage = 4096;
/// Giving back a page costs more than a tenth of filling it, so that steps of this are as long as others.
constexpr std::uint64_t kDiscardBytes = 1U << 20U;

constexpr std::uint64_t up_to_page(std::uint64_t offset) {
    return (offset + kPage - 1) / kPage * kPage;
}

}  // namespace

Result<std::unique_ptr<RamStore>> RamStore::make(std::uint64_t size, WorkQueue& work) {
    const auto failed = [size] {
        return Error{Errc::NoSpace,
                     fmt::format("no memory for a namespace of {} bytes ({})", size, std::strerror(errno))};
    };
    // Address space costs nothing, and commands may point into it while it grows, so that it must not move.
    std::uint64_t reserved = size > UINT64_MAX / kGrowth ? size : size * kGrowth;
    void* memory = mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        reserved = size;
        memory = mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    }
    if (memory == MAP_FAILED) {
        return failed();
    }
    std::unique_ptr<RamStore> store(new RamStore(static_cast<std::byte*>(memory), reserved, 0, work));
    if (!store->resize(size)) {
        return failed();
    }
    return store;
}

RamStore::~RamStore() {
    if (unmapper_) {
        unmapper_(memory_, reserved_);
    } else {
        munmap(memory_, reserved_);
    }
}

Status RamStore::resize(std::uint64_t size) {
    if (size > reserved_) {
        return Error{Errc::NoSpace,
                     fmt::format("a namespace in memory grows to {} times its first size at most", kGrowth)};
    }
    if (size > size_) {
        tail_.give_back_below(size);
        if (mprotect(memory_, size, PROT_READ | PROT_WRITE) != 0) {
            return Error{Errc::NoSpace,
                         fmt::format("no memory for {} bytes ({})", size, std::strerror(errno))};
        }
        // A wish, which a kernel without huge pages refuses.
        (void)madvise(memory_, size, MADV_HUGEPAGE);
    } else {
        // Commands that were checked against the old size may still go there: it stays mapped.
        const std::uint64_t end = up_to_page(size);
        std::memset(memory_ + size, 0, std::min(end, size_) - size);
        if (end < size_) {
            tail_.add(end, size_);
        }
    }
    size_ = size;
    return Done{};
}

void RamStore::Tail::add(std::uint64_t begin, std::uint64_t end) {
    end_ = std::max(begin_ == end_ ? 0 : end_, up_to_page(end));
    begin_ = begin;
    if (!queued()) {
        store_.work_.add(*this);
    }
}

void RamStore::Tail::give_back(std::uint64_t begin, std::uint64_t end) {
    [[maybe_unused]] const int given = madvise(store_.memory_ + begin, end - begin, MADV_DONTNEED);
    assert(given == 0);
}

void RamStore::Tail::run() {
    const std::uint64_t begin = end_ - std::min(end_ - begin_, kDiscardBytes);
    give_back(begin, end_);
    end_ = begin;
    if (begin_ != end_) {
        store_.work_.add(*this);
    }
}

void RamStore::Tail::give_back_below(std::uint64_t size) {
    const std::uint64_t end = std::min(end_, up_to_page(size));
    if (begin_ < end) {
        give_back(begin_, end);
        begin_ = end;
    }
    if (begin_ == end_) {
        leave();
    }
}

void RamStore::begin(StoreOperation& operation) {
    work_.add(operation);
}

bool RamStore::cancel(StoreOperation& operation) {
    operation.leave();
    return true;
}

void RamStore::zero(std::uint64_t offset, std::uint64_t length) {
    const std::uint64_t first_page = up_to_page(offset);
    const std::uint64_t last_page = (offset + length) / kPage * kPage;
    if (first_page >= last_page ||
        madvise(memory_ + first_page, last_page - first_page, MADV_DONTNEED) != 0) {
        std::memset(memory_ + offset, 0, length);
        return;
    }
    std::memset(memory_ + offset, 0, first_page - offset);
    std::memset(memory_ + last_page, 0, offset + length - last_page);
}

void RamStore::advance(StoreOperation& operation) {
    const bool zeroes =
        operation.kind == StoreOperation::Kind::Zero || operation.kind == StoreOperation::Kind::Deallocate;
    const std::uint64_t size = std::min<std::uint64_t>(operation.length, zeroes ? kDiscardBytes : kStepBytes);
    if (zeroes) {
        zero(operation.offset, size);
    } else if (operation.kind == StoreOperation::Kind::Read) {
        operation.buffer->put(operation.buffer_offset, Bytes(memory_ + operation.offset, size));
    } else if (operation.kind == StoreOperation::Kind::Write) {
        operation.buffer->get(operation.buffer_offset, MutableBytes(memory_ + operation.offset, size));
    } else {
        operation.length = size;
    }
    operation.offset += size;
    operation.buffer_offset += size;
    operation.length -= size;
    if (operation.length != 0) {
        work_.add(operation);
    } else {
        operation.done(0);
    }
}

}  // namespace ernic::nvmeof
