// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "base/bytes.hpp"

namespace ernic::pci {

inline constexpr unsigned kBarCount = 6;

/// A PCIe function as a VMM sees it: config space, BARs, reset. vfio_user::Server drives one; ionic::Card is
/// one. Thread: the device thread for every call. Guest-made offsets and sizes are checked by the caller
/// against bar_size().
class Function {
  public:
    virtual ~Function() = default;

    /// Size in bytes (a power of two) of BAR `bar`, 0 when not implemented or the upper half of a 64-bit BAR.
    /// Thread: device. Fails: never.
    [[nodiscard]] virtual std::uint64_t bar_size(unsigned bar) const = 0;

    /// Guest load from a BAR: fills all of `out` (unknown registers read as 0).
    /// Thread: device. Fails: never.
    virtual void bar_read(unsigned bar, std::uint64_t offset, MutableBytes out) = 0;

    /// Guest store to a BAR (1..8 bytes, or more in one message). Must not block.
    /// Thread: device. Fails: never (bad values are counted and ignored).
    virtual void bar_write(unsigned bar, std::uint64_t offset, Bytes data) = 0;

    /// Config space, 4096 bytes; `offset + size` is already checked. Write masks are applied inside.
    /// Thread: device. Fails: never.
    virtual void config_read(std::uint32_t offset, MutableBytes out) = 0;
    virtual void config_write(std::uint32_t offset, Bytes data) = 0;

    /// Number of MSI-X vectors (the table size).
    /// Thread: device. Fails: never.
    [[nodiscard]] virtual std::uint16_t msix_vectors() const = 0;

    /// The receiver of `vector` has become available (an eventfd was installed): pending interrupts must be
    /// replayed. Thread: device. Fails: never.
    virtual void msix_vector_ready(std::uint16_t vector) = 0;

    /// Power-on state, all DMA stopped before it returns. Used for DEVICE_RESET, FLR and a departed client.
    /// Thread: device. Fails: never.
    virtual void reset() = 0;
};

}  // namespace ernic::pci
