// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "metrics/registry.hpp"
#include "pci/host.hpp"

namespace ernic::pci {

/// MSI-X of one function: a pending bit per vector, and the rule that an interrupt that cannot be delivered
/// now (disabled, function masked, bus mastering off, no receiver) is kept and sent later, once.
///
/// The table itself stays with the VMM: QEMU answers guest accesses to it and never forwards them, so
/// per-vector masks, addresses and data are invisible here. QEMU keeps interrupts for masked vectors pending
/// by itself. Thread: device. Fails: never.
class Msix {
  public:
    Msix(Host& host, std::uint16_t vectors);

    /// Wants an interrupt on `vector` (MSI-X table index). An unknown vector is counted and ignored: it came
    /// from the guest.
    void raise(std::uint16_t vector);

    /// Message control word of the capability, from ConfigSpace::on_msix_control.
    void set_control(std::uint16_t control);
    /// COMMAND.BME, from ConfigSpace::on_command: an MSI-X message is a memory write of the function.
    void set_bus_master(bool on);
    /// From Function::msix_vector_ready: the vector has a receiver again.
    void vector_ready(std::uint16_t vector);

    /// Guest load from the pending bit array; `offset` counts from its start, bytes past its end are zero.
    void read_pba(std::uint64_t offset, MutableBytes out) const;

    /// Forgets pending bits, enable, mask and bus mastering (power-on state).
    void reset();

    [[nodiscard]] std::uint16_t vectors() const { return vectors_; }
    [[nodiscard]] bool pending(std::uint16_t vector) const;

    /// Adds the counters as `<prefix>.raised` and so on. The registry must not be read after this object is
    /// gone.
    void register_in(metrics::Registry& registry, const std::string& prefix) const;

  private:
    [[nodiscard]] bool open() const;
    void send_pending();

    struct Counters {
        metrics::Counter raised;
        metrics::Counter sent;
        metrics::Counter held;
        metrics::Counter invalid;
    };

    Host& host_;
    std::uint16_t vectors_;
    bool enabled_ = false;
    bool masked_ = false;
    bool bus_master_ = false;
    std::vector<std::uint64_t> pending_;  // bit v % 64 of word v / 64, the layout of the PBA
    Counters counters_;
};

}  // namespace ernic::pci
