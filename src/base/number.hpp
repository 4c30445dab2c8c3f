// SPDX-License-Identifier: MIT
#pragma once

#include <charconv>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>

namespace ernic {

/// The whole of `text` as a number, digits in `base`. Thread: any. Fails: nullopt when it is anything else,
/// or does not fit.
template <typename T>
std::optional<T> parse_integer(std::string_view text, int base = 10) {
    T value{};
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (problem != std::errc{} || end != text.data() + text.size()) {
        return std::nullopt;
    }
    return value;
}

/// As parse_integer(), but what is too large is the largest there is: for those who name the nearest valid
/// value.
template <typename T>
std::optional<T> parse_saturating(std::string_view text) {
    T value{};
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (end != text.data() + text.size() || problem == std::errc::invalid_argument) {
        return std::nullopt;
    }
    return problem == std::errc::result_out_of_range ? std::numeric_limits<T>::max() : value;
}

/// As parse_integer(), for a decimal fraction such as `0.5`.
inline std::optional<double> parse_fraction(std::string_view text) {
    double value = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem != std::errc{} || end != text.data() + text.size()) {
        return std::nullopt;
    }
    return value;
}

}  // namespace ernic
