// SPDX-License-Identifier: MIT
#pragma once

namespace ernic::nvmeof {

class Command;

// Reservation Register, Acquire, Release and Report (Base Specification 7). Each takes a command whose data
// descriptor has been read, and ends it. Thread: device.
void reservation_register(Command& command);
void reservation_acquire(Command& command);
void reservation_release(Command& command);
void reservation_report(Command& command);

}  // namespace ernic::nvmeof
