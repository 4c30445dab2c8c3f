// SPDX-License-Identifier: MIT
#include "nvmeof/data_commands.hpp"

#include <algorithm>

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
    if (command.error() == 0 && forced(command) && command.space->store().volatile_cache()) {
        return command.store(StoreOperation::Kind::Flush, 0, 0, zeroed);
    }
    zeroed(command);
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

}  // namespace

void write_zeroes(Command& command) {
    if (!find_space(command, Touch::Writes)) {
        return;
    }
    const BlockRange range = range_of(command);
    if (!check_range(command, range, Touch::Writes)) {
        return;
    }
    constexpr std::uint32_t kDeallocate = 1U << 25U;
    command.scratch.offset = range.offset;
    command.scratch.length = range.bytes;
    const auto kind = (command.dword(12) & kDeallocate) != 0 ? StoreOperation::Kind::Deallocate
                                                             : StoreOperation::Kind::Zero;
    command.store(kind, range.offset, range.bytes, zeroes_stored);
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
