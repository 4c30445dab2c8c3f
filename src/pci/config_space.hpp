// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/bytes.hpp"
#include "pci/function.hpp"
#include "wire/pci.hpp"

namespace ernic::pci {

/// Encodings of the PCI Express Link Capabilities register.
enum class LinkSpeed : std::uint8_t { Gen1 = 1, Gen2 = 2, Gen3 = 3, Gen4 = 4, Gen5 = 5 };

/// One 64-bit memory BAR; it occupies its index and the next one. Size 0: not implemented.
struct BarParameters {
    std::uint64_t size = 0;  // a power of two, at least 4 KiB (QEMU aborts on anything else)
    bool prefetchable = true;
};

/// Where MSI-X table and PBA lie.
struct MsixParameters {
    std::uint16_t vectors = 32;
    std::uint8_t bar = 0;
    std::uint32_t table_offset = 0x8000;
    /// 2048 vectors need a 32 KiB table, so the PBA of a big device must move up; see ConfigSpace's
    /// preconditions.
    std::uint32_t pba_offset = 0xc000;
};

/// What a function's configuration space says about it.
struct ConfigParameters {
    std::uint16_t vendor = 0x1dd8;
    std::uint16_t device = 0x1002;
    std::uint16_t subsystem_vendor = 0x1dd8;
    std::uint16_t subsystem = 0x5400;
    std::uint32_t class_code = 0x020000;  // Ethernet controller
    std::uint8_t revision = 0;
    /// BAR0: registers, with MSI-X above the 32 KiB register window. BAR2: doorbell pages. BAR4 stays absent,
    /// because the ionic driver takes any memory BAR at index 4 for a controller memory buffer.
    std::array<BarParameters, kBarCount> bars{{{0x10000}, {}, {0x400000}, {}, {}, {}}};
    MsixParameters msix;
    LinkSpeed link_speed = LinkSpeed::Gen4;
    std::uint8_t link_width = 16;
    std::uint64_t serial_number = 0;
};

/// The 4 KiB configuration space of a PCIe endpoint: header, PM, MSI-X and PCIe v2 capabilities, AER and
/// serial number; write masks, write-one-to-clear bits and BAR sizing. INTx is not offered (interrupt pin 0),
/// because QEMU would then install and re-install eventfds for it (vfio-user reference, rule 12). Owns the
/// bytes. Thread: device.
class ConfigSpace {
  public:
    /// Offsets of the capabilities, the order QEMU and lspci walk them.
    static constexpr std::uint32_t kPm = 0x40;
    static constexpr std::uint32_t kMsix = 0x50;
    static constexpr std::uint32_t kExpress = 0x60;
    static constexpr std::uint32_t kAer = 0x100;
    static constexpr std::uint32_t kSerial = 0x150;

    /// Preconditions (asserted): BAR sizes are powers of two; table and PBA lie in their BAR without overlap,
    /// 8-byte aligned; 1..2048 vectors. QEMU refuses or aborts otherwise, and these are our own constants.
    explicit ConfigSpace(const ConfigParameters& parameters);

    /// Fails: never; bytes outside the 4096 read as zero.
    void read(std::uint32_t offset, MutableBytes out) const;

    /// Applies masks, then tells the callbacks what changed: command, MSI-X control, and last FLR, whose
    /// handler is expected to call reset(). Any width and alignment; a part outside the 4096 bytes is
    /// ignored. Fails: never.
    void write(std::uint32_t offset, Bytes data);

    /// Power-on values; callbacks are told about a changed command or MSI-X control, so that BME and MSI-X go
    /// off.
    void reset();

    /// New value of COMMAND, called when it changed. The function switches mem::GuestMemory::set_enabled with
    /// kCommandBusMaster, because access to mapped memory does not pass anything else that could check it.
    void on_command(std::function<void(std::uint16_t command)> handler) {
        command_handler_ = std::move(handler);
    }
    /// New value of the MSI-X message control word, called when it changed.
    void on_msix_control(std::function<void(std::uint16_t control)> handler) {
        msix_handler_ = std::move(handler);
    }
    /// The guest set Initiate Function Level Reset (also by a 1-byte write of the register's upper byte).
    void on_flr(std::function<void()> handler) { flr_handler_ = std::move(handler); }

    [[nodiscard]] std::uint16_t command() const;
    [[nodiscard]] std::uint16_t msix_control() const;
    /// Address the guest gave to a BAR. A VMM may keep BARs to itself (QEMU does) and leave this 0.
    [[nodiscard]] std::uint64_t bar_address(unsigned bar) const;
    [[nodiscard]] std::uint64_t bar_size(unsigned bar) const { return bar < kBarCount ? bars_[bar].size : 0; }
    [[nodiscard]] const MsixParameters& msix() const { return msix_; }

  private:
    using Image = std::array<std::byte, wire::pci::kConfigSize>;
    struct Images {
        Image value{};
        Image power_on{};
        Image writable{};
        Image clear{};  // write one to clear
    };

    template <typename T>
    void place(std::uint32_t offset, const T& initial, const T& writable, const T& clear);
    template <typename T>
    [[nodiscard]] T load(std::uint32_t offset) const;
    void build_header(const ConfigParameters& parameters);
    void build_power_management();
    void build_msix();
    void build_express(const ConfigParameters& parameters);
    void build_extended(const ConfigParameters& parameters);
    void tell_changes(std::uint16_t old_command, std::uint16_t old_msix);

    std::unique_ptr<Images> images_;
    std::array<BarParameters, kBarCount> bars_;
    MsixParameters msix_;
    std::function<void(std::uint16_t)> command_handler_;
    std::function<void(std::uint16_t)> msix_handler_;
    std::function<void()> flr_handler_;
};

}  // namespace ernic::pci
