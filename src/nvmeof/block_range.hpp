// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

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

/// Finds the namespace and the range of the command, which becomes its scratch.offset and .length, and checks
/// both. Nullopt: the command has been finished.
std::optional<BlockRange> find_range(Command& command, Touch touch);

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

/// Goes on with `then` once what has been written is as safe as `command`, this one or its partner, asks for
/// (FUA). `writer`'s error() stays that of its store.
void make_safe(Command& writer, const Command& command, Command::Step then);

/// The status for an errno of a store.
wire::nvme::Status status_of(int error, Touch touch);

}  // namespace ernic::nvmeof
