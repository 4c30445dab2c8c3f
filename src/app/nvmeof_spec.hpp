// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include "base/result.hpp"
#include "nvmeof/config.hpp"

namespace ernic::app {

/// Reads the options of `--target nvmeof:..` and `--backend nvmeof:..` (docs/nvmeof.md); an empty text is a
/// target with all defaults. Touches no file. Thread: any. Fails: InvalidArgument with one sentence that
/// names the nearest valid spelling.
[[nodiscard]] Result<nvmeof::TargetConfig> parse_nvmeof(std::string_view text);

}  // namespace ernic::app
