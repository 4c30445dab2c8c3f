// SPDX-License-Identifier: MIT
#include "pci/msix.hpp"

#include <bit>
#include <cstddef>

#include "wire/pci.hpp"

namespace ernic::pci {
namespace {

constexpr std::size_t kWordBits = 64;

}  // namespace

Msix::Msix(Host& host, std::uint16_t vectors)
    : host_(host), vectors_(vectors), pending_((vectors + kWordBits - 1) / kWordBits) {
}

bool Msix::open() const {
    return enabled_ && !masked_ && bus_master_;
}

void Msix::raise(std::uint16_t vector) {
    if (vector >= vectors_) {
        counters_.invalid.add();
        return;
    }
    counters_.raised.add();
    if (open() && host_.send_msix(vector)) {
        counters_.sent.add();
        return;
    }
    counters_.held.add();
    pending_[vector / kWordBits] |= 1ULL << (vector % kWordBits);
}

void Msix::set_control(std::uint16_t control) {
    enabled_ = (control & wire::pci::kMsixEnable) != 0;
    masked_ = (control & wire::pci::kMsixFunctionMask) != 0;
    send_pending();
}

void Msix::set_bus_master(bool on) {
    bus_master_ = on;
    send_pending();
}

void Msix::vector_ready(std::uint16_t vector) {
    if (pending(vector) && open() && host_.send_msix(vector)) {
        counters_.sent.add();
        pending_[vector / kWordBits] &= ~(1ULL << (vector % kWordBits));
    }
}

void Msix::send_pending() {
    if (!open()) {
        return;
    }
    for (std::size_t word = 0; word < pending_.size(); ++word) {
        for (std::uint64_t rest = pending_[word]; rest != 0; rest &= rest - 1) {
            vector_ready(
                static_cast<std::uint16_t>(word * kWordBits + static_cast<unsigned>(std::countr_zero(rest))));
        }
    }
}

void Msix::read_pba(std::uint64_t offset, MutableBytes out) const {
    for (std::size_t i = 0; i < out.size(); ++i) {
        const std::uint64_t at = offset + i;
        const std::uint64_t word = at / 8;
        out[i] =
            word < pending_.size() ? static_cast<std::byte>(pending_[word] >> (at % 8 * 8)) : std::byte{0};
    }
}

bool Msix::pending(std::uint16_t vector) const {
    return vector < vectors_ && (pending_[vector / kWordBits] >> (vector % kWordBits) & 1U) != 0;
}

void Msix::reset() {
    enabled_ = false;
    masked_ = false;
    bus_master_ = false;
    pending_.assign(pending_.size(), 0);
}

void Msix::register_in(metrics::Registry& registry, const std::string& prefix) const {
    registry.add({prefix + ".raised", "interrupts", "Interrupts the device wanted to raise."},
                 counters_.raised);
    registry.add({prefix + ".sent", "interrupts", "Interrupts handed to the VMM."}, counters_.sent);
    registry.add(
        {prefix + ".held", "interrupts",
         "Interrupts that had to wait because MSI-X or bus mastering was off or the vector had no eventfd."},
        counters_.held);
    registry.add({prefix + ".invalid", "interrupts",
                  "Interrupts for a vector outside the MSI-X table; the guest chose it."},
                 counters_.invalid);
}

}  // namespace ernic::pci
