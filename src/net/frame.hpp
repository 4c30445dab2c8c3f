// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.hpp"
#include "mem/guest_memory.hpp"
#include "wire/ethernet.hpp"

namespace ernic::net {

/// An Ethernet frame on the segment, with the work its sender left to the network still to be done, so that a
/// receiver that needs no checksum or segmentation pays for none. Valid only while it is being delivered: it
/// owns nothing.
struct Frame {
    /// The bytes as they lie in guest memory or in a buffer. With `segmentation` it is payload only, without
    /// headers.
    const mem::SpanList& data;
    /// Tag control of a VLAN tag to insert behind the MAC addresses.
    std::optional<std::uint16_t> insert_vlan;

    /// A one's complement checksum from `start` to the end of the frame (before any tag is inserted), its
    /// complement to be stored at `start + offset`, where the sender has left the sum of the pseudo header.
    struct Checksum {
        std::uint16_t start = 0;
        std::uint16_t offset = 0;
    };
    std::optional<Checksum> checksum;
    /// The transport checksum is known to be right as it stands, so that nobody need look.
    bool checksum_valid = false;

    /// Part of a TCP packet to be cut into segments of `segment_size` bytes of payload, each with its own
    /// copy of `header`. The ionic driver leaves in the template: IPv4 checksum 0 and the length of the whole
    /// packet; IPv6 payload length 0; the uncomplemented sum of the pseudo header without length as TCP
    /// checksum. Others leave other things there, so whoever cuts sets all of them anew and trusts none.
    struct Segmentation {
        Bytes header;
        std::uint16_t segment_size = 0;
        /// Number of the first segment in `data` within the packet: the header's sequence number and IPv4 id
        /// move with it.
        std::uint32_t first_segment = 0;
        /// `data` ends the packet (FIN and PSH belong into its last segment).
        bool last = false;
    };
    std::optional<Segmentation> segmentation;
};

/// The first bytes of `frame`, as many as it has of buffer.size(): where they lie in one piece, in the
/// template of a TCP packet (all of it), else copied into `buffer`.
inline Bytes start_of(const Frame& frame, MutableBytes buffer) {
    return frame.segmentation ? frame.segmentation->header
                              : Bytes(buffer).first(mem::copy(buffer, frame.data));
}

/// The Ethernet header, wherever it lies. Fails: nullopt when the frame is too short.
inline std::optional<wire::EthernetHeader> ethernet_header(const Frame& frame) {
    std::array<std::byte, sizeof(wire::EthernetHeader)> buffer;
    return read_value<wire::EthernetHeader>(start_of(frame, buffer));
}

/// Somebody who takes frames: the segment, from its ports; a port, from the segment.
class FrameSink {
  public:
    virtual ~FrameSink() = default;
    /// Takes what it needs before it returns. Thread: device. Fails: never (what cannot be sent is dropped
    /// and counted).
    virtual void transmit(const Frame& frame) = 0;
    /// How many more frames of an ordinary size it has room for now, as far as it knows: somebody whose own
    /// queue can wait asks before sending a burst.
    [[nodiscard]] virtual std::size_t room() const { return SIZE_MAX; }
};

}  // namespace ernic::net
