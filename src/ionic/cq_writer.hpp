// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "base/bytes.hpp"
#include "ionic/event_queue.hpp"
#include "mem/guest_memory.hpp"
#include "mem/ring.hpp"
#include "wire/ionic_rdma.hpp"

namespace ernic::ionic {

/// One hardware completion queue: the ring, its colour, how far the host has read, and its two arms. One
/// verbs CQ of the guest is two of these. Thread: device.
///
///   consumer (ring 0 doorbell)        producer
///      |  unread by the host             |  free: mask - unread
///      +---------------------------------+------------------------>
class CompletionQueue {
  public:
    struct Identity {
        std::uint32_t id;
        /// Doorbell page that may ring it.
        std::uint16_t dbid;
        /// Event queue it notifies, looked up by the owner at each event.
        std::uint32_t eq_id;
    };

    /// User CQs start armed: the provider defers ibv_req_notify_cq to the next poll or post, so a program
    /// that arms and then blocks would never reach the device (rdma-core 65, ionic_arm_cq).
    CompletionQueue(mem::GuestMemory& memory, mem::Ring ring, const Identity& identity)
        : memory_(memory), ring_(std::move(ring)), identity_(identity), armed_any_(identity.dbid != 0) {}

    enum class Outcome : std::uint8_t { Written, Notify, Overflow, Dead };

    /// Writes one 32-byte CQE whose last word (qid_type_flags) is `flags` without colour; `entry` holds the
    /// rest. Notify asks the caller to post the CQ's event. Overflow (first time, the host did not read)
    /// kills the queue.
    Outcome push(MutableBytes entry, std::uint32_t flags, bool solicited);

    /// A doorbell write; true asks the caller to post the CQ's event at once.
    bool doorbell(std::uint8_t ring, std::uint16_t index);

    /// Entries that fit before the ring is full.
    [[nodiscard]] std::uint32_t space() const { return ring_.mask() - (producer_ - consumer_); }
    [[nodiscard]] const Identity& identity() const { return identity_; }
    /// Page table entries held for the ring.
    [[nodiscard]] std::size_t page_entries() const { return ring_.page_entries(); }

    /// The newest notify event of this queue in its event queue, and whether another one is to follow it
    /// (RdmaObjects::notify).
    struct Notice {
        std::uint64_t number = 0;
        bool owed = false;
    };
    Notice notice;

  private:
    mem::GuestMemory& memory_;
    mem::Ring ring_;
    Identity identity_;
    std::uint32_t producer_ = 0;
    std::uint32_t consumer_ = 0;
    /// One past the newest solicited or failed entry.
    std::uint32_t solicited_end_ = 0;
    bool armed_any_;
    bool armed_solicited_ = false;
    bool dead_ = false;
};

}  // namespace ernic::ionic
