// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "net/crossing.hpp"
#include "net/segment.hpp"
#include "net/segmentation.hpp"

namespace ernic::net {

/// An owned copy of a message or a frame, so that it can be sent later, or changed without its sender seeing
/// it. Thread: device. Owns: all its bytes.
class HeldTraffic {
  public:
    explicit HeldTraffic(const Crossing& crossing);
    /// A finished frame, which is one for a wire.
    HeldTraffic(const WireFrame& frame, MacTable::Port port, Path path);

    [[nodiscard]] std::size_t bytes() const { return size_; }
    [[nodiscard]] Path path() const { return path_; }

    /// Flips bit number `bit`, counted modulo the bits that may be flipped: the payload of a message, the
    /// operand of an atomic, a frame behind its MAC addresses and type. A transport checksum that was known
    /// to be right no longer is.
    void flip(std::uint64_t bit);

    /// Sends it on, behind the filter.
    void deliver(Segment& segment);

  private:
    struct HeldMessage {
        Message message;
        Route route;
    };
    struct HeldFrame {
        MacTable::Port port = 0;
        std::optional<std::uint16_t> insert_vlan;
        std::optional<Frame::Checksum> checksum;
        bool checksum_valid = false;
        std::optional<Frame::Segmentation> segmentation;
        /// Bytes in front that are the segmentation's header.
        std::size_t header = 0;
    };

    Path path_;
    std::variant<HeldMessage, HeldFrame> what_;
    std::size_t size_ = 0;
    std::unique_ptr<std::byte[]> data_;  // NOLINT(modernize-avoid-c-arrays)
};

/// Copies of `crossing` as a wire would carry it: a message as it is, a frame with its checksum finished, a
/// large TCP packet cut into its segments.
[[nodiscard]] std::vector<HeldTraffic> copies_for_wire(const Crossing& crossing, FrameFinisher& finisher);

}  // namespace ernic::net
