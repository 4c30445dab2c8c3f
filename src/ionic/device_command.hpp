// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <utility>

#include "base/log.hpp"
#include "ionic/admin_command.hpp"
#include "ionic/device_registers.hpp"
#include "ionic/lif.hpp"
#include "ionic/port.hpp"
#include "ionic/profile.hpp"
#include "metrics/registry.hpp"

namespace ernic::ionic {

/// Decodes and executes the commands of the device command registers. Thread: device.
class DeviceCommands final : public DeviceCommandHandler {
  public:
    /// What it can ask of the card beyond LIF and port.
    struct Hooks {
        /// RESET: everything but the register block itself.
        std::function<void()> reset_card;
        /// LIF_RESET: the LIF, its interrupts, and RDMA.
        std::function<void()> reset_lif;
        /// Whether RDMA is there to be advertised.
        std::function<bool()> has_rdma;
    };

    /// Everything passed must outlive this.
    DeviceCommands(const Profile& profile, Lif& lif, Port& port, AdminCommands& admin, Hooks hooks,
                   const log::Logger& log)
        : profile_(profile), lif_(lif), port_(port), admin_(admin), hooks_(std::move(hooks)), log_(log) {}

    void execute(const wire::ionic::Command& command, wire::ionic::Completion& completion,
                 MutableBytes data) override;

    void register_in(metrics::Registry& registry) const;

  private:
    wire::ionic::Status dispatch(const wire::ionic::Command& command, wire::ionic::Completion& completion,
                                 MutableBytes data);
    wire::ionic::Status identify(MutableBytes data);
    wire::ionic::Status identify_lif(const wire::ionic::Command& command, MutableBytes data);
    wire::ionic::Status identify_queue(const wire::ionic::Command& command,
                                       wire::ionic::Completion& completion, MutableBytes data);
    wire::ionic::Status init_lif(const wire::ionic::Command& command, wire::ionic::Completion& completion);

    const Profile& profile_;
    Lif& lif_;
    Port& port_;
    AdminCommands& admin_;
    Hooks hooks_;
    log::Logger log_;
    log::Limiter limiter_;
    log::Limiter identity_limiter_;
    metrics::Counter succeeded_;
    metrics::Counter failed_;
};

}  // namespace ernic::ionic
