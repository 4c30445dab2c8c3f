// SPDX-License-Identifier: MIT
#pragma once

namespace ernic::nvmeof {

class Command;

/// Begins a Fabrics command (Base Specification 6): Connect, Property Get and Set, Disconnect,
/// authentication. Ends it with the status that it deserves. Thread: device.
void start_fabrics(Command& command);

}  // namespace ernic::nvmeof
