// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

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

    enum class Progress : std::uint8_t {
        Idle,     ///< there was no command, or no room for its completion
        Partial,  ///< the command goes on with the next step
        Done,
    };
    /// Runs one command, or a piece of it.
    Progress step();

  private:
    /// Reads the next command. Fails: false when it is not there as a whole.
    bool fetch();

    RdmaObjects& objects_;
    RdmaCommands& commands_;
    log::Logger log_;
    log::Limiter& limiter_;
    std::uint32_t id_;
    std::uint32_t cq_id_;
    mem::Ring ring_;
    std::uint32_t producer_ = 0;
    std::uint32_t consumer_ = 0;
    /// The command under way: its copy, which the guest cannot change any more, and how much of it is body
    /// (nullopt: more than can be), and the slots it takes.
    bool running_ = false;
    std::array<std::byte, 2 * wire::ionic_rdma::kAdminSlotSize> slots_{};
    wire::ionic_rdma::AdminHeader header_{};
    std::optional<std::size_t> body_size_;
    std::uint32_t used_ = 0;
    RdmaCommands::Tables tables_;
};

}  // namespace ernic::ionic
