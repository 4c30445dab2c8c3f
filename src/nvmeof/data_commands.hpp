// SPDX-License-Identifier: MIT
#pragma once

namespace ernic::nvmeof {

class Command;

// I/O commands that are done in pieces, by way of the namespace's store. Each takes a command whose data
// descriptor has been read, and ends it. Thread: device.
void write_zeroes(Command& command);
void dataset_management(Command& command);
void compare(Command& command);
void verify(Command& command);
void write_uncorrectable(Command& command);
void copy_blocks(Command& command);

}  // namespace ernic::nvmeof
