// SPDX-License-Identifier: MIT
#include "nvmeof/block_range.hpp"

#include <cerrno>

#include "nvmeof/controller.hpp"
#include "nvmeof/namespace.hpp"
#include "nvmeof/queue.hpp"
#include "nvmeof/subsystem.hpp"

namespace ernic::nvmeof {

using wire::nvme::Status;

bool find_space(Command& command, Touch touch) {
    const auto& space = command.controller().subsystem().find(command.entry().nsid.get());
    if (space == nullptr) {
        command.finish(Status::InvalidNamespace);
        return false;
    }
    if (touch == Touch::Writes && !space->writable()) {
        command.finish(Status::NamespaceWriteProtected);
        return false;
    }
    if (touch != Touch::Nothing && space->reservations.held() &&
        !space->reservations.allows(command.controller().host().id, touch == Touch::Writes)) {
        command.finish(Status::ReservationConflict);
        return false;
    }
    command.space = space;
    return true;
}

BlockRange range_of(const Command& command) {
    const Namespace& space = *command.space;
    BlockRange range;
    range.first = command.quad(10);
    range.blocks = (command.dword(12) & 0xffffU) + 1U;
    // Means something only for ranges that check_range() has let pass.
    range.offset = range.first << space.block_shift();
    range.bytes = range.blocks << space.block_shift();
    return range;
}

bool check_range(Command& command, const BlockRange& range, Touch touch) {
    const Namespace& space = *command.space;
    if (!space.contains(range.first, range.blocks)) {
        command.finish(Status::LbaOutOfRange);
        return false;
    }
    if (touch == Touch::Reads && !space.uncorrectable.empty() &&
        space.uncorrectable.overlaps(range.first, range.blocks)) {
        command.finish(Status::UnrecoveredRead);
        return false;
    }
    return true;
}

std::optional<BlockRange> find_range(Command& command, Touch touch) {
    if (!find_space(command, touch)) {
        return std::nullopt;
    }
    const BlockRange range = range_of(command);
    if (!check_range(command, range, touch)) {
        return std::nullopt;
    }
    command.scratch.offset = range.offset;
    command.scratch.length = range.bytes;
    return range;
}

bool check_data(Command& command, const BlockRange& range) {
    if (range.bytes > command.controller().subsystem().max_transfer()) {
        command.finish(Status::InvalidField);
        return false;
    }
    if (range.bytes != command.data_length()) {
        command.finish(Status::SglLengthInvalid);
        return false;
    }
    return true;
}

bool forced(const Command& command) {
    constexpr std::uint32_t kForceUnitAccess = 1U << 30U;
    return (command.dword(12) & kForceUnitAccess) != 0;
}

void make_safe(Command& writer, const Command& command, Command::Step then) {
    if (writer.error() == 0 && forced(command) && writer.space->store().volatile_cache()) {
        return writer.store(StoreOperation::Kind::Flush, 0, 0, then);
    }
    then(writer);
}

Status status_of(int error, Touch touch) {
    switch (error) {
        case 0:
            return Status::Success;
        case EIO:
            return touch == Touch::Reads ? Status::UnrecoveredRead : Status::WriteFault;
        case ENOSPC:
        case EDQUOT:
        case EFBIG:
            return Status::CapacityExceeded;
        default:
            return Status::InternalError;
    }
}

}  // namespace ernic::nvmeof
