// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/byte_order.hpp"

/// PCI configuration space (PCI Local Bus 3.0, PCI Express Base 5.0 chapter 7): layouts and register bits.
namespace ernic::wire::pci {

inline constexpr std::uint32_t kConfigSize = 4096;

/// Type 0 configuration header.
struct ConfigHeader {
    le16 vendor;
    le16 device;
    le16 command;
    le16 status;
    std::uint8_t revision;
    std::array<std::uint8_t, 3> class_code;  // programming interface, sub-class, base class
    std::uint8_t cache_line;
    std::uint8_t latency_timer;
    std::uint8_t header_type;
    std::uint8_t bist;
    std::array<le32, 6> bars;
    le32 cardbus_cis;
    le16 subsystem_vendor;
    le16 subsystem;
    le32 rom;
    std::uint8_t capabilities;
    std::array<std::uint8_t, 7> reserved;
    std::uint8_t interrupt_line;
    std::uint8_t interrupt_pin;
    std::uint8_t min_grant;
    std::uint8_t max_latency;
};
ERNIC_WIRE(ConfigHeader, 64);
ERNIC_WIRE_AT(ConfigHeader, command, 0x04);
ERNIC_WIRE_AT(ConfigHeader, bars, 0x10);
ERNIC_WIRE_AT(ConfigHeader, subsystem_vendor, 0x2c);
ERNIC_WIRE_AT(ConfigHeader, capabilities, 0x34);
ERNIC_WIRE_AT(ConfigHeader, interrupt_pin, 0x3d);

inline constexpr std::uint16_t kCommandMemory = 0x0002;
inline constexpr std::uint16_t kCommandBusMaster = 0x0004;
inline constexpr std::uint16_t kStatusCapabilities = 0x0010;
/// Error bits of the status register, cleared by writing one.
inline constexpr std::uint16_t kStatusErrors = 0xf900;

inline constexpr std::uint32_t kBar64Bit = 0x4;
inline constexpr std::uint32_t kBarPrefetchable = 0x8;

inline constexpr std::uint8_t kCapabilityPm = 0x01;
inline constexpr std::uint8_t kCapabilityExpress = 0x10;
inline constexpr std::uint8_t kCapabilityMsix = 0x11;

/// Power management capability.
struct PmCapability {
    std::uint8_t id;
    std::uint8_t next;
    le16 capabilities;
    le16 control;
    std::uint8_t bridge;
    std::uint8_t data;
};
ERNIC_WIRE(PmCapability, 8);
ERNIC_WIRE_AT(PmCapability, control, 4);

inline constexpr std::uint16_t kPmVersion3 = 0x0003;
inline constexpr std::uint16_t kPmNoSoftReset = 0x0008;
inline constexpr std::uint16_t kPmStateMask = 0x0003;

/// MSI-X capability. `table` and `pba` carry the BAR number in their low three bits.
struct MsixCapability {
    std::uint8_t id;
    std::uint8_t next;
    le16 control;
    le32 table;
    le32 pba;
};
ERNIC_WIRE(MsixCapability, 12);
ERNIC_WIRE_AT(MsixCapability, control, 2);

inline constexpr std::uint16_t kMsixSizeMask = 0x07ff;
inline constexpr std::uint16_t kMsixFunctionMask = 0x4000;
inline constexpr std::uint16_t kMsixEnable = 0x8000;
inline constexpr std::uint32_t kMsixEntrySize = 16;
inline constexpr std::uint16_t kMsixMaxVectors = 2048;

/// PCI Express capability, version 2, as far as an endpoint has it.
struct ExpressCapability {
    std::uint8_t id;
    std::uint8_t next;
    le16 capabilities;
    le32 device_capabilities;
    le16 device_control;
    le16 device_status;
    le32 link_capabilities;
    le16 link_control;
    le16 link_status;
    le32 slot_capabilities;
    le16 slot_control;
    le16 slot_status;
    le16 root_control;
    le16 root_capabilities;
    le32 root_status;
    le32 device_capabilities2;
    le16 device_control2;
    le16 device_status2;
    le32 link_capabilities2;
    le16 link_control2;
    le16 link_status2;
    le32 slot_capabilities2;
    le16 slot_control2;
    le16 slot_status2;
};
ERNIC_WIRE(ExpressCapability, 60);
ERNIC_WIRE_AT(ExpressCapability, device_control, 0x08);
ERNIC_WIRE_AT(ExpressCapability, link_capabilities, 0x0c);
ERNIC_WIRE_AT(ExpressCapability, link_status, 0x12);
ERNIC_WIRE_AT(ExpressCapability, device_capabilities2, 0x24);
ERNIC_WIRE_AT(ExpressCapability, link_control2, 0x30);

inline constexpr std::uint16_t kExpressVersion2 = 0x0002;
inline constexpr std::uint32_t kDeviceCapMaxPayload256 = 0x0001;
inline constexpr std::uint32_t kDeviceCapExtendedTag = 0x0020;
inline constexpr std::uint32_t kDeviceCapRoleBasedErrors = 0x8000;
inline constexpr std::uint32_t kDeviceCapFlr = 1U << 28U;
inline constexpr std::uint16_t kDeviceControlFlr = 0x8000;
/// Correctable, non-fatal, fatal, unsupported request: cleared by writing one.
inline constexpr std::uint16_t kDeviceStatusErrors = 0x000f;
/// Power-on Device Control: relaxed ordering and no snoop allowed, 512-byte read requests, as the
/// specification says.
inline constexpr std::uint16_t kDeviceControlDefault = 0x2810;

inline constexpr std::uint16_t kExtendedAer = 0x0001;
inline constexpr std::uint16_t kExtendedSerial = 0x0003;

/// Every extended capability starts like this: id in bits 0-15, version in 16-19, next in 20-31.
constexpr le32 extended_header(std::uint16_t id, std::uint8_t version, std::uint16_t next) {
    return le32(id | static_cast<std::uint32_t>(version) << 16U | static_cast<std::uint32_t>(next) << 20U);
}

/// Advanced Error Reporting of an endpoint.
struct AerCapability {
    le32 header;
    le32 uncorrectable_status;
    le32 uncorrectable_mask;
    le32 uncorrectable_severity;
    le32 correctable_status;
    le32 correctable_mask;
    le32 control;
    std::array<le32, 4> header_log;
    std::array<le32, 7> rest;  // root-port registers and TLP prefix log, zero here
};
ERNIC_WIRE(AerCapability, 72);
ERNIC_WIRE_AT(AerCapability, control, 0x18);

/// Error bits an endpoint has in the uncorrectable registers, and the specification's default severities.
inline constexpr std::uint32_t kAerUncorrectable = 0x005ff030;
inline constexpr std::uint32_t kAerSeverityDefault = 0x00462030;
/// Error bits in the correctable registers, and the mask at power-on (advisory non-fatal masked).
inline constexpr std::uint32_t kAerCorrectable = 0x0000f1c1;
inline constexpr std::uint32_t kAerCorrectableMaskDefault = 0x00002000;

/// Device Serial Number.
struct SerialCapability {
    le32 header;
    le64 serial;
};
ERNIC_WIRE(SerialCapability, 12);

}  // namespace ernic::wire::pci
