// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "mem/guest_memory.hpp"
#include "wire/ionic_device.hpp"

namespace ernic::ionic {

/// A checked Q_INIT: what a queue is built from.
struct QueueConfig {
    wire::ionic::LogicalQueue type{};
    std::uint32_t index = 0;
    std::uint16_t pid = 0;
    std::uint16_t interrupt = 0;
    bool raises_interrupts = false;
    bool starts_enabled = false;
    bool scatter_gather = false;
    /// Entries of the descriptor ring and of the completion ring, log2.
    std::uint8_t size_log2 = 0;
    mem::Iova ring;
    mem::Iova completion_ring;
    mem::Iova sg_ring;
};

/// Where a queue may point to.
struct QueueLimits {
    std::uint32_t tx_queues = 0;
    std::uint32_t rx_queues = 0;
    std::uint32_t interrupts = 0;
    std::uint32_t doorbell_pages = 0;
};

/// Checks a Q_INIT and fills `config`. Returns Success or the status to answer.
wire::ionic::Status parse_queue_init(const wire::ionic::QueueInitCommand& command, const QueueLimits& limits,
                                     QueueConfig& config);

}  // namespace ernic::ionic
