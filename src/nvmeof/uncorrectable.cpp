// SPDX-License-Identifier: MIT
#include "nvmeof/uncorrectable.hpp"

#include <algorithm>
#include <iterator>

#include "nvmeof/limits.hpp"

namespace ernic::nvmeof {

bool UncorrectableBlocks::overlaps(std::uint64_t first, std::uint64_t count) const {
    const auto behind = ranges_.lower_bound(first + count);
    return behind != ranges_.begin() && std::prev(behind)->second > first;
}

bool UncorrectableBlocks::mark(std::uint64_t first, std::uint64_t count) {
    std::uint64_t end = first + count;
    auto range = ranges_.upper_bound(first);
    if (range != ranges_.begin() && std::prev(range)->second >= first) {
        range = std::prev(range);
        first = range->first;
    }
    while (range != ranges_.end() && range->first <= end) {
        end = std::max(end, range->second);
        range = ranges_.erase(range);
    }
    if (ranges_.size() >= kUncorrectableRanges) {
        return false;
    }
    ranges_.emplace(first, end);
    return true;
}

void UncorrectableBlocks::clear(std::uint64_t first, std::uint64_t count) {
    const std::uint64_t end = first + count;
    auto range = ranges_.upper_bound(first);
    if (range != ranges_.begin() && std::prev(range)->second > first) {
        range = std::prev(range);
    }
    while (range != ranges_.end() && range->first < end) {
        const auto [start, stop] = *range;
        range = ranges_.erase(range);
        if (start < first) {
            ranges_.emplace(start, first);
        }
        // What is forgotten reads as what was there before; that is better than a set without bounds.
        if (stop > end && ranges_.size() < 2 * kUncorrectableRanges) {
            ranges_.emplace(end, stop);
        }
    }
}

}  // namespace ernic::nvmeof
