// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/byte_order.hpp"
#include "base/bytes.hpp"

namespace ernic::fuzz {

/// Reads decisions out of the fuzzer's bytes, front to back. Nothing fails: missing bytes read as zero, so
/// that every prefix of an input is an input too and a minimised crash stays readable.
class Input {
  public:
    Input(const std::uint8_t* data, std::size_t size) : rest_(std::as_bytes(std::span(data, size))) {}

    [[nodiscard]] bool empty() const { return rest_.empty(); }

    /// Any structure whose bytes the input decides; beyond the end of the input they are zero.
    template <WireValue T>
    T value() {
        T made{};
        const Bytes taken = bytes(sizeof(T));
        std::memcpy(&made, taken.data(), taken.size());
        return made;
    }
    std::uint8_t u8() { return value<std::uint8_t>(); }
    std::uint16_t u16() { return value<le16>().get(); }
    std::uint32_t u32() { return value<le32>().get(); }
    std::uint64_t u64() { return value<le64>().get(); }
    bool flag() { return (u8() & 1U) != 0; }

    /// A number below `limit`, which must not be 0. Takes one byte up to 256, else four.
    std::uint32_t below(std::uint32_t limit) { return (limit <= 256 ? u8() : u32()) % limit; }

    /// One of `choices`.
    template <typename T, std::size_t N>
    T pick(const std::array<T, N>& choices) {
        return choices[below(N)];
    }

    /// Up to `size` bytes, still owned by the fuzzer.
    Bytes bytes(std::size_t size) {
        const Bytes taken = rest_.first(std::min(size, rest_.size()));
        rest_ = rest_.subspan(taken.size());
        return taken;
    }

  private:
    Bytes rest_;
};

/// Ends the process with a report when a promise of the device does not hold.
inline void require(bool holds, const char* promise) {
    if (!holds) {
        std::fprintf(stderr, "BROKEN PROMISE: %s\n", promise);
        std::abort();
    }
}

}  // namespace ernic::fuzz
