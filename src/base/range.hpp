// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

namespace ernic {

/// A half-open interval [start, start + length) of unsigned 64-bit numbers that cannot wrap around.
/// A range may end exactly at 2^64.
class Range {
  public:
    Range() = default;

    /// Fails: nullopt when start + length would pass 2^64.
    static constexpr std::optional<Range> make(std::uint64_t start, std::uint64_t length) {
        if (length != 0 && length - 1 > std::numeric_limits<std::uint64_t>::max() - start) {
            return std::nullopt;
        }
        return Range(start, length);
    }

    [[nodiscard]] constexpr std::uint64_t start() const { return start_; }
    [[nodiscard]] constexpr std::uint64_t length() const { return length_; }
    [[nodiscard]] constexpr bool empty() const { return length_ == 0; }

    /// True when `length` bytes from `start` lie inside; never overflows, a zero length needs start inside or
    /// at the end.
    [[nodiscard]] constexpr bool contains(std::uint64_t start, std::uint64_t length) const {
        if (start < start_) {
            return false;
        }
        const std::uint64_t offset = start - start_;
        return offset <= length_ && length <= length_ - offset;
    }

    [[nodiscard]] constexpr bool contains(const Range& other) const {
        return contains(other.start_, other.length_);
    }

    /// True when the two share at least one number.
    [[nodiscard]] constexpr bool overlaps(const Range& other) const {
        if (empty() || other.empty()) {
            return false;
        }
        return start_ <= other.start_ ? other.start_ - start_ < length_
                                      : start_ - other.start_ < other.length_;
    }

    friend constexpr bool operator==(const Range&, const Range&) = default;

  private:
    constexpr Range(std::uint64_t start, std::uint64_t length) : start_(start), length_(length) {}

    std::uint64_t start_ = 0;
    std::uint64_t length_ = 0;
};

}  // namespace ernic
