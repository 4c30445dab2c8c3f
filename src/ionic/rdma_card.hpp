// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/event_loop.hpp"
#include "base/log.hpp"
#include "ionic/event_queue.hpp"
#include "ionic/profile.hpp"
#include "ionic/rdma_admin_queue.hpp"
#include "ionic/rdma_commands.hpp"
#include "ionic/rdma_device.hpp"
#include "ionic/rdma_objects.hpp"
#include "metrics/registry.hpp"
#include "net/segment.hpp"
#include "pci/host.hpp"

namespace ernic::ionic {

/// The RDMA half of the card: doorbells in, admin queues, and the verbs engine behind them. Thread: device.
class RdmaCard final : public RdmaDevice {
  public:
    /// All references must outlive this. `mac` is the address the port answers to on the segment.
    RdmaCard(const RdmaProfile& profile, wire::MacAddress mac, pci::Host& host, Interrupts& interrupts,
             EventLoop& loop, net::Segment& segment, metrics::Registry& registry, const log::Logger& log);

    void reset() override;
    wire::ionic::Status create_queue(const wire::ionic::RdmaQueueCommand& command) override;
    void doorbell(std::uint8_t queue_type, std::uint32_t dbid, std::uint64_t value) override;
    bool step() override;
    void vector_unmasked(std::uint16_t vector) override { objects_.serviced(vector); }

    void set_mtu(std::uint32_t mtu) override;
    void set_macs(std::span<const wire::MacAddress> macs) override { engine_.set_macs(macs); }

    rdma::Engine& engine() { return engine_; }
    RdmaObjects& objects() { return objects_; }

  private:
    wire::ionic::Status create_event_queue(const wire::ionic::RdmaQueueCommand& command);
    wire::ionic::Status create_completion_queue(const wire::ionic::RdmaQueueCommand& command);
    wire::ionic::Status create_admin_queue(const wire::ionic::RdmaQueueCommand& command);

    /// Admin commands until they have had their share of a step; true while there are more.
    bool step_commands();
    /// Host memory of destroyed objects, for the same time; true while there is more.
    bool give_back();

    RdmaProfile profile_;
    EventLoop& loop_;
    log::Logger log_;
    log::Limiter admin_limiter_;
    EventQueue::Losses event_losses_;
    rdma::Engine engine_;
    RdmaObjects objects_;
    RdmaCommands commands_;
    std::vector<std::unique_ptr<RdmaAdminQueue>> admin_queues_;
    /// The admin queue whose turn it is.
    std::size_t admin_turn_ = 0;
};

}  // namespace ernic::ionic
