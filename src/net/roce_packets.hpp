// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.hpp"
#include "net/message.hpp"

namespace ernic::net {

/// Longest payload of one packet: the largest path MTU of InfiniBand.
inline constexpr std::size_t kMaxPacketPayload = 4096;
/// Room for any packet: Ethernet, VLAN tag, IPv6, UDP, BTH, RETH and immediate (or AtomicETH), payload,
/// padding, ICRC.
inline constexpr std::size_t kMaxRocePacket = 14 + 4 + 40 + 8 + 12 + 28 + kMaxPacketPayload + 3 + 4;

/// Shows one message fragment as the RoCE v2 packets it stands for (InfiniBand annex A17): cut by the path
/// MTU, with the opcodes, extended headers, PSNs, lengths and checksums these packets would have on a wire.
///
///     | Ethernet [VLAN] | IPv4 or IPv6 | UDP | BTH | extended headers | payload | padding | ICRC |
///
/// The UDP checksum is 0 over IPv4 and filled in over IPv6, which wants one (RFC 8200, 8.1).
/// Thread: device. Owns: nothing; the message and its payload must outlive it.
class RocePackets {
  public:
    /// Precondition: `message.route` is set.
    explicit RocePackets(const Message& message);

    /// Number of packets; at least one.
    [[nodiscard]] std::uint32_t count() const { return count_; }

    struct Packet {
        /// Bytes on the wire, without FCS.
        std::size_t length = 0;
        /// Bytes written.
        std::size_t captured = 0;
    };

    /// Writes the first `limit` bytes of the next packet to `into`; what is not asked for is not computed.
    /// Precondition: `into` holds kMaxRocePacket bytes. Fails: nullopt behind the last packet.
    std::optional<Packet> next(MutableBytes into, std::size_t limit = kMaxRocePacket);

  private:
    /// Place of one packet in its whole message, of which this fragment may be a part.
    struct Place {
        bool first;
        bool last;
        std::size_t payload;
    };
    class Writer;

    void write_link_headers(Writer& out, std::size_t transport) const;
    void write_transport_headers(Writer& out, const Place& place) const;
    void write_extended_headers(Writer& out, const Place& place) const;
    /// Copies the next `into.size()` payload bytes; zeros where the payload is too short.
    void take_payload(MutableBytes into);
    void skip_payload(std::size_t size);

    const Message& message_;
    std::uint32_t mtu_;
    /// Payload bytes of all packets together.
    std::uint64_t payload_;
    std::uint32_t count_;
    std::uint32_t done_ = 0;
    /// Where the next payload byte lies.
    const mem::SpanList::Piece* piece_ = nullptr;
    std::size_t piece_offset_ = 0;
};

}  // namespace ernic::net
