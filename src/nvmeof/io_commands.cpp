// SPDX-License-Identifier: MIT
#include "nvmeof/io_commands.hpp"

#include <cstring>

#include "nvmeof/block_range.hpp"
#include "nvmeof/controller.hpp"
#include "nvmeof/data_commands.hpp"
#include "nvmeof/fused_commands.hpp"
#include "nvmeof/namespace.hpp"
#include "nvmeof/queue.hpp"
#include "nvmeof/reservation_commands.hpp"
#include "nvmeof/subsystem.hpp"

namespace ernic::nvmeof {

namespace nvme = wire::nvme;
using nvme::IoOpcode;
using nvme::Status;

namespace {

void count_read(Command& command) {
    const std::uint64_t bytes = command.scratch.length;
    command.queue().runtime().counters.read_bytes.add(bytes);
    command.space->counters.reads.add();
    command.space->counters.read_bytes.add(bytes);
}

/// The data of a Read are in the buffer.
void read_stored(Command& command) {
    if (command.error() != 0) {
        return command.finish(status_of(command.error(), Touch::Reads));
    }
    count_read(command);
    command.send(command.buffer().size());
}

void read_through_buffer(Command& command) {
    if (command.take_buffer(command.scratch.length, read_through_buffer)) {
        command.store(StoreOperation::Kind::Read, command.scratch.offset, command.scratch.length,
                      read_stored);
    }
}

void read(Command& command) {
    const auto range = find_range(command, Touch::Reads);
    if (!range || !check_data(command, *range)) {
        return;
    }
    if (command.data_in_capsule()) {
        return command.finish(Status::InvalidField);
    }
    std::byte* const memory = command.space->memory();
    if (memory == nullptr) {
        return read_through_buffer(command);
    }
    // The one copy: from the namespace's memory to the guest's. The response cannot overtake it.
    mem::SpanList source;
    source.add(memory + range->offset, range->bytes);
    command.queue().channel().write_host(command.host(), 0, source, nullptr);
    count_read(command);
    command.finish(Status::Success);
}

void written(Command& command) {
    if (command.error() != 0) {
        return command.finish(status_of(command.error(), Touch::Writes));
    }
    const std::uint64_t bytes = command.scratch.length;
    Namespace& space = *command.space;
    if (!space.uncorrectable.empty()) {
        space.uncorrectable.clear(command.scratch.offset >> space.block_shift(),
                                  bytes >> space.block_shift());
    }
    Counters& counters = command.queue().runtime().counters;
    counters.written_bytes.add(bytes);
    if (command.data_in_capsule()) {
        counters.in_capsule_bytes.add(bytes);
    }
    space.counters.writes.add();
    space.counters.written_bytes.add(bytes);
    command.finish(Status::Success);
}

void write_stored(Command& command) {
    make_safe(command, command, written);
}

void write_from_buffer(Command& command) {
    command.store(StoreOperation::Kind::Write, command.scratch.offset, command.scratch.length, write_stored);
}

void write_from_capsule(Command& command) {
    if (command.take_buffer(command.scratch.length, write_from_capsule)) {
        command.buffer().put(0, command.capsule_data());
        write_from_buffer(command);
    }
}

void write(Command& command) {
    const auto range = find_range(command, Touch::Writes);
    if (!range || !check_data(command, *range)) {
        return;
    }
    std::byte* const memory = command.space->memory();
    if (memory == nullptr) {
        return command.data_in_capsule() ? write_from_capsule(command)
                                         : command.fetch(range->bytes, write_from_buffer);
    }
    if (command.data_in_capsule()) {
        std::memcpy(memory + range->offset, command.capsule_data().data(), range->bytes);
        return written(command);
    }
    // The one copy: from the guest's memory to the namespace's.
    mem::SpanList place;
    place.add(memory + range->offset, range->bytes);
    command.read_host(place, written);
}

void flushed(Command& command) {
    command.finish(status_of(command.error(), Touch::Writes));
}

/// One namespace after the other.
void flush_next(Command& command) {
    if (command.error() != 0) {
        return flushed(command);
    }
    const auto& spaces = command.controller().subsystem().namespaces();
    while (command.scratch.index < spaces.size()) {
        const auto& space = spaces[command.scratch.index++];
        if (space != nullptr && space->store().volatile_cache()) {
            command.space = space;
            return command.store(StoreOperation::Kind::Flush, 0, 0, flush_next);
        }
    }
    command.finish(Status::Success);
}

void flush(Command& command) {
    if (command.entry().nsid.get() == nvme::kEveryNamespace) {
        return flush_next(command);
    }
    if (!find_space(command, Touch::Nothing)) {
        return;
    }
    if (!command.space->store().volatile_cache()) {
        return command.finish(Status::Success);
    }
    command.store(StoreOperation::Kind::Flush, 0, 0, flushed);
}

void count(Counters& counters, IoOpcode opcode) {
    switch (opcode) {
        case IoOpcode::Read:
            return counters.reads.add();
        case IoOpcode::Write:
            return counters.writes.add();
        case IoOpcode::Flush:
            return counters.flushes.add();
        case IoOpcode::Compare:
            return counters.compares.add();
        case IoOpcode::WriteZeroes:
            return counters.write_zeroes.add();
        case IoOpcode::DatasetManagement:
            return counters.deallocates.add();
        case IoOpcode::Copy:
            return counters.copies.add();
        default:
            return counters.other_commands.add();
    }
}

void execute(Command& command) {
    switch (static_cast<IoOpcode>(command.entry().opcode)) {
        case IoOpcode::Read:
            return read(command);
        case IoOpcode::Write:
            return write(command);
        case IoOpcode::Flush:
            return flush(command);
        case IoOpcode::WriteZeroes:
            return write_zeroes(command);
        case IoOpcode::DatasetManagement:
            return dataset_management(command);
        case IoOpcode::Compare:
            return compare(command);
        case IoOpcode::Verify:
            return verify(command);
        case IoOpcode::WriteUncorrectable:
            return write_uncorrectable(command);
        case IoOpcode::Copy:
            return copy_blocks(command);
        case IoOpcode::ReservationRegister:
            return reservation_register(command);
        case IoOpcode::ReservationAcquire:
            return reservation_acquire(command);
        case IoOpcode::ReservationRelease:
            return reservation_release(command);
        case IoOpcode::ReservationReport:
            return reservation_report(command);
        default:
            return command.finish(Status::InvalidOpcode);
    }
}

/// The fault that the operator has ordered for this command, if any.
bool injected_fault(Command& command) {
    const auto status = command.controller().subsystem().faults().judge(command.entry());
    if (!status) {
        return false;
    }
    command.queue().runtime().counters.injected_faults.add();
    command.finish_raw(*status, 0);
    return true;
}

}  // namespace

void start_io(Command& command) {
    count(command.queue().runtime().counters, static_cast<IoOpcode>(command.entry().opcode));
    const std::uint8_t fuse = command.fuse();
    if (command.queue().fused_first != nullptr && fuse != nvme::SubmissionEntry::kFuseSecond) {
        command.queue().fused_first->finish(Status::FusedMissing);
    }
    const Status refusal = command.controller().path().refusal();
    Status status = command.parse_data();
    if (status == Status::Success) {
        status = refusal;
    }
    if (status != Status::Success) {
        if (command.queue().fused_first != nullptr) {
            // Both halves may try another path.
            command.queue().fused_first->finish(refusal == Status::Success ? Status::FusedFailed : refusal);
        }
        return command.finish(status);
    }
    Subsystem& subsystem = command.controller().subsystem();
    if (fuse == 0 && !subsystem.faults().empty() && injected_fault(command)) {
        return;
    }
    switch (fuse) {
        case 0:
            return subsystem.pace().active() ? subsystem.pace().delay(command, execute) : execute(command);
        case nvme::SubmissionEntry::kFuseFirst:
            return start_fused_first(command);
        case nvme::SubmissionEntry::kFuseSecond:
            return start_fused_second(command);
        default:
            return command.finish(Status::InvalidField);
    }
}

}  // namespace ernic::nvmeof
