// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "ionic/eth_context.hpp"
#include "ionic/eth_ring.hpp"
#include "ionic/frame_sink.hpp"
#include "ionic/limits.hpp"
#include "ionic/queue_config.hpp"
#include "mem/guest_memory.hpp"
#include "mem/ring.hpp"
#include "wire/ionic_ethernet.hpp"

namespace ernic::ionic {

/// What is left of a step that all transmit queues share, in bytes copied.
class TransmitBudget {
  public:
    explicit TransmitBudget(std::uint64_t work) : left_(work) {}
    [[nodiscard]] bool spent() const { return left_ == 0; }
    void take(std::uint64_t work) { left_ -= work < left_ ? work : left_; }

  private:
    std::uint64_t left_;
};

/// One transmit ring: turns descriptors into frames for a net::FrameSink and completes them in batches. Host
/// addresses are never kept from one process() to the next, because the DMA map may change in between.
/// Thread: device.
class TxQueue {
  public:
    TxQueue(const QueueConfig& config, const EthContext& context);

    [[nodiscard]] const QueueConfig& config() const { return config_; }
    [[nodiscard]] bool enabled() const { return enabled_; }
    /// Disabling keeps indices and colour: the driver enables again without Q_INIT (link down and up).
    void set_enabled(bool enabled) { enabled_ = enabled; }
    /// Remembered while disabled.
    void doorbell(std::uint16_t producer) { descriptors_.produced(producer); }

    /// Consumes descriptors until `budget` is spent, and little beyond it; true when some are left.
    bool process(net::FrameSink& sink, TransmitBudget& budget);

  private:
    /// A TSO run: the descriptors of one packet, each holding one segment.
    struct Run {
        bool open = false;
        /// Something in it was wrong: it is consumed to its end and dropped.
        bool bad = false;
        std::uint16_t header_size = 0;
        std::uint16_t segment_size = 0;
        std::optional<std::uint16_t> vlan;
        /// Segments handed on, and collected in `chunk_`.
        std::uint32_t segments_sent = 0;
        std::uint32_t segments_held = 0;
        std::uint64_t bytes = 0;
    };
    static constexpr std::uint8_t kDescriptorStrideLog2 = 4;
    /// A packet of 64 KiB has 45 at an MTU of 1500.
    static constexpr std::size_t kDescriptorsPerFetch = 64;

    /// True when the descriptor ends a frame, so that it may be completed.
    bool consume(const wire::ionic::TxDescriptor& descriptor, net::FrameSink& sink);
    /// Takes a middle segment of the open run that lies in one piece. False when it is anything else.
    bool continue_run(const wire::ionic::TxDescriptor& descriptor);
    bool collect(const wire::ionic::TxDescriptor& descriptor, mem::SpanList& out);
    void send_plain(const wire::ionic::TxDescriptor& descriptor, net::FrameSink& sink);
    bool add_segment(const wire::ionic::TxDescriptor& descriptor, net::FrameSink& sink);
    bool open_run(const wire::ionic::TxDescriptor& descriptor, const mem::SpanList& spans);
    void hold(const mem::SpanList& spans, std::size_t skip, net::FrameSink& sink);
    void flush_chunk(net::FrameSink& sink, bool last);
    void abandon_run();
    void drop(wire::ionic::LifStat reason, Cast cast, std::uint64_t bytes);
    void complete(std::uint16_t descriptor);

    QueueConfig config_;
    EthContext context_;
    DescriptorRing descriptors_;
    CompletionRing completions_;
    mem::Ring sg_lists_;
    bool enabled_;
    bool broken_ = false;
    Run run_;
    std::array<std::byte, kMaxTsoHeader> header_{};
    /// Payload of the open run collected in the current process() call.
    mem::SpanList chunk_;
};

}  // namespace ernic::ionic
