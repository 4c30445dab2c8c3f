// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include "base/result.hpp"
#include "wire/nvme_log.hpp"

namespace ernic::app {

/// Reads `optimized`, `non-optimized`, `inaccessible`, `persistent-loss` or `change`. Thread: any. Fails:
/// InvalidArgument with one sentence that names the nearest valid spelling.
[[nodiscard]] Result<wire::nvme::AnaState> parse_ana(std::string_view text);
[[nodiscard]] std::string_view to_string(wire::nvme::AnaState state);

}  // namespace ernic::app
