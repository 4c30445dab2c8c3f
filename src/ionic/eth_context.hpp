// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "ionic/interrupts.hpp"
#include "ionic/traffic_stats.hpp"
#include "mem/guest_memory.hpp"

namespace ernic::ionic {

/// What the Ethernet queues use of the card.
struct EthContext {
    mem::GuestMemory& memory;
    Interrupts& interrupts;
    TrafficStats& stats;
    std::uint32_t max_frame_size;
};

}  // namespace ernic::ionic
