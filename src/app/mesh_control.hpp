// SPDX-License-Identifier: MIT
#pragma once

#include "control/commands.hpp"
#include "mesh/fabric.hpp"

namespace ernic::app {

/// Registers the command `peers` (docs/control.md). `fabric` (null without a mesh) must outlive `commands`.
void add_mesh_commands(control::Commands& commands, const mesh::Fabric* fabric);

}  // namespace ernic::app
