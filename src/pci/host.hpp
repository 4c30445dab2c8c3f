// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "mem/guest_memory.hpp"

namespace ernic::pci {

/// What a PCI function may ask of the machine it is plugged into. Implemented by vfio_user::Server and by
/// fakes.
class Host {
  public:
    virtual ~Host() = default;

    /// The guest's memory as this function may reach it. Lives as long as the host.
    /// Thread: device. Fails: never (lookups in it may).
    virtual mem::GuestMemory& memory() = 0;

    /// Sends the MSI-X message of `vector` now. The function's Msix has already dealt with masks and pending
    /// bits. Returns false when the vector has no receiver (no eventfd): the caller keeps it pending. Thread:
    /// device. Fails: as said.
    virtual bool send_msix(std::uint16_t vector) = 0;

    /// The guest's driver has surely written around `iova` (its first admin queue, say): the host may compare
    /// its view of that page with the guest's, to find out that the VM's memory is not really shared. The
    /// verdict comes later, in the log. Thread: device. Fails: never.
    virtual void verify_shared_memory(mem::Iova /*iova*/) {}
};

}  // namespace ernic::pci
