// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>

#include "wire/ionic_device.hpp"

namespace ernic::ionic {

/// The RDMA half of the LIF as the Ethernet half sees it. Thread: device.
class RdmaDevice {
  public:
    virtual ~RdmaDevice() = default;

    /// Device command 50: forgets every RDMA object and stops all RDMA DMA before returning. Also for
    /// LIF_RESET, RESET, FLR. Thread: device. Fails: never.
    virtual void reset() = 0;

    /// AdminQ commands 51, 52, 53 (RDMA_CREATE_EQ / _CQ / _ADMINQ), told apart by their opcode byte.
    /// Thread: device. Fails: a device command status other than Success.
    virtual wire::ionic::Status create_queue(const wire::ionic::RdmaQueueCommand& command) = 0;

    /// A doorbell on page `dbid` in the slot of one of the RDMA queue types.
    /// Thread: device. Fails: never (nonsense is counted and ignored).
    virtual void doorbell(std::uint8_t queue_type, std::uint32_t dbid, std::uint64_t value) = 0;

    /// One budgeted step of pending work; true while there is more.
    /// Thread: device. Fails: never.
    virtual bool step() = 0;

    /// The guest has unmasked interrupt `vector` and has no pending event on it: it has read the event queues
    /// of this vector empty. Called by Interrupts' owner. Thread: device. Fails: never.
    virtual void vector_unmasked(std::uint16_t vector) = 0;

    /// The unicast MAC addresses the interface listens to now, its permanent one first.
    /// Thread: device. Fails: never.
    virtual void set_macs(std::span<const wire::MacAddress> macs) = 0;

    /// The interface's MTU (without Ethernet header), which bounds datagrams. Default: 1500.
    /// Thread: device. Fails: never.
    virtual void set_mtu(std::uint32_t mtu) = 0;
};

}  // namespace ernic::ionic
