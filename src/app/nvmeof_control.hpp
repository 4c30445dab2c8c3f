// SPDX-License-Identifier: MIT
#pragma once

#include "app/nvmeof_targets.hpp"
#include "control/commands.hpp"

namespace ernic::app {

/// Registers the commands `nvme-list`, `nvme-add`, `nvme-remove` and `nvme-resize` (docs/control.md).
/// `targets` must outlive `commands`. Thread: device.
void add_nvmeof_commands(control::Commands& commands, NvmeofTargets& targets);

}  // namespace ernic::app
