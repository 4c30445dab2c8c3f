// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/byte_order.hpp"
#include "wire/ethernet.hpp"
#include "wire/ionic_device.hpp"

/// ionic identities (answers in the device command data area) and the areas the device keeps up to date by
/// DMA.
namespace ernic::wire::ionic {

/// Written by the driver before IDENTIFY.
struct DriverIdentity {
    le32 os_type;
    le32 os_distribution;
    std::array<char, 128> os_distribution_text;
    le32 kernel_version;
    std::array<char, 32> kernel_version_text;
    std::array<char, 32> driver_version_text;
    std::array<std::uint8_t, 1708> reserved;
};
ERNIC_WIRE(DriverIdentity, kCommandDataSize);
ERNIC_WIRE_AT(DriverIdentity, driver_version_text, 0xac);

struct DeviceIdentity {
    std::uint8_t version;
    std::uint8_t type;
    std::array<std::uint8_t, 2> reserved;
    std::uint8_t port_count;
    std::array<std::uint8_t, 3> reserved2;
    le32 lif_count;
    le32 interrupt_count;
    le32 doorbell_pages_per_lif;
    le32 coalesce_multiplier;
    le32 coalesce_divisor;
    le32 event_queue_count;
    le64 tick_mask;
    le32 tick_multiplier;
    le32 tick_shift;
    le64 capabilities;
    std::array<std::uint8_t, 1856> reserved3;
};
ERNIC_WIRE(DeviceIdentity, kCommandDataSize);
ERNIC_WIRE_AT(DeviceIdentity, interrupt_count, 0x0c);
ERNIC_WIRE_AT(DeviceIdentity, tick_mask, 0x20);
ERNIC_WIRE_AT(DeviceIdentity, capabilities, 0x30);

struct LifConfig {
    std::uint8_t state;
    std::array<std::uint8_t, 3> reserved;
    std::array<char, kLifNameSize> name;
    le32 mtu;
    MacAddress mac;
    le16 vlan;
    le64 features;
    /// By LogicalQueue.
    std::array<le32, 16> queue_count;
    std::array<std::uint8_t, 152> reserved2;
};
ERNIC_WIRE(LifConfig, 256);
ERNIC_WIRE_AT(LifConfig, mac, 0x18);
ERNIC_WIRE_AT(LifConfig, features, 0x20);
ERNIC_WIRE_AT(LifConfig, queue_count, 0x28);

/// Bits of LifIdentity::capabilities.
inline constexpr std::uint64_t kLifCapabilityEthernet = 1U << 0U;
inline constexpr std::uint64_t kLifCapabilityRdma = 1U << 1U;

struct LifEthernetIdentity {
    std::uint8_t version;
    std::array<std::uint8_t, 3> reserved;
    le32 max_unicast_filters;
    le32 max_multicast_filters;
    le16 rss_table_size;
    le32 min_frame_size;
    le32 max_frame_size;
    std::array<std::uint8_t, 2> reserved2;
    le64 timestamp_tx_modes;
    le64 timestamp_rx_filters;
    std::array<std::uint8_t, 88> reserved3;
    LifConfig config;
};
ERNIC_WIRE(LifEthernetIdentity, 384);
ERNIC_WIRE_AT(LifEthernetIdentity, rss_table_size, 0x0c);
ERNIC_WIRE_AT(LifEthernetIdentity, max_frame_size, 0x12);
ERNIC_WIRE_AT(LifEthernetIdentity, config, 0x80);

struct QueueTypeRange {
    std::uint8_t type;
    std::array<std::uint8_t, 3> reserved;
    le32 count;
    le32 base;
};
ERNIC_WIRE(QueueTypeRange, 12);

struct LifRdmaIdentity {
    std::uint8_t version;
    std::uint8_t qp_opcodes;
    std::uint8_t admin_opcodes;
    std::uint8_t minor_version;
    le32 page_table_entries;
    le32 memory_regions;
    le32 address_handles;
    std::uint8_t max_stride_log2;
    std::uint8_t cl_stride;
    std::uint8_t pte_stride;
    std::uint8_t rrq_stride;
    std::uint8_t rsq_stride;
    std::uint8_t dcqcn_profiles;
    std::uint8_t udma_shift;
    std::uint8_t reserved;
    le64 page_size_cap;
    QueueTypeRange admin_queues;
    QueueTypeRange send_queues;
    QueueTypeRange receive_queues;
    QueueTypeRange completion_queues;
    QueueTypeRange event_queues;
    le16 stats_type;
    std::array<std::uint8_t, 162> reserved2;
};
ERNIC_WIRE(LifRdmaIdentity, 256);
ERNIC_WIRE_AT(LifRdmaIdentity, page_size_cap, 24);
ERNIC_WIRE_AT(LifRdmaIdentity, event_queues, 80);
ERNIC_WIRE_AT(LifRdmaIdentity, stats_type, 92);

struct LifIdentity {
    le64 capabilities;
    LifEthernetIdentity ethernet;
    LifRdmaIdentity rdma;
    std::array<std::uint8_t, 1264> reserved;
};
ERNIC_WIRE(LifIdentity, kCommandDataSize);
ERNIC_WIRE_AT(LifIdentity, ethernet.config, 0x88);
ERNIC_WIRE_AT(LifIdentity, rdma, 0x188);
ERNIC_WIRE_AT(LifIdentity, rdma.admin_queues, 0x1a8);

struct QueueIdentity {
    std::uint8_t version;
    std::uint8_t supported;
    std::array<std::uint8_t, 6> reserved;
    le64 features;
    le16 descriptor_size;
    le16 completion_size;
    le16 sg_descriptor_size;
    le16 max_sg_elements;
    le16 sg_descriptor_stride;
    std::array<std::uint8_t, 1886> reserved2;
};
ERNIC_WIRE(QueueIdentity, kCommandDataSize);
ERNIC_WIRE_AT(QueueIdentity, sg_descriptor_stride, 0x18);

/// LIF_SETATTR FEATURES bits.
namespace lif_feature {
inline constexpr std::uint64_t kVlanTxTag = 1U << 0U;
inline constexpr std::uint64_t kVlanRxStrip = 1U << 1U;
inline constexpr std::uint64_t kVlanRxFilter = 1U << 2U;
inline constexpr std::uint64_t kRxHash = 1U << 3U;
inline constexpr std::uint64_t kRxChecksum = 1U << 4U;
inline constexpr std::uint64_t kTxScatterGather = 1U << 5U;
inline constexpr std::uint64_t kTxChecksum = 1U << 7U;
inline constexpr std::uint64_t kTso = 1U << 8U;
inline constexpr std::uint64_t kTsoIpv6 = 1U << 9U;
inline constexpr std::uint64_t kTsoEcn = 1U << 10U;
inline constexpr std::uint64_t kTimestamp = 1U << 20U;
}  // namespace lif_feature

/// Bits of RssAttribute::types.
namespace rss_type {
inline constexpr std::uint16_t kIpv4 = 1U << 0U;
inline constexpr std::uint16_t kIpv4Tcp = 1U << 1U;
inline constexpr std::uint16_t kIpv4Udp = 1U << 2U;
inline constexpr std::uint16_t kIpv6 = 1U << 3U;
inline constexpr std::uint16_t kIpv6Tcp = 1U << 4U;
inline constexpr std::uint16_t kIpv6Udp = 1U << 5U;
}  // namespace rss_type

// ---- Port
// ------------------------------------------------------------------------------------------------------

enum class PortState : std::uint8_t { None = 0, Down = 1, Up = 2 };
enum class LinkStatus : std::uint8_t { None = 0, Up = 1, Down = 2 };

struct PortConfig {
    le32 speed;
    le32 mtu;
    std::uint8_t state;
    std::uint8_t autoneg;
    std::uint8_t fec_type;
    std::uint8_t pause_type;
    std::uint8_t loopback_mode;
    std::array<std::uint8_t, 243> reserved;
};
ERNIC_WIRE(PortConfig, 256);
ERNIC_WIRE_AT(PortConfig, state, 8);

struct PortIdentity {
    std::uint8_t version;
    std::uint8_t type;
    std::uint8_t lane_count;
    std::uint8_t autoneg;
    le32 min_frame_size;
    le32 max_frame_size;
    std::array<std::uint8_t, 4> fec_type;
    std::array<std::uint8_t, 2> pause_type;
    std::array<std::uint8_t, 2> loopback_mode;
    std::array<le32, 16> speeds;
    std::array<std::uint8_t, 44> reserved;
    PortConfig config;
    std::array<std::uint8_t, 1528> reserved2;
};
ERNIC_WIRE(PortIdentity, kCommandDataSize);
ERNIC_WIRE_AT(PortIdentity, config, 0x80);

struct PortStatus {
    le32 id;
    le32 speed;
    std::uint8_t status;
    le16 link_down_count;
    std::uint8_t fec_type;
    std::array<std::uint8_t, 48> reserved;
};
ERNIC_WIRE(PortStatus, 60);
ERNIC_WIRE_AT(PortStatus, link_down_count, 9);

inline constexpr std::uint8_t kTransceiverSpromRead = 3;

struct TransceiverStatus {
    std::uint8_t state;
    std::uint8_t phy;
    le16 pid;
    std::array<std::uint8_t, 256> sprom;
};
ERNIC_WIRE(TransceiverStatus, 260);

inline constexpr std::size_t kPortStatsCount = 89;

/// Kept in guest memory from PORT_INIT to PORT_RESET.
struct PortInfo {
    PortConfig config;
    PortStatus status;
    TransceiverStatus transceiver;
    std::array<le64, kPortStatsCount> stats;
    /// Upper pages 1, 2 and 17.
    std::array<std::array<std::uint8_t, 128>, 3> sprom_pages;
    std::array<std::uint8_t, 376> reserved;
    std::array<le64, 20> extra_stats;
};
ERNIC_WIRE(PortInfo, 2208);
ERNIC_WIRE_AT(PortInfo, transceiver, 0x13c);
ERNIC_WIRE_AT(PortInfo, stats, 0x240);
ERNIC_WIRE_AT(PortInfo, sprom_pages, 0x508);
ERNIC_WIRE_AT(PortInfo, extra_stats, 0x800);

// ---- LIF
// -------------------------------------------------------------------------------------------------------

struct LifStatus {
    le64 event_id;
    std::uint8_t port;
    std::uint8_t reserved;
    le16 link_status;
    le32 link_speed;
    le16 link_down_count;
    std::array<std::uint8_t, 46> reserved2;
};
ERNIC_WIRE(LifStatus, 64);
ERNIC_WIRE_AT(LifStatus, link_speed, 0x0c);

inline constexpr std::size_t kLifStatsCount = 128;

/// Kept in guest memory from LIF_INIT to LIF_RESET.
struct LifInfo {
    LifConfig config;
    LifStatus status;
    std::array<le64, kLifStatsCount> stats;
};
ERNIC_WIRE(LifInfo, 1344);
ERNIC_WIRE_AT(LifInfo, status, 0x100);
ERNIC_WIRE_AT(LifInfo, stats, 0x140);

}  // namespace ernic::wire::ionic
