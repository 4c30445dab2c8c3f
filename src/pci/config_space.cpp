// SPDX-License-Identifier: MIT
#include "pci/config_space.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

namespace ernic::pci {
namespace {

namespace w = wire::pci;

constexpr std::uint32_t kCommandOffset = offsetof(w::ConfigHeader, command);
constexpr std::uint32_t kMsixControlOffset = ConfigSpace::kMsix + offsetof(w::MsixCapability, control);
constexpr std::uint32_t kDeviceControlHigh =
    ConfigSpace::kExpress + offsetof(w::ExpressCapability, device_control) + 1;

// Bits Linux is seen to write (vfio-user reference 4.2): memory, bus master, parity, SERR, INTx disable, and
// I/O, which is kept writable because VMMs write 0x0007 back and compare.
constexpr std::uint16_t kCommandWritable = 0x0547;
constexpr std::uint16_t kDeviceControlWritable = 0x7fff;
constexpr std::uint16_t kLinkControlWritable = 0x0fff;

[[maybe_unused]] bool valid(const BarParameters& bar, bool upper_half_free) {
    return bar.size == 0 || (std::has_single_bit(bar.size) && bar.size >= 4096 && upper_half_free);
}

[[maybe_unused]] bool valid(const ConfigParameters& parameters) {
    for (unsigned bar = 0; bar < kBarCount; ++bar) {
        const bool upper_half_free = bar + 1 < kBarCount && parameters.bars[bar + 1].size == 0;
        if (!valid(parameters.bars[bar], upper_half_free)) {
            return false;
        }
    }
    const MsixParameters& msix = parameters.msix;
    if (msix.vectors < 1 || msix.vectors > w::kMsixMaxVectors || msix.bar >= kBarCount) {
        return false;
    }
    const std::uint64_t table_end = msix.table_offset + std::uint64_t{msix.vectors} * w::kMsixEntrySize;
    const std::uint64_t pba_end = msix.pba_offset + (std::uint64_t{msix.vectors} + 63) / 64 * 8;
    const std::uint64_t bar_size = parameters.bars[msix.bar].size;
    return msix.table_offset % 8 == 0 && msix.pba_offset % 8 == 0 && table_end <= bar_size &&
           pba_end <= bar_size && (table_end <= msix.pba_offset || pba_end <= msix.table_offset);
}

}  // namespace

ConfigSpace::ConfigSpace(const ConfigParameters& parameters)
    : images_(std::make_unique<Images>()), bars_(parameters.bars), msix_(parameters.msix) {
    assert(valid(parameters));
    build_header(parameters);
    build_power_management();
    build_msix();
    build_express(parameters);
    build_extended(parameters);
    images_->value = images_->power_on;
}

template <typename T>
void ConfigSpace::place(std::uint32_t offset, const T& initial, const T& writable, const T& clear) {
    std::memcpy(images_->power_on.data() + offset, &initial, sizeof(T));
    std::memcpy(images_->writable.data() + offset, &writable, sizeof(T));
    std::memcpy(images_->clear.data() + offset, &clear, sizeof(T));
}

template <typename T>
T ConfigSpace::load(std::uint32_t offset) const {
    T value;
    std::memcpy(&value, images_->value.data() + offset, sizeof(T));
    return value;
}

void ConfigSpace::build_header(const ConfigParameters& parameters) {
    w::ConfigHeader initial{};
    w::ConfigHeader writable{};
    w::ConfigHeader clear{};
    initial.vendor.set(parameters.vendor);
    initial.device.set(parameters.device);
    initial.status.set(w::kStatusCapabilities);
    clear.status.set(w::kStatusErrors);
    writable.command.set(kCommandWritable);
    initial.revision = parameters.revision;
    for (unsigned i = 0; i < 3; ++i) {
        initial.class_code[i] = static_cast<std::uint8_t>(parameters.class_code >> (8 * i));
    }
    writable.cache_line = 0xff;
    writable.interrupt_line = 0xff;
    for (unsigned bar = 0; bar < kBarCount; ++bar) {
        const BarParameters& wanted = parameters.bars[bar];
        if (wanted.size != 0) {
            // Sizing: address bits below the size are read-only zero, so writing ones reads back the mask.
            const std::uint64_t mask = ~(wanted.size - 1);
            initial.bars[bar].set(w::kBar64Bit | (wanted.prefetchable ? w::kBarPrefetchable : 0));
            writable.bars[bar].set(static_cast<std::uint32_t>(mask));
            writable.bars[bar + 1].set(static_cast<std::uint32_t>(mask >> 32U));
        }
    }
    initial.subsystem_vendor.set(parameters.subsystem_vendor);
    initial.subsystem.set(parameters.subsystem);
    initial.capabilities = kPm;
    place(0, initial, writable, clear);
}

void ConfigSpace::build_power_management() {
    w::PmCapability initial{};
    w::PmCapability writable{};
    initial.id = w::kCapabilityPm;
    initial.next = kMsix;
    initial.capabilities.set(w::kPmVersion3);
    initial.control.set(w::kPmNoSoftReset);
    writable.control.set(w::kPmStateMask);
    place(kPm, initial, writable, w::PmCapability{});
}

void ConfigSpace::build_msix() {
    w::MsixCapability initial{};
    w::MsixCapability writable{};
    initial.id = w::kCapabilityMsix;
    initial.next = kExpress;
    initial.control.set(static_cast<std::uint16_t>(msix_.vectors - 1));
    initial.table.set(msix_.table_offset | msix_.bar);
    initial.pba.set(msix_.pba_offset | msix_.bar);
    writable.control.set(w::kMsixEnable | w::kMsixFunctionMask);
    place(kMsix, initial, writable, w::MsixCapability{});
}

void ConfigSpace::build_express(const ConfigParameters& parameters) {
    w::ExpressCapability initial{};
    w::ExpressCapability writable{};
    w::ExpressCapability clear{};
    const auto speed = static_cast<std::uint32_t>(parameters.link_speed);
    const std::uint32_t width = parameters.link_width;
    initial.id = w::kCapabilityExpress;
    initial.capabilities.set(w::kExpressVersion2);
    initial.device_capabilities.set(w::kDeviceCapMaxPayload256 | w::kDeviceCapExtendedTag |
                                    w::kDeviceCapRoleBasedErrors | w::kDeviceCapFlr);
    initial.device_control.set(w::kDeviceControlDefault);
    writable.device_control.set(kDeviceControlWritable);  // bit 15 (FLR) always reads 0
    clear.device_status.set(w::kDeviceStatusErrors);
    // Bit 22: ASPM optionality compliance, required of every component since revision 3.0.
    initial.link_capabilities.set(speed | width << 4U | 1U << 22U);
    writable.link_control.set(kLinkControlWritable);
    initial.link_status.set(static_cast<std::uint16_t>(speed | width << 4U));
    writable.device_control2.set(0xffff);
    initial.link_capabilities2.set(((1U << speed) - 1) << 1U);  // one bit per supported speed, from bit 1
    initial.link_control2.set(static_cast<std::uint16_t>(speed));
    writable.link_control2.set(0xffff);
    place(kExpress, initial, writable, clear);
}

void ConfigSpace::build_extended(const ConfigParameters& parameters) {
    w::AerCapability initial{};
    w::AerCapability writable{};
    w::AerCapability clear{};
    initial.header = w::extended_header(w::kExtendedAer, 2, kSerial);
    clear.uncorrectable_status.set(w::kAerUncorrectable);
    writable.uncorrectable_mask.set(w::kAerUncorrectable);
    initial.uncorrectable_severity.set(w::kAerSeverityDefault);
    writable.uncorrectable_severity.set(w::kAerUncorrectable);
    clear.correctable_status.set(w::kAerCorrectable);
    initial.correctable_mask.set(w::kAerCorrectableMaskDefault);
    writable.correctable_mask.set(w::kAerCorrectable);
    // ECRC generation and check are not offered (capability bits 5 and 7 are 0), but Linux stores the
    // register as a whole.
    writable.control.set(0x00000140);
    place(kAer, initial, writable, clear);

    w::SerialCapability serial{};
    serial.header = w::extended_header(w::kExtendedSerial, 1, 0);
    serial.serial.set(parameters.serial_number);
    place(kSerial, serial, w::SerialCapability{}, w::SerialCapability{});
}

void ConfigSpace::read(std::uint32_t offset, MutableBytes out) const {
    std::fill(out.begin(), out.end(), std::byte{0});
    if (offset < w::kConfigSize) {
        const std::size_t size = std::min<std::size_t>(out.size(), w::kConfigSize - offset);
        std::memcpy(out.data(), images_->value.data() + offset, size);
    }
}

void ConfigSpace::write(std::uint32_t offset, Bytes data) {
    const std::uint16_t old_command = command();
    const std::uint16_t old_msix = msix_control();
    bool flr = false;
    for (std::size_t i = 0; i < data.size() && offset + i < w::kConfigSize; ++i) {
        const std::size_t at = offset + i;
        std::byte& value = images_->value[at];
        const std::byte writable = images_->writable[at];
        value = (value & ~writable) | (data[i] & writable);
        value &= ~(data[i] & images_->clear[at]);
        if (at == kDeviceControlHigh && (data[i] & std::byte{w::kDeviceControlFlr >> 8U}) != std::byte{0}) {
            flr = true;
        }
    }
    tell_changes(old_command, old_msix);
    if (flr && flr_handler_) {
        flr_handler_();
    }
}

void ConfigSpace::reset() {
    const std::uint16_t old_command = command();
    const std::uint16_t old_msix = msix_control();
    images_->value = images_->power_on;
    tell_changes(old_command, old_msix);
}

void ConfigSpace::tell_changes(std::uint16_t old_command, std::uint16_t old_msix) {
    // The command comes first: an MSI-X enable in the same write may only send messages if bus mastering is
    // on.
    if (command() != old_command && command_handler_) {
        command_handler_(command());
    }
    if (msix_control() != old_msix && msix_handler_) {
        msix_handler_(msix_control());
    }
}

std::uint16_t ConfigSpace::command() const {
    return load<le16>(kCommandOffset).get();
}

std::uint16_t ConfigSpace::msix_control() const {
    return load<le16>(kMsixControlOffset).get();
}

std::uint64_t ConfigSpace::bar_address(unsigned bar) const {
    if (bar >= kBarCount || bars_[bar].size == 0) {
        return 0;
    }
    const auto header = load<w::ConfigHeader>(0);
    return (header.bars[bar].get() & ~0xfU) | static_cast<std::uint64_t>(header.bars[bar + 1].get()) << 32U;
}

}  // namespace ernic::pci
