// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "ionic/profile.hpp"
#include "wire/ionic_device.hpp"

namespace ernic::ionic {

/// Who executes the commands of the register block.
class DeviceCommandHandler {
  public:
    virtual ~DeviceCommandHandler() = default;
    /// Executes one command: reads `command` and `data`, fills `completion` and, for answers, `data`.
    /// Thread: device. Fails: by the status byte of `completion`.
    virtual void execute(const wire::ionic::Command& command, wire::ionic::Completion& completion,
                         MutableBytes data) = 0;
};

/// BAR 0 below the interrupt registers: the read-only device info block and the device command block. A
/// command runs inside the store to its doorbell register, so the driver's first look at `done` succeeds.
/// Thread: device.
class DeviceRegisters {
  public:
    /// Everything passed must outlive this.
    DeviceRegisters(const Profile& profile, const Clock& clock, DeviceCommandHandler& handler);

    /// Guest access within [0, kInterruptControlOffset), any width. `offset + size` stays inside.
    void read(std::uint32_t offset, MutableBytes out);
    void write(std::uint32_t offset, Bytes data);

    /// Clears the device command block; the info block never changes.
    void reset() { command_ = {}; }

  private:
    void run_command();

    const Clock& clock_;
    DeviceCommandHandler& handler_;
    wire::ionic::DeviceInfoRegisters info_{};
    wire::ionic::DeviceCommandRegisters command_{};
};

}  // namespace ernic::ionic
