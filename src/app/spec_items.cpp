// SPDX-License-Identifier: MIT
#include "app/spec_items.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/number.hpp"
#include "base/suggest.hpp"

namespace ernic::app {
namespace {

bool contains(std::span<const std::string_view> keys, std::string_view key) {
    return std::find(keys.begin(), keys.end(), key) != keys.end();
}

}  // namespace

Result<std::vector<SpecItem>> parse_items(std::string_view what, std::string_view text,
                                          std::span<const std::string_view> keys, const ItemRules& rules) {
    std::vector<SpecItem> items;
    while (!text.empty()) {
        const std::size_t comma = text.find(rules.separator);
        const std::string_view word = text.substr(0, comma);
        const std::size_t equals = word.find('=');
        const std::string_view key = word.substr(0, equals);
        if (!contains(keys, key)) {
            return invalid(unknown_word(fmt::format("{} option", what), key, keys));
        }
        const bool flag = contains(rules.flags, key);
        if (flag && equals != std::string_view::npos) {
            return invalid(fmt::format("{} option '{}' takes no value: write just '{}'", what, key, key));
        }
        if (!flag && (equals == std::string_view::npos || equals + 1 == word.size())) {
            return invalid(fmt::format("{} option '{}' needs a value: write '{}=...'", what, key, key));
        }
        const bool again =
            std::any_of(items.begin(), items.end(), [key](const SpecItem& item) { return item.key == key; });
        if (again && !contains(rules.repeatable, key)) {
            return invalid(fmt::format("{} option '{}' is given twice: write one '{}{}'", what, key, key,
                                       flag ? "" : "=..."));
        }
        items.push_back({key, flag ? "" : word.substr(equals + 1)});
        if (comma == std::string_view::npos) {
            break;
        }
        text.remove_prefix(comma + 1);
        if (text.empty()) {
            return invalid(fmt::format("{} options end with a {}: leave it out", what,
                                       rules.separator == ',' ? "comma" : "semicolon"));
        }
    }
    return items;
}

Result<unsigned long> parse_number(std::string_view what, std::string_view key, std::string_view text,
                                   unsigned long least, unsigned long most) {
    const auto value = parse_saturating<unsigned long>(text);
    if (!value) {
        return invalid(fmt::format("{} option {} '{}' is not a whole number: write for example '{}={}'", what,
                                   key, text, key, least));
    }
    if (*value < least || *value > most) {
        return invalid(
            fmt::format("{} option {} '{}' is out of range: the nearest valid value is '{}' ({} to {})", what,
                        key, text, std::clamp(*value, least, most), least, most));
    }
    return *value;
}

Result<std::uint64_t> parse_size(std::string_view what, std::string_view key, std::string_view text) {
    constexpr std::string_view kUnits = "KMGT";
    constexpr std::uint64_t kMost = std::uint64_t{1} << 60U;
    std::string_view digits = text;
    for (const std::string_view suffix : {"iB", "B"}) {
        if (digits.ends_with(suffix)) {
            digits.remove_suffix(suffix.size());
            break;
        }
    }
    const bool bare_bytes = digits.size() + 1 == text.size();
    unsigned shift = 0;
    if (const std::size_t unit = digits.empty() ? std::string_view::npos : kUnits.find(digits.back());
        unit != std::string_view::npos) {
        shift = 10 * (static_cast<unsigned>(unit) + 1);
        digits.remove_suffix(1);
    } else if (digits.size() != text.size() && !bare_bytes) {
        digits = "";  // `64iB`
    }
    const auto count = parse_saturating<std::uint64_t>(digits);
    if (!count) {
        return invalid(
            fmt::format("{} option {} '{}' is not a size: write for example '{}=64M'", what, key, text, key));
    }
    if (*count > kMost >> shift) {
        return invalid(fmt::format("{} option {} '{}' is too large: at most '{}={}T'", what, key, text, key,
                                   kMost >> 40U));
    }
    return *count << shift;
}

Result<net::IpAddress> parse_ipv4(std::string_view what, std::string_view key, std::string_view text) {
    const auto address = net::IpAddress::parse(text);
    if (!address || !address->is_v4() || !address->unicast()) {
        return invalid(fmt::format(
            "{} option {} '{}' is not the IPv4 address of a host: write for example '{}=10.0.0.1'", what, key,
            text, key));
    }
    return *address;
}

}  // namespace ernic::app
