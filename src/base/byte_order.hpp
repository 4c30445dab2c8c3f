// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace ernic {

/// Reverses the bytes of `value` (std::byteswap arrives only with C++23).
template <std::unsigned_integral T>
constexpr T byte_swap(T value) {
    if constexpr (sizeof(T) == 1) {
        return value;
    } else if constexpr (sizeof(T) == 2) {
        return __builtin_bswap16(value);
    } else if constexpr (sizeof(T) == 4) {
        return __builtin_bswap32(value);
    } else {
        return __builtin_bswap64(value);
    }
}

/// An unsigned integer stored in a fixed byte order with alignment 1, as it lies in somebody else's memory.
/// The only ways in and out are `set` and `get`, so a forgotten swap does not compile.
template <std::unsigned_integral T, std::endian Order>
class Ordered {
  public:
    Ordered() = default;
    explicit constexpr Ordered(T value) { set(value); }

    /// The value in host order.
    [[nodiscard]] constexpr T get() const {
        const T raw = std::bit_cast<T>(bytes_);
        return Order == std::endian::native ? raw : byte_swap(raw);
    }

    /// Stores a host-order value.
    constexpr void set(T value) {
        const T raw = Order == std::endian::native ? value : byte_swap(value);
        bytes_ = std::bit_cast<std::array<std::byte, sizeof(T)>>(raw);
    }

    friend constexpr bool operator==(const Ordered&, const Ordered&) = default;

  private:
    std::array<std::byte, sizeof(T)> bytes_{};
};

using le16 = Ordered<std::uint16_t, std::endian::little>;
using le32 = Ordered<std::uint32_t, std::endian::little>;
using le64 = Ordered<std::uint64_t, std::endian::little>;
using be16 = Ordered<std::uint16_t, std::endian::big>;
using be32 = Ordered<std::uint32_t, std::endian::big>;
using be64 = Ordered<std::uint64_t, std::endian::big>;

}  // namespace ernic

/// Checks a wire structure where it is declared: total size, no padding surprises, copyable as bytes.
#define ERNIC_WIRE(Type, size)                                                       \
    static_assert(sizeof(Type) == (size), #Type " must be exactly " #size " bytes"); \
    static_assert(std::is_trivially_copyable_v<Type> && std::is_standard_layout_v<Type>)

/// Checks the offset of one field of a wire structure.
#define ERNIC_WIRE_AT(Type, field, offset) \
    static_assert(offsetof(Type, field) == (offset), #Type "::" #field " must be at " #offset)
