// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "nvmeof/command.hpp"

namespace ernic::nvmeof {

/// What most I/O commands name: blocks of a namespace.
struct BlockRange {
    std::uint64_t first = 0;
    std::uint64_t blocks = 0;
    /// The same in bytes of the store.
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
};

/// What a command does to the data of its namespace.
enum class Touch : std::uint8_t { Nothing, Reads, Writes };

/// Finds the namespace of the command (into `command.space`) and checks that it may be touched so. False: the
/// command has been finished. Thread: device.
bool find_space(Command& command, Touch touch);

/// The range in dwords 10 to 12. Precondition: find_space() was true.
BlockRange range_of(const Command& command);

/// Checks that the range is inside the namespace and, for commands that read, readable. False: the command
/// has been finished.
bool check_range(Command& command, const BlockRange& range, Touch touch);

/// Checks that the data of the command are just as long as its range, and no longer than MDTS. False: the
/// command has been finished.
bool check_data(Command& command, const BlockRange& range);

/// Whether the command asks for its data to be safe before it completes (FUA).
bool forced(const Command& command);

/// The status for an errno of a store.
wire::nvme::Status status_of(int error, Touch touch);

}  // namespace ernic::nvmeof
