// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include "base/result.hpp"
#include "services/dhcp.hpp"

namespace ernic::app {

/// Reads
/// `FIRST-LAST[,prefix=24][,ip=ADDRESS][,router=ADDRESS][,dns=ADDRESS]..[,mtu=N][,lease=SECONDS][,mac=MAC]`.
/// `ip` is the server's own, by default the first of the subnet. The MAC address is zero when none was given.
/// Thread: any. Fails: InvalidArgument with one sentence that names the nearest valid spelling.
[[nodiscard]] Result<services::DhcpConfig> parse_dhcp_service(std::string_view text);

}  // namespace ernic::app
