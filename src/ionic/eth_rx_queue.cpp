// SPDX-License-Identifier: MIT
#include "ionic/eth_rx_queue.hpp"

#include <algorithm>
#include <numeric>

namespace ernic::ionic {
namespace {

using wire::ionic::LifStat;
using wire::ionic::RxCompletion;
using wire::ionic::RxDescriptor;
using wire::ionic::RxOpcode;
using wire::ionic::RxSgElement;

constexpr std::uint8_t kSgStrideLog2 = 7;
static_assert(1U << kSgStrideLog2 == wire::ionic::kRxSgStride);

}  // namespace

RxQueue::RxQueue(const QueueConfig& config, const EthContext& context)
    : config_(config),
      context_(context),
      descriptors_(config.ring, config.size_log2, kDescriptorStrideLog2),
      completions_(config.completion_ring, config.size_log2),
      sg_lists_(*mem::Ring::make(mem::PageList::contiguous(config.sg_ring), config.size_log2, kSgStrideLog2)),
      enabled_(config.starts_enabled) {
}

std::optional<RxQueue::Buffers> RxQueue::next_buffers() const {
    const auto descriptor = descriptors_.fetch<RxDescriptor>(context_.memory);
    if (!descriptor) {
        return std::nullopt;
    }
    Buffers buffers;
    const auto add = [&buffers](std::uint64_t address, std::uint16_t size) {
        buffers.list[buffers.count++] = {{address}, size};
        buffers.bytes += size;
    };
    add(descriptor->address.get(), descriptor->length.get());
    if (!config_.scatter_gather || static_cast<RxOpcode>(descriptor->opcode) != RxOpcode::ScatterGather) {
        return buffers;
    }
    std::array<RxSgElement, wire::ionic::kRxMaxSgElements> elements;
    if (!sg_lists_.read(context_.memory, descriptors_.consumer(),
                        std::as_writable_bytes(std::span(elements)))) {
        return std::nullopt;
    }
    for (const RxSgElement& element : elements) {
        if (element.length.get() == 0) {
            break;  // ends a shorter list
        }
        add(element.address.get(), element.length.get());
    }
    return buffers;
}

std::optional<std::size_t> RxQueue::scatter(const Buffers& buffers, std::span<const Bytes> parts) {
    std::size_t used = 0;
    std::uint32_t filled = 0;
    for (Bytes part : parts) {
        while (!part.empty()) {
            // deliver() has seen to it that all buffers together are large enough.
            while (filled == buffers.list[used].size) {
                ++used;
                filled = 0;
            }
            const Buffer& buffer = buffers.list[used];
            const std::size_t size = std::min<std::size_t>(part.size(), buffer.size - filled);
            const auto target = buffer.address.plus(filled);
            if (!target || !context_.memory.write(*target, part.first(size))) {
                return std::nullopt;
            }
            part = part.subspan(size);
            filled += static_cast<std::uint32_t>(size);
        }
    }
    return used + 1;
}

bool RxQueue::complete(RxCompletion completion) {
    completion.comp_index.set(descriptors_.consumer());
    descriptors_.consume();
    if (!completions_.write(context_.memory, completion)) {
        context_.stats.add(LifStat::RxQueueError);
        broken_ = true;
        return false;
    }
    if (config_.raises_interrupts) {
        context_.interrupts.post_completion(config_.interrupt);
    }
    return true;
}

RxQueue::Outcome RxQueue::deliver(std::span<const Bytes> parts, const RxMetadata& metadata) {
    if (!enabled_ || broken_ || !context_.memory.enabled()) {
        context_.stats.add(LifStat::RxQueueDisabled);
        return Outcome::Disabled;
    }
    if (descriptors_.empty()) {
        context_.stats.add(LifStat::RxQueueEmpty);
        return Outcome::Empty;
    }
    const auto buffers = next_buffers();
    if (!buffers) {
        context_.stats.add(LifStat::RxDescriptorFetchError);
        broken_ = true;
        return Outcome::Disabled;
    }
    const std::size_t size = std::accumulate(parts.begin(), parts.end(), std::size_t{0},
                                             [](std::size_t sum, Bytes part) { return sum + part.size(); });
    RxCompletion completion{};
    completion.length.set(static_cast<std::uint16_t>(std::min<std::size_t>(size, UINT16_MAX)));
    if (size > buffers->bytes || size > UINT16_MAX) {
        context_.stats.add(LifStat::RxDescriptorDataError);
        completion.status = wire::ionic::kRxStatusTooBig;
        complete(completion);
        return Outcome::Failed;
    }
    const auto used = scatter(*buffers, parts);
    if (!used) {
        context_.stats.add(LifStat::RxDmaError);
        completion.status = wire::ionic::kRxStatusDmaError;
        complete(completion);
        return Outcome::Failed;
    }
    completion.sg_elements = static_cast<std::uint8_t>(*used - 1);
    completion.rss_hash.set(metadata.hash);
    completion.checksum.set(metadata.checksum);
    completion.vlan_tci.set(metadata.vlan_tci);
    completion.checksum_flags = metadata.checksum_flags;
    completion.packet_type_color = static_cast<std::uint8_t>(metadata.type);
    return complete(completion) ? Outcome::Delivered : Outcome::Disabled;
}

}  // namespace ernic::ionic
