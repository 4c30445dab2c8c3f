// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/byte_order.hpp"

namespace ernic::mem {

/// Host memory for long page tables, in blocks of 256 KiB: a table of 4 MiB in one allocation means a
/// thousand pages to unmap when it goes, and each unmapping has a price of its own. What dead tables held is
/// kept here until trim() unmaps it block by block, a little of it for good, for tables to come. Pages of a
/// block that no table has reached are not resident. Owns the blocks. Thread: device.
class TablePool {
  public:
    static constexpr std::size_t kBlockEntries = std::size_t{32} * 1024;
    /// Longest table that takes no blocks, but memory of its own size.
    static constexpr std::size_t kShortTable = 4096;
    /// Blocks kept for tables to come: those of two tables of 512K entries, 8 MiB.
    static constexpr std::size_t kKeep = 32;

    TablePool() = default;
    ~TablePool();
    TablePool(const TablePool&) = delete;
    TablePool& operator=(const TablePool&) = delete;

    /// A block with anything in it. Fails: nullptr when the host has no memory left.
    le64* take();
    void give(std::vector<le64*>& blocks);

    /// Unmaps at most `blocks` of those nobody needs; true while there are more.
    bool trim(std::size_t blocks);
    /// Blocks that belong to no table.
    [[nodiscard]] std::size_t idle() const { return idle_.size(); }

  private:
    std::vector<le64*> idle_;
};

/// The entries of a page table: short ones in one piece, long ones in blocks of a pool. Thread: device.
class TableEntries {
  public:
    TableEntries() = default;
    /// Room for `size` entries; the pool must outlive this.
    TableEntries(TablePool& pool, std::size_t size);
    ~TableEntries();
    TableEntries(TableEntries&& other) noexcept;
    TableEntries& operator=(TableEntries&& other) noexcept;

    [[nodiscard]] std::size_t size() const { return size_; }
    /// Precondition: `index` < size(), and it has been filled.
    [[nodiscard]] le64 operator[](std::size_t index) const {
        return blocks_.empty() ? short_[index]
                               : blocks_[index / TablePool::kBlockEntries][index % TablePool::kBlockEntries];
    }

    /// Where entries from `index` on, which follow the ones filled already, are to be written: at most
    /// `count`, which becomes how many may be. Fails: nullptr when the host has no memory left.
    le64* room(std::size_t index, std::size_t& count);

  private:
    void swap(TableEntries& other) noexcept;

    TablePool* pool_ = nullptr;
    std::size_t size_ = 0;
    std::vector<le64> short_;
    std::vector<le64*> blocks_;
};

}  // namespace ernic::mem
