// SPDX-License-Identifier: MIT
#include "ionic/queue_config.hpp"

#include "ionic/identity.hpp"
#include "ionic/limits.hpp"

namespace ernic::ionic {
namespace {

using wire::ionic::LogicalQueue;
using wire::ionic::Status;

bool aligned(const le64& address) {
    return address.get() % kRingAlignment == 0;
}

Status check_index(LogicalQueue type, std::uint32_t index, const QueueLimits& limits) {
    switch (type) {
        case LogicalQueue::Admin:
        case LogicalQueue::Notify:
            return index == 0 ? Status::Success : Status::BadQueueId;
        case LogicalQueue::Rx:
            return index < limits.rx_queues ? Status::Success : Status::BadQueueId;
        case LogicalQueue::Tx:
            return index < limits.tx_queues ? Status::Success : Status::BadQueueId;
        case LogicalQueue::Event:
            return Status::NotSupported;
    }
    return Status::BadQueueType;
}

}  // namespace

Status parse_queue_init(const wire::ionic::QueueInitCommand& command, const QueueLimits& limits,
                        QueueConfig& config) {
    const auto type = static_cast<LogicalQueue>(command.type);
    if (const Status status = check_index(type, command.index.get(), limits); status != Status::Success) {
        return status;
    }
    if (command.version != queue_version(type)) {
        return Status::BadVersion;
    }
    const std::uint16_t flags = command.flags.get();
    const bool interrupts = (flags & wire::ionic::queue_flag::kInterrupt) != 0;
    // Not offered by the queue identities: rings in controller memory, event-queue completions, timestamps.
    if ((flags & (wire::ionic::queue_flag::kControllerMemory | wire::ionic::queue_flag::kEventQueue)) != 0 ||
        command.features.get() != 0) {
        return Status::NotSupported;
    }
    if (command.lif_index.get() != 0 || command.ring_size_log2 < kMinRingSizeLog2 ||
        command.ring_size_log2 > kMaxRingSizeLog2 || command.pid.get() >= limits.doorbell_pages ||
        (interrupts && command.interrupt.get() >= limits.interrupts) || !aligned(command.ring_base) ||
        !aligned(command.completion_ring_base) || !aligned(command.sg_ring_base)) {
        return Status::Invalid;
    }
    config = {
        .type = type,
        .index = command.index.get(),
        .pid = command.pid.get(),
        .interrupt = command.interrupt.get(),
        .raises_interrupts = interrupts,
        .starts_enabled = (flags & wire::ionic::queue_flag::kEnable) != 0,
        .scatter_gather = (flags & wire::ionic::queue_flag::kScatterGather) != 0,
        .size_log2 = command.ring_size_log2,
        .ring = {command.ring_base.get()},
        .completion_ring = {command.completion_ring_base.get()},
        .sg_ring = {command.sg_ring_base.get()},
    };
    return Status::Success;
}

}  // namespace ernic::ionic
