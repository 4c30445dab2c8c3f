// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

namespace ernic {

/// Read-only bytes owned by somebody else.
using Bytes = std::span<const std::byte>;
/// Writable bytes owned by somebody else.
using MutableBytes = std::span<std::byte>;

template <typename T>
concept WireValue = std::is_trivially_copyable_v<T>;

/// The bytes of a wire value.
template <WireValue T>
Bytes bytes_of(const T& value) {
    return std::as_bytes(std::span<const T, 1>(&value, 1));
}

/// The writable bytes of a wire value.
template <WireValue T>
MutableBytes mutable_bytes_of(T& value) {
    return std::as_writable_bytes(std::span<T, 1>(&value, 1));
}

/// The bytes of `text`, without a terminator.
inline Bytes text_bytes(std::string_view text) {
    return std::as_bytes(std::span(text));
}

/// Copies a wire value out of the front of `source`. Fails: nullopt when `source` is too short.
template <WireValue T>
std::optional<T> read_value(Bytes source) {
    if (source.size() < sizeof(T)) {
        return std::nullopt;
    }
    T value;
    std::memcpy(&value, source.data(), sizeof(T));
    return value;
}

/// Bounded sequential reader: every read returns nullopt (and consumes nothing) when bytes are missing.
class ByteReader {
  public:
    explicit ByteReader(Bytes source) : rest_(source) {}

    template <WireValue T>
    std::optional<T> read() {
        auto value = read_value<T>(rest_);
        if (value) {
            rest_ = rest_.subspan(sizeof(T));
        }
        return value;
    }

    /// The next `count` bytes, still owned by the source.
    std::optional<Bytes> take(std::size_t count) {
        if (rest_.size() < count) {
            return std::nullopt;
        }
        const Bytes taken = rest_.first(count);
        rest_ = rest_.subspan(count);
        return taken;
    }

    [[nodiscard]] Bytes rest() const { return rest_; }
    [[nodiscard]] bool empty() const { return rest_.empty(); }

  private:
    Bytes rest_;
};

}  // namespace ernic
