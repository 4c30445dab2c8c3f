// SPDX-License-Identifier: MIT
#include "mem/table_copy.hpp"

#include <utility>

namespace ernic::mem {

std::optional<TableCopy> TableCopy::begin(const GuestMemory& memory, Iova table, std::uint32_t count,
                                          std::uint8_t page_size_log2, TablePool& pool) {
    if (count == 0 || page_size_log2 < 12 || page_size_log2 > 63) {
        return std::nullopt;
    }
    // One look at the whole range first: a huge count over unmapped memory must not cost host memory.
    SpanList pieces;
    if (!memory.append(table, std::uint64_t{count} * sizeof(le64), Access::Read, pieces)) {
        return std::nullopt;
    }
    return TableCopy(table, page_size_log2, TableEntries(pool, count));
}

bool TableCopy::advance(const GuestMemory& memory, std::size_t entries) {
    for (std::size_t left = entries; left != 0 && !complete();) {
        std::size_t count = left;
        le64* const room = entries_.room(copied_, count);
        const auto from = table_.plus(copied_ * sizeof(le64));
        if (room == nullptr || !from ||
            !memory.read(*from, {reinterpret_cast<std::byte*>(room), count * sizeof(le64)})) {
            return false;
        }
        copied_ += count;
        left -= count;
    }
    return true;
}

PageList TableCopy::take() && {
    return {page_size_log2_, std::move(entries_)};
}

}  // namespace ernic::mem
