// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/byte_order.hpp"
#include "base/bytes.hpp"
#include "mem/guest_memory.hpp"
#include "mem/table_pool.hpp"

namespace ernic::mem {

class TableCopy;

/// Where a ring or a region lies in guest memory: one contiguous block, or a list of equally large pages.
class PageList {
  public:
    PageList() = default;

    /// One block that starts at `base` (which may lie inside a page).
    static PageList contiguous(Iova base);

    /// Address of byte `offset`, and how many bytes follow it contiguously. Fails: nullopt past the last
    /// page.
    struct Extent {
        Iova iova;
        std::uint64_t contiguous;
    };
    [[nodiscard]] std::optional<Extent> at(std::uint64_t offset) const;

    /// Appends the host bytes of [offset, offset + size). Fails: false.
    bool append(const GuestMemory& memory, std::uint64_t offset, std::uint64_t size, Access access,
                SpanList& out) const;

    [[nodiscard]] std::uint64_t page_size() const { return std::uint64_t{1} << page_size_log2_; }
    [[nodiscard]] bool is_table() const { return pages_.size() != 0; }
    /// Page addresses held; each is 8 bytes of host memory.
    [[nodiscard]] std::size_t entries() const { return pages_.size(); }

  private:
    friend class TableCopy;
    PageList(std::uint8_t page_size_log2, TableEntries pages)
        : page_size_log2_(page_size_log2), pages_(std::move(pages)) {}

    Iova base_;
    std::uint8_t page_size_log2_ = 0;
    TableEntries pages_;
};

/// A guest ring of 2^depth_log2 entries of 2^stride_log2 bytes. Entries are copied out once (`read`) or
/// written once
/// (`publish`); no pointer into a ring ever leaves this class.
class Ring {
  public:
    Ring() = default;

    /// False for a depth above 2^16 or a stride outside 4..4096 bytes, so that no page table need be read.
    static constexpr bool possible(std::uint8_t depth_log2, std::uint8_t stride_log2) {
        return depth_log2 <= 16 && stride_log2 >= 2 && stride_log2 <= 12;
    }

    /// Fails: nullopt for an impossible depth or stride, or (page table) entries that could straddle pages.
    static std::optional<Ring> make(PageList pages, std::uint8_t depth_log2, std::uint8_t stride_log2);

    [[nodiscard]] std::uint32_t depth() const { return depth_; }
    [[nodiscard]] std::uint32_t mask() const { return depth_ - 1; }
    [[nodiscard]] std::size_t stride() const { return stride_; }
    /// Page addresses held, see PageList::entries.
    [[nodiscard]] std::size_t page_entries() const { return pages_.entries(); }

    /// Copies min(into.size(), stride) bytes of entry `index & mask()`. Fails: false when the memory is gone.
    [[nodiscard]] bool read(const GuestMemory& memory, std::uint32_t index, MutableBytes into) const;

    /// Copies the into.size() / stride entries from `index & mask()` on, which must not pass the end of the
    /// ring. Fails: false when they do not lie in one piece of reachable memory; read() may then still reach
    /// the first.
    [[nodiscard]] bool read_run(const GuestMemory& memory, std::uint32_t index, MutableBytes into) const;

    /// Writes one entry so that its last four bytes become visible after all others.
    /// Pairs with the read barrier (dma_rmb / udma_from_device_barrier) that drivers run between looking at
    /// the colour bit, which lies in those last four bytes, and reading the rest. Fails: false when the
    /// memory is gone.
    [[nodiscard]] bool publish(const GuestMemory& memory, std::uint32_t index, Bytes entry) const;

  private:
    /// Host address of `size` bytes from that entry on. Fails: nullptr.
    [[nodiscard]] std::byte* host(const GuestMemory& memory, std::uint32_t index, std::size_t size,
                                  Access access) const;

    PageList pages_;
    std::uint32_t depth_ = 1;
    std::size_t stride_ = 64;
    std::uint8_t stride_log2_ = 6;
};

}  // namespace ernic::mem
