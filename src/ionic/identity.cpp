// SPDX-License-Identifier: MIT
#include "ionic/identity.hpp"

#include "wire/ionic_ethernet.hpp"

namespace ernic::ionic {
namespace {

using wire::ionic::LogicalQueue;
using wire::ionic::QueueIdentity;
using wire::ionic::Status;
namespace queue_feature = wire::ionic::queue_feature;

constexpr std::uint8_t kDeviceIdentityVersion = 2;
constexpr std::uint8_t kEthernetIdentityVersion = 1;
/// Device units of interrupt coalescing are 3 µs, which gives `ethtool -C` its documented range of 0..190 µs.
constexpr std::uint32_t kCoalesceMultiplier = 1;
constexpr std::uint32_t kCoalesceDivisor = 3;
/// Transmit version 1: scatter/gather lists of 16 slots. The driver writes up to 15 elements whatever the
/// identity says (ionic 7.2, ionic_lif_queue_identify), so version 0 with its 8 slots must never be offered.
constexpr std::uint8_t kTxVersion = 1;
constexpr std::uint16_t kTxMaxSg = wire::ionic::kTxMaxSgElements;

wire::ionic::QueueTypeRange range_of(QueueType type, std::uint32_t count) {
    wire::ionic::QueueTypeRange range{};
    range.type = static_cast<std::uint8_t>(type);
    range.count.set(count);
    return range;
}

void fill_rdma(const RdmaProfile& profile, wire::ionic::LifRdmaIdentity& identity) {
    identity.version = profile.version;
    identity.minor_version = profile.minor;
    identity.qp_opcodes = profile.qp_opcodes;
    identity.admin_opcodes = profile.admin_opcodes;
    identity.page_table_entries.set(profile.page_table_entries);
    identity.memory_regions.set(profile.memory_regions);
    identity.address_handles.set(profile.address_handles);
    identity.max_stride_log2 = profile.max_stride_log2;
    identity.udma_shift = profile.udma_shift;
    identity.page_size_cap.set(profile.page_size_cap);
    identity.admin_queues = range_of(QueueType::RdmaAdmin, profile.admin_queues);
    identity.send_queues = range_of(QueueType::RdmaSend, profile.queue_pairs);
    identity.receive_queues = range_of(QueueType::RdmaRecv, profile.queue_pairs);
    identity.completion_queues = range_of(QueueType::RdmaCompletion, profile.completion_queues);
    identity.event_queues = range_of(QueueType::RdmaEvent, profile.event_queues);
    identity.stats_type.set(profile.stats_type);
}

void set_sizes(QueueIdentity& identity, std::uint16_t descriptor, std::uint16_t completion) {
    identity.descriptor_size.set(descriptor);
    identity.completion_size.set(completion);
}

void set_sg(QueueIdentity& identity, std::uint32_t list, std::uint32_t elements, std::uint32_t stride) {
    identity.features.set(queue_feature::kCompletionQueue | queue_feature::kScatterGather);
    identity.sg_descriptor_size.set(static_cast<std::uint16_t>(list));
    identity.max_sg_elements.set(static_cast<std::uint16_t>(elements));
    identity.sg_descriptor_stride.set(static_cast<std::uint16_t>(stride));
}

}  // namespace

wire::ionic::DeviceIdentity make_device_identity(const Profile& profile) {
    wire::ionic::DeviceIdentity identity{};
    identity.version = kDeviceIdentityVersion;
    identity.port_count = 1;
    identity.lif_count.set(1);
    identity.interrupt_count.set(profile.interrupts);
    identity.doorbell_pages_per_lif.set(profile.doorbell_pages);
    identity.coalesce_multiplier.set(kCoalesceMultiplier);
    identity.coalesce_divisor.set(kCoalesceDivisor);
    // The tick counter is in nanoseconds; it is there to be read, time stamps are not offered.
    identity.tick_mask.set(UINT64_MAX);
    identity.tick_multiplier.set(1);
    return identity;
}

wire::ionic::LifIdentity make_lif_identity(const Profile& profile, const wire::MacAddress& mac, bool rdma) {
    wire::ionic::LifIdentity identity{};
    identity.capabilities.set(wire::ionic::kLifCapabilityEthernet |
                              (rdma ? wire::ionic::kLifCapabilityRdma : 0));
    wire::ionic::LifEthernetIdentity& ethernet = identity.ethernet;
    ethernet.version = kEthernetIdentityVersion;
    ethernet.max_unicast_filters.set(profile.max_mac_filters);
    ethernet.max_multicast_filters.set(profile.max_mac_filters);
    ethernet.rss_table_size.set(profile.rss_table_size);
    ethernet.min_frame_size.set(profile.min_frame_size);
    ethernet.max_frame_size.set(profile.max_frame_size);
    ethernet.config.mac = mac;
    const auto count = [&](LogicalQueue type, std::uint32_t value) {
        ethernet.config.queue_count[static_cast<std::size_t>(type)].set(value);
    };
    count(LogicalQueue::Admin, 1);
    count(LogicalQueue::Notify, 1);
    count(LogicalQueue::Rx, profile.rx_queues);
    count(LogicalQueue::Tx, profile.tx_queues);
    if (rdma) {
        // Without RDMA the event queue count must be 0: it costs vectors even if the capability is not there
        // (ionic 7.2, ionic_lif_size).
        fill_rdma(profile.rdma, identity.rdma);
        count(LogicalQueue::Event, profile.rdma.event_queues);
    }
    return identity;
}

std::uint8_t queue_version(LogicalQueue type) {
    return type == LogicalQueue::Tx ? kTxVersion : 0;
}

Status make_queue_identity(const wire::ionic::QueueIdentifyCommand& command, QueueIdentity& identity) {
    const auto type = static_cast<LogicalQueue>(command.type);
    identity = {};
    identity.version = queue_version(type);
    identity.supported = static_cast<std::uint8_t>(1U << identity.version);
    identity.features.set(queue_feature::kCompletionQueue);
    switch (type) {
        case LogicalQueue::Admin:
            set_sizes(identity, wire::ionic::kCommandSize, wire::ionic::kCompletionSize);
            break;
        case LogicalQueue::Notify:
            set_sizes(identity, sizeof(le32), sizeof(wire::ionic::NotifyEvent));
            break;
        case LogicalQueue::Rx:
            set_sizes(identity, sizeof(wire::ionic::RxDescriptor), wire::ionic::kCompletionSize);
            set_sg(identity, wire::ionic::kRxSgStride, wire::ionic::kRxMaxSgElements,
                   sizeof(wire::ionic::RxSgElement));
            break;
        case LogicalQueue::Tx:
            set_sizes(identity, sizeof(wire::ionic::TxDescriptor), wire::ionic::kCompletionSize);
            set_sg(identity, wire::ionic::kTxSgStride, kTxMaxSg, sizeof(wire::ionic::TxSgElement));
            break;
        case LogicalQueue::Event:
        default:
            return Status::BadQueueType;
    }
    return command.version >= identity.version ? Status::Success : Status::BadVersion;
}

}  // namespace ernic::ionic
