// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_order.hpp"
#include "base/bytes.hpp"
#include "mesh/endpoint.hpp"
#include "mesh/limits.hpp"
#include "wire/ethernet.hpp"

/// What two nodes say to each other, byte by byte (docs/mesh-protocol.md). Everything that arrives is checked
/// here, once, and typed from then on. Every function: Thread: any. Fails: nullopt for what a node of this
/// version would not send.
namespace ernic::mesh {

inline constexpr std::uint16_t kVersion = 1;
inline constexpr std::array<char, 8> kMagic = {'E', 'R', 'N', 'I', 'C', 'M', 'S', 'H'};

enum class FrameType : std::uint8_t {
    Hello = 1,  ///< who I am; the first of both sides
    Proof,      ///< that I have the key; the second of both sides when there is one
    Announce,   ///< the MAC addresses of my guest; replaces earlier ones
    Welcome,    ///< from a manager: the number of the node
    Nodes,      ///< from a manager: who else is there, or no longer is
    Ping,
    Pong,
    Message,  ///< a fragment of an RDMA message
    Ethernet,
};

/// In front of everything.
struct Prefix {
    be32 body_size;
    std::uint8_t type;
    std::uint8_t reserved;
    be16 head_size;
};
ERNIC_WIRE(Prefix, 8);

/// A process, for as long as it runs: random, so that one that was started again is a new one.
struct NodeId {
    std::array<std::uint8_t, 16> bytes{};
    friend constexpr auto operator<=>(const NodeId&, const NodeId&) = default;
};

using Nonce = std::array<std::uint8_t, 32>;

/// Bits of Hello.
inline constexpr std::uint32_t kCapabilityKey = 1U << 0U;      ///< a proof follows, and tags
inline constexpr std::uint32_t kCapabilityManager = 1U << 1U;  ///< I introduce nodes to each other
inline constexpr std::uint32_t kCapabilityJoin = 1U << 2U;     ///< introduce me

struct Hello {
    std::uint16_t version = kVersion;
    std::uint16_t oldest_version = kVersion;
    std::uint32_t capabilities = 0;
    std::uint32_t max_body = kMaxBody;
    /// The number a manager had given, so that a new one can give it again; kNoNumber: none.
    std::uint32_t number = 0;
    NodeId id;
    Nonce nonce{};
    /// Where others reach this node. An unspecified address stands for the one the connection comes from.
    Endpoint endpoint;
    std::string name;

    [[nodiscard]] bool has(std::uint32_t capability) const { return (capabilities & capability) != 0; }
};
inline constexpr std::uint32_t kNoNumber = 0xffffffff;
inline constexpr std::size_t kHelloSize = 160;

std::array<std::byte, kHelloSize> encode(const Hello& hello);
/// What is wrong with a Hello.
enum class HelloFault : std::uint8_t { None, NotOurs, Version, Content };
/// `fault` says why not.
std::optional<Hello> decode_hello(Bytes head, HelloFault& fault);

/// A node as a manager describes it.
struct Node {
    NodeId id;
    std::uint32_t number = kNoNumber;
    Endpoint endpoint;
    std::string name;
    /// False in a list of changes: it has gone.
    bool present = true;
};

struct NodeList {
    /// All there are; otherwise changes.
    bool complete = false;
    std::vector<Node> nodes;
};
inline constexpr std::size_t kNodesHeadSize = 4;
std::array<std::byte, kNodesHeadSize> encode_nodes_head(const NodeList& list);
std::vector<std::byte> encode_nodes_body(const NodeList& list);
std::optional<NodeList> decode_nodes(Bytes head, Bytes body);

std::vector<std::byte> encode_macs(std::span<const wire::MacAddress> macs);
std::optional<std::vector<wire::MacAddress>> decode_macs(Bytes head);

/// Whether a frame of `type` may have this size.
[[nodiscard]] bool size_allowed(const Prefix& prefix);

/// Printable ASCII, not empty, at most kMaxName: it appears in logs.
[[nodiscard]] bool good_name(std::string_view name);

}  // namespace ernic::mesh

template <>
struct std::hash<ernic::mesh::NodeId> {
    std::size_t operator()(const ernic::mesh::NodeId& id) const noexcept {
        return std::hash<std::string_view>()(
            std::string_view(reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size()));
    }
};
