// SPDX-License-Identifier: MIT
#include "nvmeof/data_commands.hpp"

#include <algorithm>
#include <cstring>

#include "nvmeof/block_range.hpp"
#include "nvmeof/controller.hpp"
#include "nvmeof/namespace.hpp"
#include "nvmeof/queue.hpp"

namespace ernic::nvmeof {

namespace nvme = wire::nvme;
using nvme::Status;

namespace {

void zeroed(Command& command) {
    if (command.error() != 0) {
        return command.finish(status_of(command.error(), Touch::Writes));
    }
    Namespace& space = *command.space;
    space.uncorrectable.clear(command.scratch.offset >> space.block_shift(),
                              command.scratch.length >> space.block_shift());
    command.finish(Status::Success);
}

void zeroes_stored(Command& command) {
    make_safe(command, command, zeroed);
}

nvme::DatasetRange range_at(const Command& command, std::uint32_t index) {
    nvme::DatasetRange range;
    command.get_data(index * sizeof range, mutable_bytes_of(range));
    return range;
}

void deallocate_next(Command& command) {
    if (command.error() != 0) {
        return command.finish(status_of(command.error(), Touch::Writes));
    }
    Namespace& space = *command.space;
    while (command.scratch.index < command.scratch.count) {
        const nvme::DatasetRange range = range_at(command, command.scratch.index++);
        const std::uint64_t blocks = range.blocks.get();
        // All of them were checked before the first; again, since data in a capsule may lie anywhere.
        if (blocks != 0 && space.contains(range.start.get(), blocks)) {
            space.uncorrectable.clear(range.start.get(), blocks);
            return command.store(StoreOperation::Kind::Deallocate, range.start.get() << space.block_shift(),
                                 blocks << space.block_shift(), deallocate_next);
        }
    }
    command.finish(Status::Success);
}

void ranges_fetched(Command& command) {
    for (std::uint32_t i = 0; i < command.scratch.count; ++i) {
        const nvme::DatasetRange range = range_at(command, i);
        if (!command.space->contains(range.start.get(), range.blocks.get())) {
            return command.finish(Status::LbaOutOfRange);
        }
    }
    deallocate_next(command);
}

/// Compares the next piece of host data with what is in `stored`; false: they differ, and the command has
/// been finished.
bool compare_piece(Command& command, const std::byte* stored, std::size_t size) {
    mem::SpanList data;
    command.append_data(data, command.scratch.source, size);
    for (const mem::SpanList::Piece& piece : data) {
        if (std::memcmp(piece.data, stored, piece.size) != 0) {
            command.finish(Status::CompareFailure);
            return false;
        }
        stored += piece.size;
    }
    command.scratch.source += size;
    return true;
}

/// Where the stored bytes that a Compare looks at are put: behind the host's.
std::size_t compare_room(const Command& command) {
    return command.data_in_capsule() ? 0 : whole_chunks(command.scratch.length);
}

void compare_next(Command& command) {
    Command::Scratch& scratch = command.scratch;
    if (command.error() != 0) {
        return command.finish(status_of(command.error(), Touch::Reads));
    }
    const std::byte* const memory = command.space->memory();
    if (memory == nullptr && scratch.index != 0) {
        const MutableBytes stored = command.buffer().piece(compare_room(command), scratch.index);
        if (!compare_piece(command, stored.data(), stored.size())) {
            return;
        }
    }
    const std::size_t left = scratch.length - scratch.source;
    if (left == 0) {
        return command.finish(Status::Success);
    }
    if (memory == nullptr) {
        scratch.index = static_cast<std::uint32_t>(std::min(left, BufferPool::kChunk));
        return command.store(StoreOperation::Kind::Read, scratch.offset + scratch.source, scratch.index,
                             compare_next, compare_room(command));
    }
    if (compare_piece(command, memory + scratch.offset + scratch.source, std::min(left, kStepBytes))) {
        command.later(compare_next);
    }
}

void verify_next(Command& command) {
    Command::Scratch& scratch = command.scratch;
    if (command.error() != 0) {
        return command.finish(status_of(command.error(), Touch::Reads));
    }
    const std::uint64_t left = scratch.length - scratch.source;
    if (left == 0) {
        return command.finish(Status::Success);
    }
    if (!command.take_buffer(kStepBytes, verify_next)) {
        return;
    }
    const std::uint64_t at = scratch.offset + scratch.source;
    const std::uint64_t size = std::min<std::uint64_t>(left, kStepBytes);
    scratch.source += size;
    command.store(StoreOperation::Kind::Read, at, size, verify_next);
}

nvme::CopyRange copy_range_at(const Command& command, std::uint32_t index) {
    nvme::CopyRange range;
    command.get_data(index * sizeof range, mutable_bytes_of(range));
    return range;
}

std::uint64_t blocks_of(const nvme::CopyRange& range) {
    return std::uint64_t{range.blocks.get()} + 1;
}

void copy_next(Command& command);

void copied(Command& command) {
    command.finish(status_of(command.error(), Touch::Writes));
}

/// The piece is in the buffer.
void copy_read(Command& command) {
    Command::Scratch& scratch = command.scratch;
    if (command.error() != 0) {
        return command.finish(status_of(command.error(), Touch::Reads));
    }
    const std::uint64_t at = scratch.offset;
    scratch.offset += scratch.length;
    scratch.source += scratch.length;
    command.store(StoreOperation::Kind::Write, at, scratch.length, copy_next, BufferPool::kChunk);
}

/// `index` is the range, `source` the bytes of it that are done, `offset` where the next ones go, `length`
/// the piece under way.
void copy_next(Command& command) {
    Command::Scratch& scratch = command.scratch;
    if (command.error() != 0) {
        return command.finish(status_of(command.error(), Touch::Writes));
    }
    const Namespace& space = *command.space;
    while (scratch.index < scratch.count) {
        const nvme::CopyRange range = copy_range_at(command, scratch.index);
        const std::uint64_t bytes = blocks_of(range) << space.block_shift();
        if (scratch.source < bytes) {
            scratch.length = std::min<std::uint64_t>(bytes - scratch.source, kStepBytes);
            const std::uint64_t at = (range.start.get() << space.block_shift()) + scratch.source;
            return command.store(StoreOperation::Kind::Read, at, scratch.length, copy_read,
                                 BufferPool::kChunk);
        }
        scratch.source = 0;
        ++scratch.index;
    }
    make_safe(command, command, copied);
}

void copy_ranges_fetched(Command& command) {
    Namespace& space = *command.space;
    // From here on the ranges are those in our buffer, which nobody else can change.
    if (command.data_in_capsule()) {
        command.buffer().put(0,
                             command.capsule_data().first(command.scratch.count * sizeof(nvme::CopyRange)));
        command.forget_capsule_data();
    }
    std::uint64_t total = 0;
    for (std::uint32_t i = 0; i < command.scratch.count; ++i) {
        const nvme::CopyRange range = copy_range_at(command, i);
        total += blocks_of(range);
        if (blocks_of(range) > kCopyRangeBlocks) {
            return command.finish(Status::CommandSizeLimit);
        }
        if (!check_range(command, {range.start.get(), blocks_of(range), 0, 0}, Touch::Reads)) {
            return;
        }
    }
    if (total > kCopyBlocks) {
        return command.finish(Status::CommandSizeLimit);
    }
    const std::uint64_t first = command.quad(10);
    if (!check_range(command, {first, total, 0, 0}, Touch::Writes)) {
        return;
    }
    space.uncorrectable.clear(first, total);
    command.scratch.offset = first << space.block_shift();
    copy_next(command);
}

}  // namespace

void compare(Command& command) {
    const auto range = find_range(command, Touch::Reads);
    if (!range || !check_data(command, *range)) {
        return;
    }
    const std::size_t room =
        command.space->memory() != nullptr ? 0 : compare_room(command) + BufferPool::kChunk;
    command.fetch(range->bytes, compare_next, room);
}

void verify(Command& command) {
    if (!find_range(command, Touch::Reads)) {
        return;
    }
    if (command.space->memory() != nullptr) {
        return command.finish(Status::Success);  // memory can always be read
    }
    verify_next(command);
}

void write_uncorrectable(Command& command) {
    if (const auto range = find_range(command, Touch::Writes)) {
        command.finish(command.space->uncorrectable.mark(range->first, range->blocks)
                           ? Status::Success
                           : Status::InternalError);
    }
}

void copy_blocks(Command& command) {
    if (!find_space(command, Touch::Writes)) {
        return;
    }
    const std::uint32_t format = command.dword(12) >> 8U & 0xfU;
    command.scratch.count = (command.dword(12) & 0xffU) + 1U;
    if (format != 0) {
        return command.finish(Status::InvalidField);
    }
    if (command.scratch.count > kCopyRanges) {
        return command.finish(Status::CommandSizeLimit);
    }
    const std::size_t bytes = command.scratch.count * sizeof(nvme::CopyRange);
    static_assert(kCopyRanges * sizeof(nvme::CopyRange) <= BufferPool::kChunk);
    command.fetch(bytes, copy_ranges_fetched, BufferPool::kChunk + kStepBytes);
}

void write_zeroes(Command& command) {
    const auto range = find_range(command, Touch::Writes);
    if (!range) {
        return;
    }
    constexpr std::uint32_t kDeallocate = 1U << 25U;
    const auto kind = (command.dword(12) & kDeallocate) != 0 ? StoreOperation::Kind::Deallocate
                                                             : StoreOperation::Kind::Zero;
    command.store(kind, range->offset, range->bytes, zeroes_stored);
}

void dataset_management(Command& command) {
    constexpr std::uint32_t kDeallocate = 1U << 2U;
    const bool deallocate = (command.dword(11) & kDeallocate) != 0;
    if (!find_space(command, deallocate ? Touch::Writes : Touch::Reads)) {
        return;
    }
    command.scratch.count = (command.dword(10) & 0xffU) + 1U;
    const std::size_t bytes = command.scratch.count * sizeof(nvme::DatasetRange);
    if (command.data_length() < bytes) {
        return command.finish(Status::SglLengthInvalid);
    }
    if (!deallocate) {
        return command.finish(Status::Success);  // the other attributes are hints
    }
    command.fetch(bytes, ranges_fetched);
}

}  // namespace ernic::nvmeof
