// SPDX-License-Identifier: MIT
#pragma once

namespace ernic::nvmeof {

class Command;

/// Fused Compare and Write (Base Specification 3.4.2): the first half waits for the second, which must be the
/// next command of its queue; then both are done as one. In memory nothing comes between comparing and
/// writing; in a file no other fused pair does. Thread: device.
void start_fused_first(Command& command);
void start_fused_second(Command& command);

}  // namespace ernic::nvmeof
