// SPDX-License-Identifier: MIT
#include "ionic/eth_tx_queue.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

namespace ernic::ionic {
namespace {

using wire::ionic::LifStat;
using wire::ionic::TxDescriptor;
using wire::ionic::TxOpcode;
using wire::ionic::TxSgElement;

constexpr std::uint8_t kSgStrideLog2 = 8;
static_assert(1U << kSgStrideLog2 == wire::ionic::kTxSgStride);
/// A frame needs its Ethernet header.
constexpr std::size_t kMinFrame = sizeof(wire::EthernetHeader);

Cast cast_of_frame(const mem::SpanList& spans) {
    wire::MacAddress destination;
    mem::copy(mutable_bytes_of(destination), spans);
    return cast_of(destination);
}

std::optional<std::uint16_t> vlan_of(const TxDescriptor& descriptor) {
    // Without the flag vlan_tci may be stale.
    if ((descriptor.flags() & wire::ionic::kTxFlagVlan) == 0) {
        return std::nullopt;
    }
    return descriptor.vlan_tci.get();
}

/// Hands frames on and takes what that costs out of a budget.
class MeteredSink final : public net::FrameSink {
  public:
    MeteredSink(net::FrameSink& sink, TransmitBudget& budget) : sink_(sink), budget_(budget) {}
    void transmit(const net::Frame& frame) override {
        budget_.take(frame.data.bytes() + kTxWorkPerFrame);
        sink_.transmit(frame);
    }

