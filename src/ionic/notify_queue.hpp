// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "ionic/interrupts.hpp"
#include "ionic/queue_config.hpp"
#include "mem/guest_memory.hpp"
#include "wire/ionic_ethernet.hpp"

namespace ernic::ionic {

/// Events from the card to the driver: a ring of 64 slots without doorbell and without colour. A slot is new
/// for the driver when its event id is greater than the last it saw (ionic 7.2, ionic_notifyq_service).
/// Thread: device.
class NotifyQueue {
  public:
    NotifyQueue(const QueueConfig& config, mem::GuestMemory& memory, Interrupts& interrupts)
        : config_(config), memory_(memory), interrupts_(interrupts) {}

    /// Id that the next event will carry. Ids start at 1.
    [[nodiscard]] std::uint64_t next_id() const { return next_id_; }

    /// Writes the event, id last, and interrupts. Fails: false when the ring is not reachable.
    bool post(wire::ionic::NotifyEvent event);

  private:
    QueueConfig config_;
    mem::GuestMemory& memory_;
    Interrupts& interrupts_;
    std::uint64_t next_id_ = 1;
};

}  // namespace ernic::ionic
