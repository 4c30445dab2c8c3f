// SPDX-License-Identifier: MIT
#include "app/option_values.hpp"

#include <grp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <string>
#include <vector>

#include "base/number.hpp"
#include "base/suggest.hpp"
#include "net/mac_text.hpp"

namespace ernic::app {
namespace {

// In the order of log::Level.
constexpr std::array<std::string_view, 5> kLevels = {"none", "error", "warn", "info", "debug"};
constexpr std::array<std::string_view, 2> kOnOff = {"on", "off"};
constexpr double kShortestInterval =
    0.1;  // a tighter loop would be noise: the file is for people and collectors
constexpr double kLongestInterval = 86'400;
constexpr std::uint64_t kLongestBusyPoll =
    1'000'000;  // microseconds; beyond that it is no window but a spinning core

std::vector<std::string> group_names() {
    std::vector<std::string> names;
    setgrent();
    while (const group* entry = getgrent()) {
        names.emplace_back(entry->gr_name);
    }
    endgrent();
    return names;
}

}  // namespace

Result<log::Level> parse_level(std::string_view where, std::string_view text) {
    const auto* const found = std::find(kLevels.begin(), kLevels.end(), text);
    if (found == kLevels.end()) {
        return invalid(unknown_word(where, text, kLevels));
    }
    return static_cast<log::Level>(found - kLevels.begin());
}

std::string_view name_of(log::Level level) {
    return kLevels[static_cast<std::size_t>(level)];
}

Result<bool> parse_on_off(std::string_view option, std::string_view text) {
    if (text == "on" || text == "off") {
        return text == "on";
    }
    return invalid(unknown_word(fmt::format("{} setting", option), text, kOnOff));
}

Result<wire::MacAddress> parse_mac(std::string_view text) {
    const auto mac = net::read_mac(text);
    if (!mac) {
        return invalid(fmt::format(
            "MAC address '{}' is malformed: write six pairs of hex digits such as '02:00:5e:10:00:01'",
            text));
    }
    if (mac->zero()) {
        return invalid(
            "MAC address '00:00:00:00:00:00' is not a host's address: write for example '02:00:5e:10:00:01'");
    }
    if (mac->multicast()) {
        const int unicast = (mac->bytes[0] & 0xfeU) | 0x02U;
        return invalid(
            fmt::format("MAC address '{}' is a multicast address: the nearest unicast one is '{:02x}{}'",
                        text, unicast, text.substr(2)));
    }
    return *mac;
}

wire::MacAddress mac_of_path(std::string_view absolute_path) {
    // FNV-1a, 64 bits: stable for ever (std::hash is not), and spread well enough for a handful of servers.
    std::uint64_t hash = 0xcbf29ce484222325ULL;
    for (const char letter : absolute_path) {
        hash = (hash ^ static_cast<std::uint8_t>(letter)) * 0x100000001b3ULL;
    }
    hash ^= hash >> 32U;
    wire::MacAddress mac;
    for (std::uint8_t& byte : mac.bytes) {
        byte = static_cast<std::uint8_t>(hash);
        hash >>= 8U;
    }
    constexpr std::uint8_t kLocallyAdministered = 0x02;
    constexpr std::uint8_t kMulticast = 0x01;
    mac.bytes[0] = static_cast<std::uint8_t>((mac.bytes[0] | kLocallyAdministered) & ~kMulticast);
    return mac;
}

Result<Nanoseconds> parse_interval(std::string_view option, std::string_view text) {
    const auto seconds = parse_fraction(text);
    if (!seconds) {
        return invalid(fmt::format(
            "{} '{}' is not a number: write seconds such as '5', or '0' for only at start and exit", option,
            text));
    }
    // Written so that NaN is refused as well.
    const bool valid = *seconds == 0 || (*seconds >= kShortestInterval && *seconds <= kLongestInterval);
    if (!valid) {
        const bool low = *seconds < kShortestInterval;
        return invalid(fmt::format(
            "{} '{}' is out of range: the nearest valid value is '{}' (0, or {} to {} seconds)", option, text,
            low && *seconds > 0 ? "0.1"
            : low               ? "0"
                                : "86400",
            kShortestInterval, kLongestInterval));
    }
    return static_cast<Nanoseconds>(*seconds * 1e9);
}

Result<Nanoseconds> parse_microseconds(std::string_view option, std::string_view text) {
    const auto count = parse_integer<std::uint64_t>(text);
    if (!count) {
        return invalid(fmt::format(
            "{} '{}' is not a whole number: write microseconds such as '20', or '0' for off", option, text));
    }
    if (*count > kLongestBusyPoll) {
        return invalid(fmt::format("{} '{}' is out of range: the largest valid value is '{}' microseconds",
                                   option, text, kLongestBusyPoll));
    }
    return Nanoseconds{*count * 1000};
}

Result<gid_t> parse_group(std::string_view text) {
    if (const auto id = parse_integer<gid_t>(text); id && *id != static_cast<gid_t>(-1)) {
        return *id;
    }
    if (const group* entry = getgrnam(std::string(text).c_str())) {
        return entry->gr_gid;
    }
    const std::vector<std::string> names = group_names();
    if (names.empty()) {
        return invalid(
            fmt::format("unknown group '{}': this machine has no group names, write a number", text));
    }
    const std::vector<std::string_view> views(names.begin(), names.end());
    return invalid(fmt::format("unknown group '{}': did you mean '{}'?", text, nearest(text, views)));
}

Result<bool> parse_link_follows(std::string_view text) {
    constexpr std::array<std::string_view, 2> kWords = {"mesh", "always-up"};
    if (std::find(kWords.begin(), kWords.end(), text) == kWords.end()) {
        return Error{Errc::InvalidArgument, unknown_word("value of '--link-follows'", text, kWords)};
    }
    return text == kWords[0];
}

std::string host_name() {
    std::array<char, HOST_NAME_MAX + 1> name{};
    // What does not fit need not end with a zero; the last one here stays.
    return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace ernic::app
