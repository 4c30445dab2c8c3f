// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace ernic::rdma {

/// A 24-bit packet sequence number that wraps around (InfiniBand 9.7.2). Comparisons are by distance: `a` is
/// before `b` when b lies less than 2^23 ahead.
class Psn {
  public:
    constexpr Psn() = default;
    explicit constexpr Psn(std::uint32_t value) : value_(value & kMask) {}

    [[nodiscard]] constexpr std::uint32_t value() const { return value_; }
    [[nodiscard]] constexpr Psn plus(std::uint32_t count) const { return Psn(value_ + count); }
    /// How far `other` lies ahead, negative when it lies behind.
    [[nodiscard]] constexpr std::int32_t distance_to(Psn other) const {
        const std::uint32_t ahead = (other.value_ - value_) & kMask;
        return ahead < kHalf ? static_cast<std::int32_t>(ahead)
                             : static_cast<std::int32_t>(ahead) - kMask - 1;
    }
    /// How many numbers from here to `later`, all the way around: up to 2^24 - 1.
    [[nodiscard]] constexpr std::uint32_t steps_to(Psn later) const {
        return (later.value_ - value_) & kMask;
    }
    [[nodiscard]] constexpr bool before(Psn other) const { return distance_to(other) > 0; }
    friend constexpr bool operator==(Psn, Psn) = default;

  private:
    static constexpr std::int32_t kMask = 0xffffff;
    static constexpr std::uint32_t kHalf = 0x800000;
    std::uint32_t value_ = 0;
};

}  // namespace ernic::rdma
