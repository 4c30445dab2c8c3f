// SPDX-License-Identifier: MIT
#pragma once

#include "base/log.hpp"
#include "ionic/admin_queue.hpp"
#include "ionic/lif.hpp"
#include "ionic/rdma_device.hpp"
#include "metrics/registry.hpp"

namespace ernic::ionic {

/// Decodes and executes the commands of the admin queue. Those that the device command registers take as well
/// (all but RDMA queue creation) arrive by execute_common. Thread: device.
class AdminCommands final : public AdminCommandHandler {
  public:
    AdminCommands(Lif& lif, const log::Logger& log) : lif_(lif), log_(log) {}

    /// `rdma` may be null; it must outlive this or be detached before.
    void attach_rdma(RdmaDevice* rdma) { rdma_ = rdma; }

    void execute(const wire::ionic::Command& command, wire::ionic::Completion& completion) override;

    /// Commands that both channels take. Fails: BadOpcode for all others.
    wire::ionic::Status execute_common(const wire::ionic::Command& command,
                                       wire::ionic::Completion& completion);

    /// Q_INIT of any queue.
    wire::ionic::Status init_queue(const wire::ionic::Command& command, wire::ionic::Completion& completion);

    /// The RDMA half listens to the addresses the filters let in. Also after the filters were cleared.
    void addresses_changed();

    void register_in(metrics::Registry& registry) const;

  private:
    wire::ionic::Status dispatch(const wire::ionic::Command& command, wire::ionic::Completion& completion);
    wire::ionic::Status create_rdma_queue(const wire::ionic::Command& command);

    Lif& lif_;
    RdmaDevice* rdma_ = nullptr;
    log::Logger log_;
    log::Limiter limiter_;
    metrics::Counter succeeded_;
    metrics::Counter failed_;
};

}  // namespace ernic::ionic
