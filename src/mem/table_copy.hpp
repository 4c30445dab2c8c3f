// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "mem/guest_memory.hpp"
#include "mem/ring.hpp"
#include "mem/table_pool.hpp"

namespace ernic::mem {

/// A page table on its way out of guest memory, piece by piece: the longest takes milliseconds where page
/// faults are slow, and the guest may be waiting for a register meanwhile. No host address is kept from one
/// piece to the next, because the DMA map may change in between. Thread: device.
class TableCopy {
  public:
    /// `count` little-endian page addresses at `table`; pages are 2^page_size_log2 bytes. Nothing is copied
    /// yet. Fails: nullopt when count is 0 (which would be no list but a block at 0), the table cannot be
    /// read or page_size_log2 is not in 12..63.
    static std::optional<TableCopy> begin(const GuestMemory& memory, Iova table, std::uint32_t count,
                                          std::uint8_t page_size_log2, TablePool& pool);

    /// Copies at most `entries` more, and at least one. Fails: false when the table cannot be read any more
    /// or the host has no memory left.
    [[nodiscard]] bool advance(const GuestMemory& memory, std::size_t entries);
    [[nodiscard]] bool complete() const { return copied_ == entries_.size(); }
    [[nodiscard]] std::size_t copied() const { return copied_; }
    /// Entries of the whole table.
    [[nodiscard]] std::size_t size() const { return entries_.size(); }

    /// Precondition: complete().
    [[nodiscard]] PageList take() &&;

  private:
    TableCopy(Iova table, std::uint8_t page_size_log2, TableEntries entries)
        : table_(table), page_size_log2_(page_size_log2), entries_(std::move(entries)) {}

    Iova table_;
    std::uint8_t page_size_log2_;
    TableEntries entries_;
    std::size_t copied_ = 0;
};

}  // namespace ernic::mem
