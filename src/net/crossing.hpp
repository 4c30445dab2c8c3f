// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "net/filter.hpp"
#include "net/segment.hpp"

namespace ernic::net {

/// A message or a frame on its way across the segment, with what a fault may want to know of it. Valid only
/// while it is being delivered: it owns nothing.
struct Crossing {
    /// Exactly one of the two is there.
    const Message* message = nullptr;
    const Frame* frame = nullptr;
    /// The bridge port a frame came from.
    MacTable::Port port = 0;
    Path path;
    wire::MacAddress source;
    wire::MacAddress destination;
    /// Of a frame: tagged, and what its innermost Ethernet and IP headers say.
    bool tagged = false;
    std::uint16_t ether_type = 0;
    std::optional<std::uint8_t> protocol;

    /// The bytes a copy of it takes.
    [[nodiscard]] std::size_t payload_bytes() const;
    /// About the bytes it would take on a wire, headers of all packets included.
    [[nodiscard]] std::uint64_t wire_bytes() const;
    /// Whether a flipped bit could be seen by its receiver's program.
    [[nodiscard]] bool has_data() const;

    /// Sends it on, behind the filter.
    void deliver(Segment& segment) const;
};

[[nodiscard]] Crossing crossing_of(const Message& message, Path path);
[[nodiscard]] Crossing crossing_of(const Frame& frame, MacTable::Port port, Path path);

}  // namespace ernic::net
