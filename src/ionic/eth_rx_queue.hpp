// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "base/bytes.hpp"
#include "ionic/eth_context.hpp"
#include "ionic/eth_ring.hpp"
#include "ionic/queue_config.hpp"
#include "mem/guest_memory.hpp"
#include "mem/ring.hpp"
#include "wire/ionic_ethernet.hpp"

namespace ernic::ionic {

/// What the completion of a received frame says about it.
struct RxMetadata {
    wire::ionic::PacketType type = wire::ionic::PacketType::NonIp;
    std::uint32_t hash = 0;
    std::uint16_t checksum = 0;
    std::uint16_t vlan_tci = 0;
    std::uint8_t checksum_flags = 0;
};

/// One receive ring: puts frames into the buffers the driver has posted. Thread: device.
class RxQueue {
  public:
    RxQueue(const QueueConfig& config, const EthContext& context);

    [[nodiscard]] const QueueConfig& config() const { return config_; }
    [[nodiscard]] bool enabled() const { return enabled_; }
    /// Disabling keeps indices, colour and the last doorbell: the driver does not ring again after a link
    /// flap.
    void set_enabled(bool enabled) { enabled_ = enabled; }
    void doorbell(std::uint16_t producer) { descriptors_.produced(producer); }

    enum class Outcome : std::uint8_t {
        Delivered,
        /// The queue is not running.
        Disabled,
        /// No buffer posted.
        Empty,
        /// The frame did not fit, or its buffers could not be written: the descriptor was completed with an
        /// error.
        Failed,
    };
    /// Puts the frame made of `parts`, one behind the other, into the next descriptor's buffers and completes
    /// it.
    Outcome deliver(std::span<const Bytes> parts, const RxMetadata& metadata);
    /// Buffers posted and not used yet. Without limit while frames cannot be delivered anyway, and while the
    /// ring is at least half full: a small one never has more than that.
    [[nodiscard]] std::size_t room() const {
        const std::size_t posted = descriptors_.pending();
        return enabled_ && !broken_ && posted < descriptors_.size() / 2 ? posted : SIZE_MAX;
    }

  private:
    struct Buffer {
        mem::Iova address;
        std::uint32_t size = 0;
    };
    struct Buffers {
        std::array<Buffer, 1 + wire::ionic::kRxMaxSgElements> list;
        std::size_t count = 0;
        std::size_t bytes = 0;
    };
    static constexpr std::uint8_t kDescriptorStrideLog2 = 4;

    /// Fails: nullopt when descriptor or list cannot be read.
    [[nodiscard]] std::optional<Buffers> next_buffers() const;
    /// Number of buffers used. Fails: nullopt when one cannot be written.
    std::optional<std::size_t> scatter(const Buffers& buffers, std::span<const Bytes> parts);
    bool complete(wire::ionic::RxCompletion completion);

    QueueConfig config_;
    EthContext context_;
    DescriptorRing descriptors_;
    CompletionRing completions_;
    mem::Ring sg_lists_;
    bool enabled_;
    bool broken_ = false;
};

}  // namespace ernic::ionic
