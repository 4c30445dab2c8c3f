// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/byte_order.hpp"
#include "wire/nvme.hpp"

/// Log pages (Base Specification 2.0, 5.16.1) and the report of reservations (Base 7.7).
namespace ernic::wire::nvme {

enum class LogPage : std::uint8_t {
    SupportedPages = 0x00,
    Errors = 0x01,
    Health = 0x02,
    FirmwareSlots = 0x03,
    ChangedNamespaces = 0x04,
    CommandEffects = 0x05,
    Ana = 0x0c,
    FeatureEffects = 0x12,
    Discovery = 0x70,
    ReservationNotices = 0x80,
};

struct ErrorEntry {
    le64 count;
    le16 queue_id;
    le16 command_id;
    /// As in the completion.
    le16 status;
    le16 parameter;
    le64 lba;
    le32 nsid;
    std::uint8_t vendor_page;
    std::uint8_t transport;
    std::array<std::byte, 2> reserved30;
    le64 command_specific;
    le16 transport_specific;
    std::array<std::byte, 22> reserved42;

    static constexpr std::uint8_t kTransportRdma = 1;
};
ERNIC_WIRE(ErrorEntry, 64);

/// SMART / Health Information.
struct HealthLog {
    std::uint8_t warning;
    /// Kelvin.
    le16 temperature;
    std::uint8_t spare;
    std::uint8_t spare_threshold;
    std::uint8_t used;
    std::array<std::byte, 26> reserved6;
    /// In thousands of 512 bytes, rounded up.
    std::array<le64, 2> units_read;
    std::array<le64, 2> units_written;
    std::array<le64, 2> reads;
    std::array<le64, 2> writes;
    /// Minutes.
    std::array<le64, 2> busy;
    std::array<le64, 2> power_cycles;
    std::array<le64, 2> power_on_hours;
    std::array<le64, 2> unsafe_shutdowns;
    std::array<le64, 2> media_errors;
    std::array<le64, 2> error_entries;
    le32 warning_minutes;
    le32 critical_minutes;
    std::array<std::byte, 312> rest;

    static constexpr std::uint8_t kReadOnly = 0x08;
};
ERNIC_WIRE(HealthLog, 512);
ERNIC_WIRE_AT(HealthLog, units_read, 32);
ERNIC_WIRE_AT(HealthLog, warning_minutes, 192);

struct FirmwareLog {
    std::uint8_t active;
    std::array<std::byte, 7> reserved1;
    std::array<std::array<char, 8>, 7> revisions;
    std::array<std::byte, 448> reserved64;
};
ERNIC_WIRE(FirmwareLog, 512);

/// Commands Supported and Effects: one word an opcode.
struct EffectsLog {
    std::array<le32, 256> admin;
    std::array<le32, 256> io;
    std::array<std::byte, 2048> reserved2048;

    static constexpr std::uint32_t kSupported = 0x01;
    static constexpr std::uint32_t kChangesContent = 0x02;
};
ERNIC_WIRE(EffectsLog, 4096);

/// Head of the discovery log (Base, figure 264); entries follow it.
struct DiscoveryHeader {
    le64 generation;
    le64 entries;
    le16 format;
    std::array<std::byte, 1006> reserved18;
};
ERNIC_WIRE(DiscoveryHeader, 1024);

struct DiscoveryEntry {
    std::uint8_t transport;
    std::uint8_t address_family;
    std::uint8_t subsystem_type;
    std::uint8_t requirements;
    le16 port_id;
    le16 controller_id;
    le16 admin_entries;
    le16 flags;
    std::array<std::byte, 20> reserved12;
    std::array<char, 32> service;
    std::array<std::byte, 192> reserved64;
    std::array<char, kNqnBytes> subsystem_nqn;
    std::array<char, 256> address;
    std::uint8_t queue_pair_type;
    std::uint8_t provider_type;
    std::uint8_t connection_management;
    std::array<std::byte, 5> reserved771;
    le16 partition;
    std::array<std::byte, 246> reserved778;

    static constexpr std::uint8_t kRdma = 1;
    static constexpr std::uint8_t kIpv4 = 1;
    static constexpr std::uint8_t kIpv6 = 2;
    static constexpr std::uint8_t kNvmSubsystem = 2;
    static constexpr std::uint8_t kThisDiscovery = 3;
    static constexpr std::uint8_t kFlowControlMayBeOff = 0x04;
    static constexpr std::uint8_t kConnected = 1;
    static constexpr std::uint8_t kRoceV2 = 4;
    static constexpr std::uint8_t kRdmaCm = 1;
};
ERNIC_WIRE(DiscoveryEntry, 1024);
ERNIC_WIRE_AT(DiscoveryEntry, service, 32);
ERNIC_WIRE_AT(DiscoveryEntry, subsystem_nqn, 256);
ERNIC_WIRE_AT(DiscoveryEntry, address, 512);
ERNIC_WIRE_AT(DiscoveryEntry, queue_pair_type, 768);
ERNIC_WIRE_AT(DiscoveryEntry, partition, 776);

/// Asymmetric namespace access (Base 8.1.3).
enum class AnaState : std::uint8_t {
    Optimized = 0x1,
    NonOptimized = 0x2,
    Inaccessible = 0x3,
    PersistentLoss = 0x4,
    Change = 0xf,
};

/// Head of the ANA log, and of each group in it; behind that one the ids of its namespaces.
struct AnaHeader {
    le64 change_count;
    le16 groups;
    std::array<std::byte, 6> reserved10;
};
ERNIC_WIRE(AnaHeader, 16);

struct AnaGroup {
    le32 id;
    le32 namespaces;
    le64 change_count;
    AnaState state;
    std::array<std::byte, 15> reserved17;

    /// Log specific field of Get Log Page: no ids of namespaces.
    static constexpr std::uint8_t kGroupsOnly = 0x01;
};
ERNIC_WIRE(AnaGroup, 32);

struct ReservationNotice {
    le64 count;
    std::uint8_t type;
    std::uint8_t more;
    le16 reserved10;
    le32 nsid;
    std::array<std::byte, 48> reserved16;

    static constexpr std::uint8_t kRegistrationPreempted = 1;
    static constexpr std::uint8_t kReleased = 2;
    static constexpr std::uint8_t kReservationPreempted = 3;
};
ERNIC_WIRE(ReservationNotice, 64);

/// Head of Reservation Report with 128-bit host identifiers, and one registrant.
struct ReservationReport {
    le32 generation;
    std::uint8_t type;
    le16 registrants;
    le16 reserved7;
    std::uint8_t persistent;
    std::array<std::byte, 54> reserved10;
};
ERNIC_WIRE(ReservationReport, 64);

struct Registrant {
    le16 controller_id;
    std::uint8_t status;
    std::array<std::byte, 5> reserved3;
    le64 key;
    HostId host_id;
    std::array<std::byte, 32> reserved32;

    static constexpr std::uint8_t kHolder = 0x01;
};
ERNIC_WIRE(Registrant, 64);

}  // namespace ernic::wire::nvme
