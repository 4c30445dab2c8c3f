// SPDX-License-Identifier: MIT
#include "guest_sim/ethernet_queues.hpp"

#include <atomic>
#include <bit>
#include <cstring>

#include "guest_sim/error.hpp"
#include "wire/ionic_device.hpp"

namespace ernic::guest_sim {

namespace w = wire::ionic;

EthernetQueues::EthernetQueues(Card& card, const Options& options)
    : card_(card),
      size_log2_(options.ring_size_log2),
      size_(1U << options.ring_size_log2),
      receive_size_(options.receive_size) {
    transmit_ = create(w::LogicalQueue::Tx, w::kTxSgStride);
    receive_ = create(w::LogicalQueue::Rx, w::kRxSgStride);
    w::RxModeSetCommand mode{};
    mode.opcode = static_cast<std::uint8_t>(w::Opcode::RxModeSet);
    mode.rx_mode.set(w::rx_mode::kUnicast | w::rx_mode::kBroadcast);
    require(card_.admin(mode).status == 0, "RX_MODE_SET failed");
    w::RxFilterAddCommand filter{};
    filter.opcode = static_cast<std::uint8_t>(w::Opcode::RxFilterAdd);
    filter.match.set(static_cast<std::uint16_t>(w::RxFilterMatch::Mac));
    std::memcpy(filter.body.data(), card_.mac().bytes.data(), sizeof(wire::MacAddress));
    require(card_.admin(filter).status == 0, "RX_FILTER_ADD failed");

    // The ring is filled and rung before it is enabled.
    buffers_ = card_.ram().allocate(std::size_t{size_} * receive_size_);
    for (std::uint32_t i = 0; i < size_; ++i) {
        w::RxDescriptor descriptor{};
        descriptor.length.set(receive_size_);
        descriptor.address.set(buffers_.iova + std::uint64_t{i} * receive_size_);
        receive_.ring.set(descriptor, i * sizeof descriptor);
    }
    receive_.producer = size_ - 1;
    ring(receive_);
    enable(w::LogicalQueue::Rx);
    enable(w::LogicalQueue::Tx);
}

EthernetQueues::Queue EthernetQueues::create(w::LogicalQueue type, std::size_t sg_stride) {
    Queue queue;
    queue.ring = card_.ram().allocate(size_ * sizeof(w::TxDescriptor));
    queue.completions = card_.ram().allocate(size_ * w::kCompletionSize);
    w::QueueInitCommand init{};
    init.opcode = static_cast<std::uint8_t>(w::Opcode::QueueInit);
    init.type = static_cast<std::uint8_t>(type);
    init.version = type == w::LogicalQueue::Tx ? 1 : 0;
    init.flags.set(w::queue_flag::kScatterGather);
    init.ring_size_log2 = size_log2_;
    init.ring_base.set(queue.ring.iova);
    init.completion_ring_base.set(queue.completions.iova);
    init.sg_ring_base.set(card_.ram().allocate(size_ * sg_stride).iova);
    const auto answer = card_.admin(init);
    require(answer.status == 0, "Q_INIT of an Ethernet queue failed");
    const auto where = std::bit_cast<w::QueueInitCompletion>(answer);
    queue.hw_type = where.hw_type;
    queue.hw_index = where.hw_index.get();
    return queue;
}

void EthernetQueues::enable(w::LogicalQueue type) {
    w::QueueControlCommand control{};
    control.opcode = static_cast<std::uint8_t>(w::Opcode::QueueControl);
    control.type = static_cast<std::uint8_t>(type);
    control.operation = static_cast<std::uint8_t>(w::QueueOperation::Enable);
    require(card_.admin(control).status == 0, "Q_CONTROL failed");
}

void EthernetQueues::ring(const Queue& queue) {
    const auto index = static_cast<std::uint16_t>(queue.producer % size_);
    card_.ring(0, queue.hw_type, w::Doorbell::make(queue.hw_index, 0, index).value());
}

bool EthernetQueues::stage(const Buffer& frame) {
    if (!has_room()) {
        return false;
    }
    w::TxDescriptor descriptor{};
    descriptor.command.set(w::TxDescriptor::make_command(w::TxOpcode::Plain, 0, 0, frame.iova));
    descriptor.length.set(static_cast<std::uint16_t>(frame.size));
    transmit_.ring.set(descriptor, transmit_.producer++ % size_ * sizeof descriptor);
    return true;
}

bool EthernetQueues::stage_super_frame(const Buffer& packet, std::uint16_t header_size,
                                       std::uint16_t segment_size) {
    const auto segments =
        static_cast<std::uint32_t>((packet.size - header_size + segment_size - 1) / segment_size);
    if (transmit_.producer - transmit_.consumer + segments > size_ - 1) {
        return false;
    }
    // One descriptor for each segment; the first has the headers, too.
    std::size_t at = 0;
    for (std::uint32_t i = 0; i < segments; ++i) {
        const bool last = i + 1 == segments;
        const std::size_t end = last ? packet.size : header_size + (i + 1) * std::size_t{segment_size};
        const auto flags =
            static_cast<std::uint8_t>((i == 0 ? w::kTxFlagTsoStart : 0) | (last ? w::kTxFlagTsoEnd : 0));
        w::TxDescriptor descriptor{};
        descriptor.command.set(w::TxDescriptor::make_command(w::TxOpcode::Tso, flags, 0, packet.iova + at));
        descriptor.length.set(static_cast<std::uint16_t>(end - at));
        descriptor.start_or_header.set(header_size);
        descriptor.offset_or_mss.set(segment_size);
        transmit_.ring.set(descriptor, transmit_.producer++ % size_ * sizeof descriptor);
        at = end;
    }
    return true;
}

void EthernetQueues::ring_transmit() {
    std::atomic_thread_fence(std::memory_order_release);
    ring(transmit_);
}

const std::byte* EthernetQueues::readable(const Queue& queue) const {
    const std::byte* const slot = queue.completions.host + queue.entry % size_ * w::kCompletionSize;
    const std::uint8_t color = queue.entry / size_ % 2 == 0 ? w::kColor : 0;
    std::atomic_ref<std::byte> last(const_cast<std::byte&>(slot[w::kCompletionSize - 1]));
    const auto value = std::to_integer<std::uint8_t>(last.load(std::memory_order_acquire));
    return (value & w::kColor) == color ? slot : nullptr;
}

std::uint32_t EthernetQueues::reclaim() {
    while (const std::byte* slot = readable(transmit_)) {
        w::Completion completion;
        std::memcpy(&completion, slot, sizeof completion);
        ++transmit_.entry;
        // One completion covers all descriptors up to its own.
        const std::uint32_t last = completion.comp_index.get();
        transmit_.consumer += (last - transmit_.consumer) % size_ + 1;
    }
    return transmit_.producer - transmit_.consumer;
}

Buffer EthernetQueues::receive() {
    const std::byte* const slot = readable(receive_);
    if (slot == nullptr) {
        return {};
    }
    w::RxCompletion completion;
    std::memcpy(&completion, slot, sizeof completion);
    require(completion.status == 0, "a frame was received with an error");
    ++receive_.entry;
    ++receive_.consumer;
    return buffers_.part(completion.comp_index.get() * std::size_t{receive_size_}, completion.length.get());
}

void EthernetQueues::give_back() {
    // Buffer i belongs to slot i for ever, so that only the producer index moves.
    if (receive_.producer != receive_.consumer + size_ - 1) {
        receive_.producer = receive_.consumer + size_ - 1;
        std::atomic_thread_fence(std::memory_order_release);
        ring(receive_);
    }
}

}  // namespace ernic::guest_sim