  private:
    net::FrameSink& sink_;
    TransmitBudget& budget_;
};

}  // namespace

TxQueue::TxQueue(const QueueConfig& config, const EthContext& context)
    : config_(config),
      context_(context),
      descriptors_(config.ring, config.size_log2, kDescriptorStrideLog2),
      completions_(config.completion_ring, config.size_log2),
      sg_lists_(*mem::Ring::make(mem::PageList::contiguous(config.sg_ring), config.size_log2, kSgStrideLog2)),
      enabled_(config.starts_enabled) {
}

bool TxQueue::process(net::FrameSink& unmetered, TransmitBudget& budget) {
    if (!enabled_ || broken_ || !context_.memory.enabled()) {
        return false;
    }
    MeteredSink sink(unmetered, budget);
    std::optional<std::uint16_t> finished;
    std::array<TxDescriptor, kDescriptorsPerFetch> fetched;
    std::span<const TxDescriptor> rest;
    std::uint32_t beyond = kTsoDescriptorsBeyondStep;
    while (!descriptors_.empty()) {
        if (budget.spent()) {
            const bool in_one_piece = run_.open && run_.segments_sent == 0;
            if (!in_one_piece || beyond == 0) {
                break;
            }
            --beyond;
        }
        budget.take(kTxWorkPerDescriptor);
        if (rest.empty()) {
            rest = std::span(fetched).first(
                descriptors_.fetch_run<TxDescriptor>(context_.memory, std::span(fetched)));
        }
        if (rest.empty()) {
            context_.stats.add(LifStat::TxDescriptorFetchError);
            broken_ = true;
            break;
        }
        if (consume(rest.front(), sink)) {
            finished = descriptors_.consumer();
        }
        rest = rest.subspan(1);
        descriptors_.consume();
    }
    if (run_.open && !run_.bad) {
        flush_chunk(sink, false);
    }
    chunk_.clear();
    if (finished) {
        complete(*finished);
    }
    return !descriptors_.empty() && !broken_;
}

void TxQueue::complete(std::uint16_t descriptor) {
    // One completion covers every descriptor since the previous one (ionic 7.2, ionic_tx_service).
    wire::ionic::Completion completion{};
    completion.comp_index.set(descriptor);
    if (!completions_.write(context_.memory, completion)) {
        context_.stats.add(LifStat::TxQueueError);
        broken_ = true;
    } else if (config_.raises_interrupts) {
        context_.interrupts.post_completion(config_.interrupt);
    }
}

bool TxQueue::consume(const TxDescriptor& descriptor, net::FrameSink& sink) {
    if (continue_run(descriptor)) {
        return false;
    }
    const bool tso = descriptor.opcode() == TxOpcode::Tso;
    if (run_.open && (!tso || (descriptor.flags() & wire::ionic::kTxFlagTsoStart) != 0)) {
        abandon_run();
    }
    if (tso) {
        return add_segment(descriptor, sink);
    }
    send_plain(descriptor, sink);
    return true;
}

/// What add_segment() does with nearly all descriptors of a large packet, without a list of one piece.
bool TxQueue::continue_run(const TxDescriptor& descriptor) {
    constexpr std::uint8_t kEnds = wire::ionic::kTxFlagTsoStart | wire::ionic::kTxFlagTsoEnd;
    const std::uint16_t length = descriptor.length.get();
    if (!run_.open || run_.bad || descriptor.opcode() != TxOpcode::Tso || (descriptor.flags() & kEnds) != 0 ||
        descriptor.sg_elements() != 0 || length != run_.segment_size ||
        chunk_.bytes() + length > kMaxTsoChunk) {
        return false;
    }
    std::byte* data = context_.memory.at({descriptor.address()}, length, mem::Access::Read);
    if (data == nullptr || !chunk_.add(data, length)) {
        return false;
    }
    ++run_.segments_held;
    return true;
}

bool TxQueue::collect(const TxDescriptor& descriptor, mem::SpanList& out) {
    out.clear();
    const auto add = [&](std::uint64_t address, std::uint16_t length) {
        return context_.memory.append({address}, length, mem::Access::Read, out);
    };
    const std::uint8_t count = descriptor.sg_elements();
    if (!add(descriptor.address(), descriptor.length.get())) {
        return false;
    }
    if (count == 0) {
        return true;
    }
    std::array<TxSgElement, wire::ionic::kTxMaxSgElements> elements;
    const auto wanted = std::span(elements).first(count);
    if (!config_.scatter_gather ||
        !sg_lists_.read(context_.memory, descriptors_.consumer(), std::as_writable_bytes(wanted))) {
        return false;
    }
    return std::all_of(wanted.begin(), wanted.end(), [&](const TxSgElement& element) {
        return add(element.address.get(), element.length.get());
    });
}

void TxQueue::send_plain(const TxDescriptor& descriptor, net::FrameSink& sink) {
    mem::SpanList spans;
    if (!collect(descriptor, spans)) {
        drop(LifStat::TxDmaError, Cast::Unicast, descriptor.length.get());
        return;
    }
    const Cast cast = cast_of_frame(spans);
    net::Frame frame{.data = spans, .insert_vlan = vlan_of(descriptor), .checksum = {}, .segmentation = {}};
    bool valid = spans.bytes() >= kMinFrame && spans.bytes() <= context_.max_frame_size;
    switch (descriptor.opcode()) {
        case TxOpcode::Plain:
            break;
        case TxOpcode::ChecksumPartial: {
            frame.checksum = {descriptor.start_or_header.get(), descriptor.offset_or_mss.get()};
            const std::size_t end =
                std::size_t{frame.checksum->start} + frame.checksum->offset + sizeof(be16);
            valid = valid && end <= spans.bytes();
            break;
        }
        case TxOpcode::ChecksumHardware:  // no driver uses it and Q_IDENTIFY version 1 needs no support for
                                          // it
        default:
            valid = false;
            break;
    }
    if (!valid) {
        drop(LifStat::TxDescriptorDataError, cast, spans.bytes());
        return;
    }
    sink.transmit(frame);
    context_.stats.transmitted(cast, 1, spans.bytes() + (frame.insert_vlan ? sizeof(wire::VlanTag) : 0));
}

bool TxQueue::add_segment(const TxDescriptor& descriptor, net::FrameSink& sink) {
    const bool start = (descriptor.flags() & wire::ionic::kTxFlagTsoStart) != 0;
    const bool end = (descriptor.flags() & wire::ionic::kTxFlagTsoEnd) != 0;
    mem::SpanList spans;
    const bool readable = collect(descriptor, spans);
    std::size_t skip = 0;
    if (start) {
        run_ = {};
        run_.open = true;
        run_.bad = !readable || !open_run(descriptor, spans);
        skip = run_.header_size;
    }
    if (!run_.open) {
        // A continuation without a start: there is no packet it could belong to.
        drop(LifStat::TxDescriptorDataError, Cast::Unicast, descriptor.length.get());
        return true;
    }
    const std::size_t payload = readable ? spans.bytes() - skip : 0;
    if (!run_.bad && (!readable || payload > run_.segment_size || (!end && payload != run_.segment_size))) {
        run_.bad = true;
        context_.stats.add(readable ? LifStat::TxDescriptorDataError : LifStat::TxDmaError);
    }
    if (!run_.bad) {
        hold(spans, skip, sink);
    }
    if (!end) {
        return false;
    }
    if (run_.bad) {
        abandon_run();
        return true;
    }
    flush_chunk(sink, true);
    wire::MacAddress destination;
    std::memcpy(&destination, header_.data(), sizeof destination);
    const std::uint64_t tag = run_.vlan ? sizeof(wire::VlanTag) : 0;
    context_.stats.transmitted(cast_of(destination), run_.segments_sent,
                               run_.bytes + run_.segments_sent * (run_.header_size + tag));
    run_.open = false;
    return true;
}

bool TxQueue::open_run(const TxDescriptor& descriptor, const mem::SpanList& spans) {
    const std::uint16_t header_size = descriptor.start_or_header.get();
    const std::uint16_t segment_size = descriptor.offset_or_mss.get();
    if (header_size < kMinFrame || header_size > kMaxTsoHeader || header_size > spans.bytes() ||
        segment_size == 0 || std::uint32_t{header_size} + segment_size > context_.max_frame_size) {
        context_.stats.add(LifStat::TxDescriptorDataError);
        return false;
    }
    run_.header_size = header_size;
    run_.segment_size = segment_size;
    run_.vlan = vlan_of(descriptor);
    mem::copy(MutableBytes(header_).first(header_size), spans);
    return true;
}

void TxQueue::hold(const mem::SpanList& spans, std::size_t skip, net::FrameSink& sink) {
    const auto room = mem::SpanList::kCapacity - chunk_.count();
    if (room < spans.count() || chunk_.bytes() + spans.bytes() > kMaxTsoChunk) {
        flush_chunk(sink, false);
    }
    for (const mem::SpanList::Piece& piece : spans) {
        const std::size_t skipped = std::min(skip, piece.size);
        skip -= skipped;
        chunk_.add(piece.data + skipped, piece.size - skipped);
    }
    ++run_.segments_held;
}

void TxQueue::flush_chunk(net::FrameSink& sink, bool last) {
    if (run_.segments_held != 0) {
        const net::Frame::Segmentation segmentation{.header = Bytes(header_).first(run_.header_size),
                                                    .segment_size = run_.segment_size,
                                                    .first_segment = run_.segments_sent,
                                                    .last = last};
        sink.transmit(
            {.data = chunk_, .insert_vlan = run_.vlan, .checksum = {}, .segmentation = segmentation});
    }
    run_.segments_sent += run_.segments_held;
    run_.bytes += chunk_.bytes();
    run_.segments_held = 0;
    chunk_.clear();
}

void TxQueue::abandon_run() {
    drop(LifStat::TxQueueError, Cast::Unicast, run_.bytes + chunk_.bytes());
    run_ = {};
    chunk_.clear();
}

void TxQueue::drop(LifStat reason, Cast cast, std::uint64_t bytes) {
    context_.stats.add(reason);
    context_.stats.transmit_dropped(cast, bytes);
}

}  // namespace ernic::ionic
