// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

#include "base/event_loop.hpp"
#include "mem/guest_memory.hpp"
#include "net/segment.hpp"
#include "rdma/engine.hpp"
#include "wire/ethernet.hpp"

namespace ernic::rdma {

/// The RDMA port of a service of this process, beside the guest's card on the segment: an engine whose
/// "guest memory" is the process's own. Its queue pairs (ServiceQueue) name their memory by address, so a
/// transfer goes straight from there to the peer's pages or from those. A peer reaches none of it without a
/// key of the service.
/// Thread: device.
class Endpoint {
  public:
    struct Limits {
        /// Besides the one for management.
        std::uint32_t queue_pairs = 0;
        std::uint32_t address_handles = 0;
        /// Keys by which peers may reach memory, if the service gives them any.
        std::uint32_t memory_regions = 0;
    };

    /// Owns `mac` on the segment. All references must outlive this.
    Endpoint(net::Segment& segment, EventLoop& loop, const wire::MacAddress& mac, const Limits& limits);
    Endpoint(const Endpoint&) = delete;
    Endpoint& operator=(const Endpoint&) = delete;

    [[nodiscard]] Engine& engine() { return engine_; }
    [[nodiscard]] const Limits& limits() const { return limits_; }

    /// A number for a new queue pair, other than those used last, so that nobody takes what is still under
    /// way to an old one for his own. Fails: nullopt when there are limits().queue_pairs.
    [[nodiscard]] std::optional<std::uint32_t> free_qpn();

    /// One budgeted piece of work; true while there is more.
    bool step() { return engine_.step(); }

  private:
    Limits limits_;
    mem::GuestMemory memory_;
    Engine engine_;
    std::uint32_t last_qpn_;
};

}  // namespace ernic::rdma
