// SPDX-License-Identifier: MIT
#pragma once

namespace ernic::nvmeof {

class Command;

/// Begins an admin command (Base Specification 5) of a controller that is ready. Ends it with the status
/// that it deserves. Thread: device.
void start_admin(Command& command);

// Those that fill files of their own.
void identify(Command& command);
void get_log_page(Command& command);
void set_features(Command& command);
void get_features(Command& command);

}  // namespace ernic::nvmeof
