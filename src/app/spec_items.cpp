// SPDX-License-Identifier: MIT
#include "app/spec_items.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/number.hpp"
#include "base/suggest.hpp"

namespace ernic::app {
namespace {

Error invalid(std::string sentence) {
    return {Errc::InvalidArgument, std::move(sentence)};
}

}  // namespace

Result<std::vector<SpecItem>> parse_items(std::string_view what, std::string_view text,
                                          std::span<const std::string_view> keys,
                                          std::span<const std::string_view> repeatable) {
    std::vector<SpecItem> items;
    while (!text.empty()) {
        const std::size_t comma = text.find(',');
        const std::string_view word = text.substr(0, comma);
        const std::size_t equals = word.find('=');
        const std::string_view key = word.substr(0, equals);
        if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
            return invalid(unknown_word(fmt::format("{} option", what), key, keys));
        }
        if (equals == std::string_view::npos || equals + 1 == word.size()) {
            return invalid(fmt::format("{} option '{}' needs a value: write '{}=...'", what, key, key));
        }
        const bool again =
            std::any_of(items.begin(), items.end(), [key](const SpecItem& item) { return item.key == key; });
        if (again && std::find(repeatable.begin(), repeatable.end(), key) == repeatable.end()) {
            return invalid(fmt::format("{} option '{}' is given twice: write one '{}=...'", what, key, key));
        }
        items.push_back({key, word.substr(equals + 1)});
        if (comma == std::string_view::npos) {
            break;
        }
        text.remove_prefix(comma + 1);
        if (text.empty()) {
            return invalid(fmt::format("{} options end with a comma: leave it out", what));
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
