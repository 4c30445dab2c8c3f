// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "pci/msix.hpp"

namespace ernic::ionic {

/// The interrupt control registers: one set of 32 bytes per MSI-X vector, and the rules when a vector fires.
///
/// A vector serves one kind of producer at a time. *Completions* (admin, notify, TX and RX rings) are counted
/// as credits, which the driver returns when it has consumed them; the vector fires while credits are left
/// and it is not masked. *Events* (RDMA event queues) are a pending flag, because the driver does not return
/// one credit per event
/// (`ionic_rdma` 7.2, ionic_poll_eq_isr). Coalescing time is accepted and ignored: a vector fires at once.
/// Thread: device.
class Interrupts {
  public:
    /// `msix` must outlive this and have at least `vectors` entries.
    Interrupts(pci::Msix& msix, std::uint16_t vectors) : msix_(msix), vectors_(vectors) {}

    [[nodiscard]] std::uint16_t count() const { return static_cast<std::uint16_t>(vectors_.size()); }

    /// One completion of an Ethernet-side ring has become visible to the guest. Fails: ignored when out of
    /// range.
    void post_completion(std::uint16_t vector) { post_completions(vector, 1); }
    void post_completions(std::uint16_t vector, std::uint32_t events);

    /// At least one RDMA event has become visible to the guest. Fails: ignored when out of range.
    void post_event(std::uint16_t vector);

    /// Called when the guest unmasks a vector in event mode on which nothing is pending: it has read
    /// everything that was posted (`ionic_rdma` 7.2 unmasks only after it found its queue empty). May post
    /// again.
    void on_event_unmask(std::function<void(std::uint16_t vector)> handler) {
        event_unmask_ = std::move(handler);
    }

    /// Guest access to the register file; `offset` counts from its start. Any width; bytes outside read 0.
    void read(std::uint32_t offset, MutableBytes out) const;
    void write(std::uint32_t offset, Bytes data);

    /// Every vector masked, without credits or pending events.
    void reset();

  private:
    struct Vector {
        std::uint32_t coalesce_init = 0;
        std::uint32_t credits = 0;
        bool masked = true;
        bool mask_on_assert = false;
        /// Served by an RDMA event queue: `pending` counts instead of `credits`.
        bool event_mode = false;
        bool pending = false;
        /// Something was posted since the vector last fired.
        bool posted_since_fire = false;
    };

    void unmask(std::uint16_t vector);
    void fire_if_due(std::uint16_t vector);
    void write_register(std::uint16_t vector, std::uint32_t index, std::uint32_t value,
                        std::uint32_t bytes_given);
    void write_credits(std::uint16_t vector, std::uint32_t value);
    [[nodiscard]] static std::uint32_t read_register(const Vector& state, std::uint32_t index);

    pci::Msix& msix_;
    std::vector<Vector> vectors_;
    std::function<void(std::uint16_t)> event_unmask_;
};

}  // namespace ernic::ionic
