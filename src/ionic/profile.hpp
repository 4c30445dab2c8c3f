// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace ernic::ionic {

/// Doorbell slots: the queue type a doorbell page offset names. The device chooses them; Q_INIT and
/// LIF_IDENTIFY tell the drivers. The notify queue, which has no doorbell, also answers Admin with hardware
/// index 1.
enum class QueueType : std::uint8_t {
    Admin = 0,
    Rx = 1,
    Tx = 2,
    RdmaAdmin = 3,
    RdmaSend = 4,
    RdmaRecv = 5,
    RdmaCompletion = 6,
    RdmaEvent = 7,
};
inline constexpr std::uint32_t kQueueTypes = 8;

/// What the LIF identity says about RDMA.
struct RdmaProfile {
    /// Work request layout: 2 composes opcodes from bits and keeps the last 8 bytes of an atomic free.
    std::uint8_t version = 2;
    /// (2, 1) makes the drivers read page_size_cap.
    std::uint8_t minor = 1;
    std::uint8_t qp_opcodes = 11;
    std::uint8_t admin_opcodes = 19;
    std::uint32_t page_table_entries = 1U << 24U;
    std::uint32_t memory_regions = 1U << 16U;
    std::uint32_t address_handles = 1U << 14U;
    std::uint8_t max_stride_log2 = 9;
    std::uint8_t udma_shift = 5;
    /// Every power of two from 4 KiB to 2 GiB.
    std::uint64_t page_size_cap = 0xFFFFF000;
    /// Queue pair and completion queue counts must be powers of two: the driver permutes id bits.
    std::uint32_t queue_pairs = 4096;
    std::uint32_t completion_queues = 8192;
    /// The driver needs 4 at least, and uses at most one per CPU.
    std::uint32_t event_queues = 32;
    std::uint32_t admin_queues = 4;
    /// Bit 0 global statistics, bit 1 per queue pair.
    std::uint16_t stats_type = 3;
};

/// The module in the cage, for `ethtool` (link modes) and `ethtool -m`.
struct TransceiverProfile {
    /// 0 none, 1 copper, 2 fibre. Without it ethtool and RDMA report no speed.
    std::uint8_t phy = 2;
    /// Module id of the ionic interface; 52 is a 100GBASE-SR4.
    std::uint16_t pid = 52;
    std::string vendor = "ROCM-ERNIC";
    std::string part_number = "VIRTUAL-100G-SR4";
    std::string revision = "1";
};

/// Everything that identifies one model of the card and its limits. Counts that no public document tells are
/// ours.
struct Profile {
    std::string name = "default";

    /// 4 is Salina. The Linux 7.2 driver re-rings doorbells every second on 0 and 2 only.
    std::uint8_t asic_type = 4;
    std::uint8_t asic_rev = 0;
    std::string firmware_version = "1.117.0-ernic";
    /// Empty: made from the MAC address.
    std::string serial_number;

    std::uint16_t vendor_id = 0x1dd8;
    std::uint16_t device_id = 0x1002;
    std::uint16_t subsystem_vendor_id = 0x1dd8;
    std::uint16_t subsystem_id = 0x5400;
    /// PCI Express generation and width that lspci shows.
    std::uint8_t pcie_generation = 4;
    std::uint8_t pcie_width = 16;

    /// Mb/s.
    std::uint32_t link_speed = 100'000;
    std::uint8_t lanes = 4;
    TransceiverProfile transceiver;

    /// Queue pairs are the smaller of both, and at most one per CPU of the guest.
    std::uint32_t tx_queues = 16;
    std::uint32_t rx_queues = 16;
    /// MSI-X table size and IDENTIFY's interrupt count: 1 + 16 pairs + 32 event queues fit.
    std::uint16_t interrupts = 64;
    /// One page for the kernel and one per RDMA user context: 512 pages are a 2 MiB doorbell BAR.
    std::uint32_t doorbell_pages = 512;

    std::uint32_t min_frame_size = 64;
    /// Without FCS; the largest MTU is this less 18.
    std::uint32_t max_frame_size = 9212;
    /// Unicast and multicast filters together; beyond it the driver turns promiscuous.
    std::uint32_t max_mac_filters = 128;
    /// Any VLAN id may be filtered.
    std::uint32_t max_vlan_filters = 4096;
    std::uint16_t rss_table_size = 128;

    RdmaProfile rdma;
};

}  // namespace ernic::ionic
