// SPDX-License-Identifier: MIT
#include "mem/ring.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

namespace ernic::mem {

PageList PageList::contiguous(Iova base) {
    PageList list;
    list.base_ = base;
    return list;
}

std::optional<PageList::Extent> PageList::at(std::uint64_t offset) const {
    if (!is_table()) {
        const auto iova = base_.plus(offset);
        if (!iova) {
            return std::nullopt;
        }
        // Up to the end of the address space, which no 64-bit number holds when the block starts at 0. At
        // least one byte in any case: an empty extent would let append() go on for ever.
        return Extent{*iova, iova->value == 0 ? UINT64_MAX : 0 - iova->value};
    }
    const std::uint64_t page = offset >> page_size_log2_;
    if (page >= pages_.size()) {
        return std::nullopt;
    }
    const std::uint64_t inside = offset & (page_size() - 1);
    const auto iova = Iova{pages_[page].get()}.plus(inside);
    if (!iova) {
        return std::nullopt;
    }
    return Extent{*iova, page_size() - inside};
}

bool PageList::append(const GuestMemory& memory, std::uint64_t offset, std::uint64_t size, Access access,
                      SpanList& out) const {
    while (size != 0) {
        const auto extent = at(offset);
        if (!extent) {
            return false;
        }
        const std::uint64_t piece = std::min(size, extent->contiguous);
        if (!memory.append(extent->iova, piece, access, out)) {
            return false;
        }
        offset += piece;
        size -= piece;
    }
    return true;
}

std::optional<Ring> Ring::make(PageList pages, std::uint8_t depth_log2, std::uint8_t stride_log2) {
    if (!possible(depth_log2, stride_log2)) {
        return std::nullopt;
    }
    Ring ring;
    ring.depth_ = 1U << depth_log2;
    ring.stride_log2_ = stride_log2;
    ring.stride_ = std::size_t{1} << stride_log2;
    if (pages.is_table() && pages.page_size() < ring.stride_) {
        return std::nullopt;
    }
    ring.pages_ = std::move(pages);
    return ring;
}

std::byte* Ring::host(const GuestMemory& memory, std::uint32_t index, std::size_t size, Access access) const {
    const auto extent = pages_.at(std::uint64_t{index & mask()} << stride_log2_);
    return extent && size <= extent->contiguous ? memory.at(extent->iova, size, access) : nullptr;
}

bool Ring::read(const GuestMemory& memory, std::uint32_t index, MutableBytes into) const {
    const std::byte* entry = host(memory, index, stride_, Access::Read);
    if (entry == nullptr) {
        return false;
    }
    std::memcpy(into.data(), entry, std::min(into.size(), stride_));
    // Rings are read in order, and another core wrote the entries: fetching the next one takes a cache miss
    // that can pass while this one is executed. A prefetch never faults, so the end of the ring needs no
    // care.
    __builtin_prefetch(entry + stride_);
    return true;
}

bool Ring::read_run(const GuestMemory& memory, std::uint32_t index, MutableBytes into) const {
    const std::byte* first = host(memory, index, into.size(), Access::Read);
    if (first == nullptr) {
        return false;
    }
    std::memcpy(into.data(), first, into.size());
    return true;
}

bool Ring::publish(const GuestMemory& memory, std::uint32_t index, Bytes entry) const {
    std::byte* target = host(memory, index, stride_, Access::Write);
    if (target == nullptr || entry.size() != stride_) {
        return false;
    }
    const std::size_t body = entry.size() - sizeof(std::uint32_t);
    std::memcpy(target, entry.data(), body);
    std::uint32_t last = 0;
    std::memcpy(&last, entry.data() + body, sizeof(last));
    if (reinterpret_cast<std::uintptr_t>(target + body) % alignof(std::uint32_t) == 0) {
        std::atomic_ref<std::uint32_t>(*reinterpret_cast<std::uint32_t*>(target + body))
            .store(last, std::memory_order_release);
    } else {
        // A guest that misaligns its ring gets its data, but no ordering to rely on.
        std::memcpy(target + body, &last, sizeof(last));
    }
    return true;
}

}  // namespace ernic::mem
