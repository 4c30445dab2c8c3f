// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace ernic::nvmeof {

class Command;

/// Begins a command of the NVM command set (NVM Command Set Specification 3.2) for a controller that is
/// ready. Ends it with the status that it deserves. Thread: device.
void start_io(Command& command);

}  // namespace ernic::nvmeof
