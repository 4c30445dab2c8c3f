// SPDX-License-Identifier: MIT
#pragma once

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

/// Splits `text`. `what` names the option in the sentence ("echo"). Every key must be one of `keys`, have a
/// value, and be given once unless it is in `repeatable`. An empty text has no items.
[[nodiscard]] Result<std::vector<SpecItem>> parse_items(std::string_view what, std::string_view text,
                                                        std::span<const std::string_view> keys,
                                                        std::span<const std::string_view> repeatable);

/// A whole number from `least` to `most`.
[[nodiscard]] Result<unsigned long> parse_number(std::string_view what, std::string_view key,
                                                 std::string_view text, unsigned long least,
                                                 unsigned long most);

/// An IPv4 address that a host may have.
[[nodiscard]] Result<net::IpAddress> parse_ipv4(std::string_view what, std::string_view key,
                                                std::string_view text);

}  // namespace ernic::app
