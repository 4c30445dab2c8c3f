// SPDX-License-Identifier: MIT
#include "nvmeof/fused_commands.hpp"

#include <cstring>

#include "nvmeof/block_range.hpp"
#include "nvmeof/controller.hpp"
#include "nvmeof/namespace.hpp"
#include "nvmeof/queue.hpp"

namespace ernic::nvmeof {

namespace nvme = wire::nvme;
using nvme::Status;

namespace {

// The buffer belongs to the first command: the data to compare, those to write, and, for files, what is
// stored, each from the start of a chunk on.
std::size_t write_data_at(const Command& first) {
    return whole_chunks(first.scratch.length);
}
std::size_t stored_data_at(const Command& first) {
    return 2 * whole_chunks(first.scratch.length);
}

/// Ends both; lets the next pair of the namespace go on.
void finish(Command& first, Status of_first, Status of_second) {
    Command& second = *first.scratch.partner;
    Namespace& space = *first.space;
    first.scratch.partner = nullptr;
    second.scratch.partner = nullptr;
    space.fused.release(first, first.queue().runtime().work);
    first.finish(of_first);
    second.finish(of_second);
}

bool equal(const Command& first, const mem::SpanList& stored) {
    std::size_t offset = 0;
    for (const mem::SpanList::Piece& piece : stored) {
        for (std::size_t done = 0; done < piece.size;) {
            mem::SpanList data;
            const std::size_t size = std::min(piece.size - done, BufferPool::kChunk);
            first.append_data(data, offset, size);
            const mem::SpanList::Piece& wanted = *data.begin();
            if (std::memcmp(wanted.data, piece.data + done, size) != 0) {
                return false;
            }
            done += size;
            offset += size;
        }
    }
    return true;
}

void written(Command& first) {
    const std::uint64_t bytes = first.scratch.length;
    if (first.error() != 0) {
        return finish(first, Status::Success, status_of(first.error(), Touch::Writes));
    }
    first.queue().runtime().counters.written_bytes.add(bytes);
    first.space->counters.writes.add();
    first.space->counters.written_bytes.add(bytes);
    finish(first, Status::Success, Status::Success);
}

/// The second's data are in the store.
void stored(Command& first) {
    make_safe(first, *first.scratch.partner, written);
}

void compared(Command& first) {
    if (first.error() != 0) {
        return finish(first, status_of(first.error(), Touch::Reads), Status::FusedFailed);
    }
    mem::SpanList present;
    first.buffer().append(present, stored_data_at(first), first.scratch.length);
    if (!equal(first, present)) {
        return finish(first, Status::CompareFailure, Status::FusedFailed);
    }
    first.store(StoreOperation::Kind::Write, first.scratch.offset, first.scratch.length, stored,
                write_data_at(first));
}

/// All data are here.
void apply(Command& first) {
    Command& second = *first.scratch.partner;
    if (second.data_in_capsule()) {
        first.buffer().put(write_data_at(first), second.capsule_data());
    }
    std::byte* const memory = first.space->memory();
    if (memory == nullptr) {
        first.store(StoreOperation::Kind::Read, first.scratch.offset, first.scratch.length, compared,
                    stored_data_at(first));
        return;
    }
    mem::SpanList present;
    present.add(memory + first.scratch.offset, first.scratch.length);
    if (!equal(first, present)) {
        return finish(first, Status::CompareFailure, Status::FusedFailed);
    }
    first.buffer().get(write_data_at(first),
                       MutableBytes(memory + first.scratch.offset, first.scratch.length));
    written(first);
}

void take_turn(Command& first) {
    if (first.space->fused.acquire(first)) {
        return apply(first);
    }
    first.wait_in(first.space->fused.waiting(), take_turn);
}

void compare_data_fetched(Command& first) {
    Command& second = *first.scratch.partner;
    if (second.data_in_capsule()) {
        return take_turn(first);
    }
    mem::SpanList memory;
    first.buffer().append(memory, write_data_at(first), first.scratch.length);
    // The first stands still meanwhile.
    first.park(nullptr);
    second.read_host(memory, [](Command& command) {
        Command& its_first = *command.scratch.partner;
        command.park(nullptr);
        take_turn(its_first);
    });
}

}  // namespace

void start_fused_first(Command& command) {
    if (command.entry().opcode != static_cast<std::uint8_t>(nvme::IoOpcode::Compare)) {
        return command.finish(Status::InvalidField);
    }
    command.park(nullptr);
    command.queue().fused_first = &command;
}

void start_fused_second(Command& command) {
    Command* const first = std::exchange(command.queue().fused_first, nullptr);
    if (first == nullptr) {
        return command.finish(Status::FusedMissing);
    }
    if (command.entry().opcode != static_cast<std::uint8_t>(nvme::IoOpcode::Write) ||
        command.entry().nsid != first->entry().nsid || command.quad(10) != first->quad(10) ||
        (command.dword(12) & 0xffffU) != (first->dword(12) & 0xffffU)) {
        first->finish(Status::InvalidField);
        return command.finish(Status::InvalidField);
    }
    if (!find_space(*first, Touch::Reads)) {
        return command.finish(Status::FusedFailed);
    }
    const BlockRange range = range_of(*first);
    if (range.bytes > kFusedBytes) {
        first->finish(Status::InvalidField);
        return command.finish(Status::FusedFailed);
    }
    if (!check_range(*first, range, Touch::Reads) || !check_data(*first, range)) {
        return command.finish(Status::FusedFailed);
    }
    if (!find_space(command, Touch::Writes) || !check_data(command, range)) {
        return first->finish(Status::FusedFailed);
    }
    first->scratch.offset = range.offset;
    first->scratch.length = range.bytes;
    first->scratch.partner = &command;
    command.scratch.partner = first;
    command.park(nullptr);
    first->fetch(range.bytes, compare_data_fetched, 3 * whole_chunks(range.bytes));
}

}  // namespace ernic::nvmeof
