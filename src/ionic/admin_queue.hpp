// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "ionic/eth_ring.hpp"
#include "ionic/interrupts.hpp"
#include "ionic/queue_config.hpp"
#include "mem/guest_memory.hpp"
#include "wire/ionic_device.hpp"

namespace ernic::ionic {

/// Who executes the commands of the admin queue.
class AdminCommandHandler {
  public:
    virtual ~AdminCommandHandler() = default;
    /// Executes one command; the queue itself fills in comp_index and colour.
    /// Thread: device. Fails: by the status byte of `completion`.
    virtual void execute(const wire::ionic::Command& command, wire::ionic::Completion& completion) = 0;
};

/// The LIF's admin queue: 64-byte commands, one completion each, in order. Thread: device.
class AdminQueue {
  public:
    AdminQueue(const QueueConfig& config, mem::GuestMemory& memory, Interrupts& interrupts)
        : config_(config),
          commands_(config.ring, config.size_log2, kCommandStrideLog2),
          completions_(config.completion_ring, config.size_log2),
          memory_(memory),
          interrupts_(interrupts),
          enabled_(config.starts_enabled) {}

    [[nodiscard]] const QueueConfig& config() const { return config_; }
    void set_enabled(bool enabled) { enabled_ = enabled; }
    void doorbell(std::uint16_t producer) { commands_.produced(producer); }

    /// Executes at most `budget` pending commands; true when some are left. A queue that cannot be reached
    /// stops.
    bool process(AdminCommandHandler& handler, std::uint32_t budget);

    /// Commands that could not be read or completions that could not be written: the guest gave a bad
    /// address.
    [[nodiscard]] bool broken() const { return broken_; }

  private:
    static constexpr std::uint8_t kCommandStrideLog2 = 6;

    QueueConfig config_;
    DescriptorRing commands_;
    CompletionRing completions_;
    mem::GuestMemory& memory_;
    Interrupts& interrupts_;
    bool enabled_;
    bool broken_ = false;
};

}  // namespace ernic::ionic
