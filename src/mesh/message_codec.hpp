// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "base/bytes.hpp"
#include "mesh/limits.hpp"
#include "net/frame.hpp"
#include "net/message.hpp"
#include "net/route.hpp"

/// RDMA messages and Ethernet frames as bytes in front of their payload. A peer is trusted with nothing:
/// decoding checks every field, and that the payload fits what the head says. Thread: any. Fails: nullopt.
namespace ernic::mesh {

inline constexpr std::size_t kLeastMessageHead = 80 + 42;
inline constexpr std::size_t kMostMessageHead = 80 + net::kMaxRouteHeader;
inline constexpr std::size_t kLeastEthernetHead = 16;

struct HeadBuffer {
    std::array<std::byte, kMaxHead> bytes;
    std::size_t size = 0;
    [[nodiscard]] Bytes view() const { return Bytes(bytes).first(size); }
};

/// Precondition: `message.route`.
void encode(const net::Message& message, HeadBuffer& out);

/// A message without its payload. `message.route` is to be set to `route` where it stays.
struct MessageHead {
    net::Message message;
    net::Route route;
};
std::optional<MessageHead> decode_message(Bytes head, std::size_t body_size);

/// Fails: false for a frame that is too large to cross.
bool encode(const net::Frame& frame, HeadBuffer& out);

/// A frame without its data; the template of a TCP packet lies in the head that was decoded.
struct EthernetHead {
    std::optional<std::uint16_t> insert_vlan;
    std::optional<net::Frame::Checksum> checksum;
    bool checksum_valid = false;
    std::optional<net::Frame::Segmentation> segmentation;
};
std::optional<EthernetHead> decode_ethernet(Bytes head, std::size_t body_size);

}  // namespace ernic::mesh
