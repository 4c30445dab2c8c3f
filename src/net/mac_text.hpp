// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "wire/ethernet.hpp"

namespace ernic::net {

/// Six pairs of hex digits with one kind of separator, ':' or '-'. Thread: any. Fails: nullopt.
[[nodiscard]] std::optional<wire::MacAddress> read_mac(std::string_view text);

/// In lower case with ':' in between. Thread: any.
[[nodiscard]] std::string to_string(const wire::MacAddress& mac);

}  // namespace ernic::net
