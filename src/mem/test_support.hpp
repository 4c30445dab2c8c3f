// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "mem/ring.hpp"
#include "mem/table_copy.hpp"

namespace ernic::mem::test {

/// A whole page table at once. Fails: as TableCopy.
inline std::optional<PageList> copy_table(const GuestMemory& memory, Iova table, std::uint32_t count,
                                          std::uint8_t page_size_log2, TablePool& pool) {
    auto copy = TableCopy::begin(memory, table, count, page_size_log2, pool);
    if (!copy || !copy->advance(memory, count)) {
        return std::nullopt;
    }
    return std::move(*copy).take();
}

}  // namespace ernic::mem::test
