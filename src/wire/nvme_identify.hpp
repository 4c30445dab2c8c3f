// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/byte_order.hpp"
#include "wire/nvme.hpp"

/// Data of the Identify command (Base Specification 2.0, 5.17; NVM Command Set 1.0, 4.1.5).
namespace ernic::wire::nvme {

inline constexpr std::size_t kIdentifyBytes = 4096;

/// Controller or Namespace Structure: which data Identify is to return.
enum class Cns : std::uint8_t {
    Namespace = 0x00,
    Controller = 0x01,
    ActiveNamespaces = 0x02,
    Descriptors = 0x03,
    NvmNamespace = 0x05,
    NvmController = 0x06,
    ActiveNamespacesOfSet = 0x07,
    IndependentNamespace = 0x08,
    AllocatedNamespaces = 0x10,
    AllocatedNamespace = 0x11,
    ControllersOfNamespace = 0x12,
    Controllers = 0x13,
    CommandSets = 0x1c,
};

struct PowerState {
    /// In hundredths of a watt.
    le16 maximum_power;
    std::array<std::byte, 30> rest;
};
ERNIC_WIRE(PowerState, 32);

struct IdentifyController {
    le16 vendor;
    le16 subsystem_vendor;
    std::array<char, 20> serial;
    std::array<char, 40> model;
    std::array<char, 8> firmware;
    std::uint8_t arbitration_burst;
    std::array<std::uint8_t, 3> oui;
    std::uint8_t multi_path;
    std::uint8_t max_transfer;
    le16 controller_id;
    le32 version;
    le32 resume_latency;
    le32 entry_latency;
    le32 optional_events;
    le32 attributes;
    std::array<std::byte, 11> reserved100;
    std::uint8_t controller_type;
    std::array<std::byte, 16> fru;
    std::array<le16, 3> retry_delays;
    std::array<std::byte, 122> reserved134;
    le16 optional_admin;
    std::uint8_t abort_limit;
    std::uint8_t async_event_limit;
    std::uint8_t firmware_updates;
    std::uint8_t log_attributes;
    std::uint8_t error_entries;
    std::uint8_t power_states;
    std::array<std::byte, 2> reserved264;
    le16 warning_temperature;
    le16 critical_temperature;
    std::array<std::byte, 10> reserved270;
    std::array<le64, 2> total_capacity;
    std::array<le64, 2> free_capacity;
    std::array<std::byte, 8> reserved312;
    /// In units of 100 ms.
    le16 keep_alive_granularity;
    std::array<std::byte, 20> reserved322;
    std::uint8_t ana_transition_seconds;
    std::uint8_t ana_capabilities;
    le32 ana_group_max;
    le32 ana_groups;
    std::array<std::byte, 160> reserved352;
    std::uint8_t submission_size;
    std::uint8_t completion_size;
    le16 max_commands;
    le32 namespaces;
    le16 optional_nvm;
    le16 fused;
    std::uint8_t format_attributes;
    std::uint8_t write_cache;
    le16 atomic_write;
    le16 atomic_write_power_fail;
    std::uint8_t vendor_configuration;
    std::uint8_t write_protection;
    le16 atomic_compare_write;
    le16 copy_formats;
    le32 sgls;
    le32 namespaces_allowed;
    std::array<std::byte, 224> reserved544;
    std::array<char, kNqnBytes> subsystem_nqn;
    std::array<std::byte, 768> reserved1024;
    /// In units of 16 bytes.
    le32 command_capsule;
    le32 response_capsule;
    le16 in_capsule_offset;
    std::uint8_t fabrics_attributes;
    std::uint8_t max_descriptors;
    le16 optional_fabrics;
    std::uint8_t discovery_type;
    std::array<std::byte, 241> reserved1807;
    std::array<PowerState, 32> power;
    std::array<std::byte, 1024> vendor_specific;

