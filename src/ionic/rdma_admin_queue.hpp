// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "base/log.hpp"
#include "ionic/rdma_commands.hpp"
#include "ionic/rdma_objects.hpp"
#include "mem/ring.hpp"

namespace ernic::ionic {

/// One RDMA admin queue: commands of one or two 64-byte slots, completed strictly in order (the driver drops
/// any completion that is not for its oldest command; `ionic_rdma` 7.2, ionic_admin_poll_locked). Thread:
/// device.
class RdmaAdminQueue {
  public:
    /// `limiter` outlives the queue: the guest can make queues as often as it likes, but no more lines than
    /// one a second.
    RdmaAdminQueue(RdmaObjects& objects, RdmaCommands& commands, log::Logger log, log::Limiter& limiter,
                   std::uint32_t id, std::uint32_t cq_id, mem::Ring ring)
        : objects_(objects),
          commands_(commands),
          log_(std::move(log)),
          limiter_(limiter),
          id_(id),
          cq_id_(cq_id),
          ring_(std::move(ring)) {}

    void doorbell(std::uint16_t producer_index);

    /// Runs one command if there is one and its completion has room; true when it ran one.
    bool step();

  private:
    RdmaObjects& objects_;
    RdmaCommands& commands_;
    log::Logger log_;
    log::Limiter& limiter_;
    std::uint32_t id_;
    std::uint32_t cq_id_;
    mem::Ring ring_;
    std::uint32_t producer_ = 0;
    std::uint32_t consumer_ = 0;
};

}  // namespace ernic::ionic
