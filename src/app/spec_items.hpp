// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "net/ip_address.hpp"

/// The comma-separated `key=value` items that options with many settings are made of. Every function here:
/// Thread: any. Fails: InvalidArgument with one sentence that names the nearest valid spelling.
namespace ernic::app {

struct SpecItem {
    std::string_view key;
    std::string_view value;
};

/// What is out of the ordinary about a list of items.
struct ItemRules {
    /// Keys that may be given more than once.
    std::span<const std::string_view> repeatable = {};
    /// Keys that have no value.
    std::span<const std::string_view> flags = {};
    /// ',' or, for a list within an item, ';'.
    char separator = ',';
};

/// Splits `text`. `what` names the option in the sentence ("echo"). Every key must be one of `keys`, have a
/// value, and be given once, but for the exceptions in `rules`. An empty text has no items.
[[nodiscard]] Result<std::vector<SpecItem>> parse_items(std::string_view what, std::string_view text,
                                                        std::span<const std::string_view> keys,
                                                        const ItemRules& rules = {});

/// A whole number from `least` to `most`.
[[nodiscard]] Result<unsigned long> parse_number(std::string_view what, std::string_view key,
                                                 std::string_view text, unsigned long least,
                                                 unsigned long most);

/// A number of bytes: `4096`, `64K`, `64KB` or `64KiB`, and so on with M, G and T, all powers of 1024; at
/// most 2^60.
[[nodiscard]] Result<std::uint64_t> parse_size(std::string_view what, std::string_view key,
                                               std::string_view text);

/// An IPv4 address that a host may have.
[[nodiscard]] Result<net::IpAddress> parse_ipv4(std::string_view what, std::string_view key,
                                                std::string_view text);

}  // namespace ernic::app
