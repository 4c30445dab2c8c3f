// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.hpp"
#include "net/frame.hpp"

/// The work a sender leaves to the network (net::Frame), done: checksums finished, tags inserted, large TCP
/// packets cut.
namespace ernic::net {

/// Room for the headers of a TCP packet: Ethernet, VLAN tag, IPv4 with options or IPv6, TCP with options.
inline constexpr std::size_t kMaxHeader = 256;

/// Where the headers of a TCP packet start. Only TCP directly behind IP: no IPv6 extension headers, no
/// tunnels.
struct TcpLayout {
    bool ipv4 = false;
    std::size_t network = 0;
    std::size_t transport = 0;
    /// Ethernet to TCP options.
    std::size_t size = 0;
};

/// Fills `out` (16 bytes) with the first 12 bytes of `data`, which has them, and the tag that goes behind:
///
///     | destination, source | type ..  ->  | destination, source | 8100 tci | type ..
void copy_with_tag(const mem::SpanList& data, std::uint16_t tci, MutableBytes out);

/// Looks through Ethernet, one VLAN tag, IP and TCP. Fails: nullopt when it is not TCP, a fragment, or cut
/// short.
std::optional<TcpLayout> tcp_layout(Bytes packet);

/// A frame as it goes onto a wire: two parts, one behind the other, so that a large payload need not be
/// copied. `head` holds all headers.
struct WireFrame {
    Bytes head;
    Bytes tail;
    /// The transport checksum is known to be right.
    bool checksum_valid = false;

    [[nodiscard]] std::size_t size() const { return head.size() + tail.size(); }
};

/// Takes finished frames; they are valid until it returns.
class WireFrameSink {
  public:
    virtual ~WireFrameSink() = default;
    /// Thread: device. Fails: never.
    virtual void take(const WireFrame& frame) = 0;
};

/// Finishes frames for a receiver that wants them as on a wire. Thread: device. Owns: its work space.
class FrameFinisher {
  public:
    FrameFinisher();

    /// Hands `frame`, or its segments in order, to `sink`. Fails: false, nothing or only a part was handed
    /// over, when the pending work makes no sense (offsets outside the frame, a template that is not TCP).
    bool finish(const Frame& frame, WireFrameSink& sink);

  private:
    bool finish_whole(const Frame& frame, WireFrameSink& sink);
    bool cut(const Frame& frame, WireFrameSink& sink);
    /// The bytes of `data` from `offset` on in one piece; copied only when they lie in several.
    Bytes contiguous(const mem::SpanList& data, std::size_t offset);

    std::array<std::byte, kMaxHeader> head_{};
    std::vector<std::byte> scratch_;
};

/// A Segmentation as one packet for somebody who cuts by himself (virtio-net): what goes in front of the
/// payload, and what is to be done with it.
struct SuperFrame {
    /// In the caller's buffer, with tag. Lengths, IPv4 checksum, sequence number and flags are set; the TCP
    /// checksum field holds the pseudo header's sum with length.
    Bytes header;
    Frame::Checksum checksum;
    bool ipv4 = false;
    /// The packet carries CWR.
    bool ecn = false;
    /// 0 when the payload fits into one segment, so that nothing is to be cut.
    std::uint16_t segment_size = 0;
};

/// Precondition: `frame.segmentation`. Fails: nullopt when the template is not TCP or the packet would not
/// fit its IP length.
std::optional<SuperFrame> super_frame(const Frame& frame, std::array<std::byte, kMaxHeader>& buffer);

}  // namespace ernic::net
