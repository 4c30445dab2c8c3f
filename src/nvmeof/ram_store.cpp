// SPDX-License-Identifier: MIT
#include "nvmeof/ram_store.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "nvmeof/limits.hpp"

namespace ernic::nvmeof {
namespace {

constexpr std::uint64_t kPage = 4096;
/// Giving back a page costs more than a tenth of filling it, so that steps of this are as long as others.
constexpr std::uint64_t kDiscardBytes = 1U << 20U;

}  // namespace

Result<std::unique_ptr<RamStore>> RamStore::make(std::uint64_t size, WorkQueue& work) {
    void* memory =
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        return Error{Errc::NoSpace,
                     fmt::format("no memory for a namespace of {} bytes ({})", size, std::strerror(errno))};
    }
    // A wish, which a kernel without huge pages refuses.
    (void)madvise(memory, size, MADV_HUGEPAGE);
    return std::unique_ptr<RamStore>(new RamStore(static_cast<std::byte*>(memory), size, work));
}

RamStore::~RamStore() {
    munmap(memory_, size_);
}

void RamStore::begin(StoreOperation& operation) {
    work_.add(operation);
}

bool RamStore::cancel(StoreOperation& operation) {
    operation.leave();
    return true;
}

void RamStore::zero(std::uint64_t offset, std::uint64_t length) {
    const std::uint64_t first_page = (offset + kPage - 1) / kPage * kPage;
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
