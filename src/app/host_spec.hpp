// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "app/spec_items.hpp"
#include "base/result.hpp"
#include "net/stack/host.hpp"

/// The options that every service with IP addresses has. `what` names the service in the sentence ("echo").
/// Every function here: Thread: any. Fails: InvalidArgument with one sentence.
namespace ernic::app {

inline constexpr std::array<std::string_view, 4> kHostKeys = {"ip", "gw", "mac", "mtu"};

/// Applies one of kHostKeys; `ip` may be given several times.
[[nodiscard]] std::optional<Error> apply_host_item(std::string_view what, const SpecItem& item,
                                                   net::stack::HostConfig& host);

/// What does not fit together when all have been applied; an address is missing, for example one like
/// `example`.
[[nodiscard]] std::optional<Error> check_host(std::string_view what, std::string_view example,
                                              const net::stack::HostConfig& host);

}  // namespace ernic::app
