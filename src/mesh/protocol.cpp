// SPDX-License-Identifier: MIT
#include "mesh/protocol.hpp"

#include <algorithm>
#include <bit>

#include "mesh/message_codec.hpp"

namespace ernic::mesh {
namespace {

/// An Endpoint on the wire. Family 0: the address is the one the connection comes from.
struct WireEndpoint {
    be16 port;
    std::uint8_t family;
    std::uint8_t reserved;
    std::array<std::byte, 16> address;
};
ERNIC_WIRE(WireEndpoint, 20);

struct WireName {
    std::uint8_t size;
    std::array<std::uint8_t, 3> reserved;
    std::array<char, kMaxName> text;
};
ERNIC_WIRE(WireName, 68);

struct WireHello {
    std::array<char, 8> magic;
    be16 version;
    be16 oldest_version;
    be32 capabilities;
    be32 max_body;
    be32 number;
    NodeId id;
    Nonce nonce;
    WireEndpoint endpoint;
    WireName name;
};
ERNIC_WIRE(WireHello, 160);
ERNIC_WIRE_AT(WireHello, id, 24);
ERNIC_WIRE_AT(WireHello, nonce, 40);
ERNIC_WIRE_AT(WireHello, endpoint, 72);
ERNIC_WIRE_AT(WireHello, name, 92);

struct WireNode {
    NodeId id;
    be32 number;
    std::uint8_t present;
    std::array<std::uint8_t, 3> reserved;
    WireEndpoint endpoint;
    WireName name;
};
ERNIC_WIRE(WireNode, 112);
static_assert(sizeof(WireNode) * kMaxNodes <= kMaxBody);

struct WireListHead {
    be16 flags;
    be16 count;
};
ERNIC_WIRE(WireListHead, 4);
constexpr std::uint16_t kComplete = 1;

WireEndpoint to_wire(const Endpoint& endpoint) {
    WireEndpoint out{};
    out.port.set(endpoint.port);
    if (!endpoint.address.unspecified()) {
        out.family = endpoint.address.is_v4() ? 4 : 6;
        std::ranges::copy(endpoint.address.bytes(), out.address.begin());
    }
    return out;
}

std::optional<Endpoint> from_wire(const WireEndpoint& in) {
    Endpoint endpoint;
    endpoint.port = in.port.get();
    switch (in.family) {
        case 0:
            break;
        case 4:
            endpoint.address = net::IpAddress::v4(read_value<be32>(in.address)->get());
            break;
        case 6:
            endpoint.address = net::IpAddress::v6(std::bit_cast<std::array<std::uint8_t, 16>>(in.address));
            break;
        default:
            return std::nullopt;
    }
    return endpoint;
}

WireName to_wire(const std::string& name) {
    WireName out{};
    out.size = static_cast<std::uint8_t>(std::min(name.size(), kMaxName));
    std::copy_n(name.begin(), out.size, out.text.begin());
    return out;
}

std::optional<std::string> from_wire(const WireName& in) {
    if (in.size > kMaxName) {
        return std::nullopt;
    }
    std::string name(in.text.data(), in.size);
    return good_name(name) ? std::optional(std::move(name)) : std::nullopt;
}

}  // namespace

bool good_name(std::string_view name) {
    return !name.empty() && name.size() <= kMaxName &&
           std::ranges::all_of(name, [](char letter) { return letter > ' ' && letter <= '~'; });
}

std::array<std::byte, kHelloSize> encode(const Hello& hello) {
    WireHello out{};
    out.magic = kMagic;
    out.version.set(hello.version);
    out.oldest_version.set(hello.oldest_version);
    out.capabilities.set(hello.capabilities);
    out.max_body.set(hello.max_body);
    out.number.set(hello.number);
    out.id = hello.id;
    out.nonce = hello.nonce;
    out.endpoint = to_wire(hello.endpoint);
    out.name = to_wire(hello.name);
    return std::bit_cast<std::array<std::byte, kHelloSize>>(out);
}

std::optional<Hello> decode_hello(Bytes head, HelloFault& fault) {
    // A later version may append to it.
    const auto in = read_value<WireHello>(head);
    if (!in || in->magic != kMagic) {
        fault = HelloFault::NotOurs;
        return std::nullopt;
    }
    if (in->version.get() < kVersion || in->oldest_version.get() > kVersion) {
        fault = HelloFault::Version;
        return std::nullopt;
    }
    fault = HelloFault::Content;
    const auto endpoint = from_wire(in->endpoint);
    auto name = from_wire(in->name);
    // Others are told the port: one that nobody can reach would be passed on.
    if (!endpoint || endpoint->port == 0 || !name || in->max_body.get() < kMaxBody) {
        return std::nullopt;
    }
    fault = HelloFault::None;
    return Hello{.version = in->version.get(),
                 .oldest_version = in->oldest_version.get(),
                 .capabilities = in->capabilities.get(),
                 .max_body = in->max_body.get(),
                 .number = in->number.get(),
                 .id = in->id,
                 .nonce = in->nonce,
                 .endpoint = *endpoint,
                 .name = std::move(*name)};
}

std::array<std::byte, kNodesHeadSize> encode_nodes_head(const NodeList& list) {
    WireListHead head{};
    head.flags.set(list.complete ? kComplete : std::uint16_t{0});
    head.count.set(static_cast<std::uint16_t>(list.nodes.size()));
    return std::bit_cast<std::array<std::byte, kNodesHeadSize>>(head);
}

std::vector<std::byte> encode_nodes_body(const NodeList& list) {
    std::vector<std::byte> out;
    out.reserve(list.nodes.size() * sizeof(WireNode));
    for (const Node& node : list.nodes) {
        WireNode one{};
        one.id = node.id;
        one.number.set(node.number);
        one.present = node.present ? 1 : 0;
        one.endpoint = to_wire(node.endpoint);
        one.name = to_wire(node.name);
        const Bytes bytes = bytes_of(one);
        out.insert(out.end(), bytes.begin(), bytes.end());
    }
    return out;
}

std::optional<NodeList> decode_nodes(Bytes head, Bytes body) {
    const auto in = read_value<WireListHead>(head);
    if (!in || in->count.get() > kMaxNodes || body.size() != in->count.get() * sizeof(WireNode)) {
        return std::nullopt;
    }
    NodeList list;
    list.complete = (in->flags.get() & kComplete) != 0;
    ByteReader reader(body);
    while (const auto one = reader.read<WireNode>()) {
        const auto endpoint = from_wire(one->endpoint);
        auto name = from_wire(one->name);
        if (!endpoint || !name || endpoint->port == 0 || endpoint->address.unspecified()) {
            return std::nullopt;
        }
        list.nodes.push_back({.id = one->id,
                              .number = one->number.get(),
                              .endpoint = *endpoint,
                              .name = std::move(*name),
                              .present = one->present != 0});
    }
    return list;
}

std::vector<std::byte> encode_macs(std::span<const wire::MacAddress> macs) {
    const auto kept = macs.first(std::min(macs.size(), kMaxMacs));
    std::vector<std::byte> out;
    for (const wire::MacAddress& mac : kept) {
        const Bytes bytes = bytes_of(mac);
        out.insert(out.end(), bytes.begin(), bytes.end());
    }
    return out;
}

std::optional<std::vector<wire::MacAddress>> decode_macs(Bytes head) {
    if (head.size() % sizeof(wire::MacAddress) != 0 || head.size() > kMaxMacs * sizeof(wire::MacAddress)) {
        return std::nullopt;
    }
    std::vector<wire::MacAddress> macs;
    ByteReader reader(head);
    while (const auto mac = reader.read<wire::MacAddress>()) {
        if (mac->multicast() || mac->zero()) {
            return std::nullopt;
        }
        macs.push_back(*mac);
    }
    return macs;
}

bool size_allowed(const Prefix& prefix) {
    const std::size_t head = prefix.head_size.get();
    const std::size_t body = prefix.body_size.get();
    if (prefix.reserved != 0 || head > kMaxHead || body > kMaxBody) {
        return false;
    }
    switch (static_cast<FrameType>(prefix.type)) {
        case FrameType::Hello:
            return head >= kHelloSize && body == 0;
        case FrameType::Proof:
            return head == 32 && body == 0;
        case FrameType::Announce:
            return body == 0;
        case FrameType::Welcome:
            return head == 4 && body == 0;
        case FrameType::Nodes:
            return head == kNodesHeadSize;
        case FrameType::Ping:
        case FrameType::Pong:
            return head == 8 && body == 0;
        case FrameType::Message:
            return head >= kLeastMessageHead && head <= kMostMessageHead;
        case FrameType::Ethernet:
            return head >= kLeastEthernetHead && body <= kMaxEthernet;
    }
    return false;
}

}  // namespace ernic::mesh
