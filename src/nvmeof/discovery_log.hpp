// SPDX-License-Identifier: MIT
#pragma once

#include "nvmeof/log_window.hpp"

namespace ernic::nvmeof {

class Target;

/// The discovery log page (70h): the discovery subsystem of `target` itself, and the NVM subsystems of all
/// targets of the process. Thread: device.
void discovery_log(const Target& target, LogWindow& log);

}  // namespace ernic::nvmeof
