// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/result.hpp"
#include "wire/ethernet.hpp"

/// The words and numbers that option values are made of. Every function here: Thread: any. Fails:
/// InvalidArgument with one sentence that says what a valid value looks like, and the nearest one where there
/// is such a thing.
namespace ernic::app {

/// `none`, `error`, `warn`, `info`, `debug`. `where` names the source in the sentence ("log level").
[[nodiscard]] Result<log::Level> parse_level(std::string_view where, std::string_view text);

/// The word for `level`.
[[nodiscard]] std::string_view name_of(log::Level level);

/// `on` or `off`.
[[nodiscard]] Result<bool> parse_on_off(std::string_view option, std::string_view text);

/// Six pairs of hex digits with ':' or '-' between them; unicast and not zero.
[[nodiscard]] Result<wire::MacAddress> parse_mac(std::string_view text);

/// A locally administered unicast address made from the socket path: the same path gives the same address, so
/// a guest keeps its interface name when the server is restarted, and servers side by side differ.
[[nodiscard]] wire::MacAddress mac_of_path(std::string_view absolute_path);

/// Seconds, fractions allowed: 0, or 0.1 up to one day.
[[nodiscard]] Result<Nanoseconds> parse_interval(std::string_view option, std::string_view text);

/// Whole microseconds, up to one second.
[[nodiscard]] Result<Nanoseconds> parse_microseconds(std::string_view option, std::string_view text);

/// A group name or a number. Reads the group database, so it must be called before the sandbox is entered.
[[nodiscard]] Result<gid_t> parse_group(std::string_view text);

/// `mesh` (true) or `always-up`.
[[nodiscard]] Result<bool> parse_link_follows(std::string_view text);

/// The name of this host; empty when it cannot be told. Thread: any. Fails: never.
[[nodiscard]] std::string host_name();

}  // namespace ernic::app