    static constexpr std::uint8_t kMultiPort = 0x01;
    static constexpr std::uint8_t kMultiController = 0x02;
    static constexpr std::uint8_t kAna = 0x08;
    /// Of ana_capabilities: all five states are reported, and a namespace keeps its group.
    static constexpr std::uint8_t kAnaAllStates = 0x1f;
    static constexpr std::uint8_t kAnaGroupStays = 0x40;
    static constexpr std::uint32_t kHostId128 = 0x01;
    static constexpr std::uint32_t kTrafficBasedKeepAlive = 0x40;
    static constexpr std::uint8_t kTypeIo = 1;
    static constexpr std::uint8_t kTypeDiscovery = 2;
    static constexpr std::uint8_t kLogSmartPerNamespace = 0x01;
    static constexpr std::uint8_t kLogEffects = 0x02;
    static constexpr std::uint8_t kLogExtended = 0x04;
    static constexpr std::uint8_t kLogSupportedPages = 0x20;
    static constexpr std::uint16_t kCompare = 0x001;
    static constexpr std::uint16_t kWriteUncorrectable = 0x002;
    static constexpr std::uint16_t kDatasetManagement = 0x004;
    static constexpr std::uint16_t kWriteZeroes = 0x008;
    static constexpr std::uint16_t kReservations = 0x020;
    static constexpr std::uint16_t kTimestamp = 0x040;
    static constexpr std::uint16_t kVerify = 0x080;
    static constexpr std::uint16_t kCopy = 0x100;
    static constexpr std::uint16_t kFusedCompareWrite = 0x01;
    static constexpr std::uint8_t kWriteCachePresent = 0x01;
    static constexpr std::uint8_t kFlushAllNamespaces = 0x06;
    /// Any alignment and length; keyed data blocks; offsets into the capsule.
    static constexpr std::uint32_t kSgls = 0x00100005;
};
ERNIC_WIRE(IdentifyController, 4096);
ERNIC_WIRE_AT(IdentifyController, multi_path, 76);
ERNIC_WIRE_AT(IdentifyController, controller_type, 111);
ERNIC_WIRE_AT(IdentifyController, optional_admin, 256);
ERNIC_WIRE_AT(IdentifyController, warning_temperature, 266);
ERNIC_WIRE_AT(IdentifyController, total_capacity, 280);
ERNIC_WIRE_AT(IdentifyController, keep_alive_granularity, 320);
ERNIC_WIRE_AT(IdentifyController, ana_transition_seconds, 342);
ERNIC_WIRE_AT(IdentifyController, submission_size, 512);
ERNIC_WIRE_AT(IdentifyController, write_cache, 525);
ERNIC_WIRE_AT(IdentifyController, sgls, 536);
ERNIC_WIRE_AT(IdentifyController, subsystem_nqn, 768);
ERNIC_WIRE_AT(IdentifyController, command_capsule, 1792);
ERNIC_WIRE_AT(IdentifyController, max_descriptors, 1803);
ERNIC_WIRE_AT(IdentifyController, discovery_type, 1806);
ERNIC_WIRE_AT(IdentifyController, power, 2048);

struct LbaFormat {
    le16 metadata_bytes;
    /// log2 of the block's bytes.
    std::uint8_t data_shift;
    std::uint8_t performance;
};
ERNIC_WIRE(LbaFormat, 4);

struct IdentifyNamespace {
    le64 size;
    le64 capacity;
    le64 used;
    std::uint8_t features;
    std::uint8_t formats;
    std::uint8_t format;
    std::uint8_t metadata;
    std::uint8_t protection;
    std::uint8_t protection_type;
    std::uint8_t multi_path;
    std::uint8_t reservations;
    std::uint8_t format_progress;
    std::uint8_t deallocation;
    le16 atomic_write;
    le16 atomic_write_power_fail;
    le16 atomic_compare_write;
    le16 atomic_boundary;
    le16 atomic_boundary_offset;
    le16 atomic_boundary_power_fail;
    le16 optimal_boundary;
    std::array<le64, 2> capacity_bytes;
    le16 preferred_write;
    le16 preferred_write_alignment;
    le16 preferred_deallocate;
    le16 preferred_deallocate_alignment;
    le16 optimal_write;
    le16 copy_range_blocks;
    le32 copy_blocks;
    std::uint8_t copy_ranges;
    std::array<std::byte, 11> reserved81;
    le32 ana_group;
    std::array<std::byte, 3> reserved96;
    std::uint8_t attributes;
    le16 set_id;
    le16 endurance_group;
    std::array<std::byte, 16> nguid;
    std::array<std::byte, 8> eui64;
    std::array<LbaFormat, 64> lba_formats;
    std::array<std::byte, 3712> vendor_specific;

    /// NPWG, NPWA, NPDG, NPDA and NOWS mean something.
    static constexpr std::uint8_t kPreferredSizes = 0x10;
    static constexpr std::uint8_t kShared = 0x01;
    /// Deallocated blocks read as zeroes, and Write Zeroes may deallocate.
    static constexpr std::uint8_t kReadsZeroes = 0x09;
    static constexpr std::uint8_t kWriteProtected = 0x01;
};
ERNIC_WIRE(IdentifyNamespace, 4096);
ERNIC_WIRE_AT(IdentifyNamespace, multi_path, 30);
ERNIC_WIRE_AT(IdentifyNamespace, atomic_write, 34);
ERNIC_WIRE_AT(IdentifyNamespace, capacity_bytes, 48);
ERNIC_WIRE_AT(IdentifyNamespace, copy_range_blocks, 74);
ERNIC_WIRE_AT(IdentifyNamespace, ana_group, 92);
ERNIC_WIRE_AT(IdentifyNamespace, attributes, 99);
ERNIC_WIRE_AT(IdentifyNamespace, nguid, 104);
ERNIC_WIRE_AT(IdentifyNamespace, lba_formats, 128);

/// Head of one entry of the namespace identification descriptors (Base, figure 277).
struct NamespaceDescriptor {
    std::uint8_t type;
    std::uint8_t length;
    le16 reserved2;

    static constexpr std::uint8_t kEui64 = 1;
    static constexpr std::uint8_t kNguid = 2;
    static constexpr std::uint8_t kUuid = 3;
    static constexpr std::uint8_t kCommandSet = 4;
};
ERNIC_WIRE(NamespaceDescriptor, 4);

/// Limits of the NVM command set (NVM Command Set, figure 100).
struct IdentifyNvmController {
    /// These three as powers of two of 4 KiB.
    std::uint8_t verify_limit;
    std::uint8_t write_zeroes_limit;
    std::uint8_t write_uncorrectable_limit;
    std::uint8_t deallocate_ranges;
    le32 deallocate_range_blocks;
    le64 deallocate_blocks;
    std::array<std::byte, 4080> reserved16;
};
ERNIC_WIRE(IdentifyNvmController, 4096);

/// What any command set's namespace has (Base, figure 280).
struct IdentifyIndependentNamespace {
    std::uint8_t features;
    std::uint8_t multi_path;
    std::uint8_t reservations;
    std::uint8_t format_progress;
    le32 ana_group;
    std::uint8_t attributes;
    std::uint8_t reserved9;
    le16 set_id;
    le16 endurance_group;
    std::uint8_t status;
    std::array<std::byte, 4081> reserved15;

    static constexpr std::uint8_t kReady = 0x01;
    static constexpr std::uint8_t kNoWriteCache = 0x20;
};
ERNIC_WIRE(IdentifyIndependentNamespace, 4096);
ERNIC_WIRE_AT(IdentifyIndependentNamespace, status, 14);

}  // namespace ernic::wire::nvme
