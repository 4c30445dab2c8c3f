// SPDX-License-Identifier: MIT
#include "mesh/message_codec.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/byte_order.hpp"
#include "net/segmentation.hpp"

namespace ernic::mesh {
namespace {

using net::MessageKind;

struct WireMessage {
    std::uint8_t kind;
    std::uint8_t flags;
    std::uint8_t syndrome;
    std::uint8_t rnr_timer;
    be16 path_mtu;
    be16 reserved;
    be32 destination_qpn;
    be32 source_qpn;
    be32 psn;
    be32 msn;
    be32 immediate;
    be32 invalidate_key;
    be32 qkey;
    be32 rkey;
    be64 remote_va;
    be64 length;
    be64 message_length;
    be64 compare;
    be64 swap_add;
};
ERNIC_WIRE(WireMessage, 80);
ERNIC_WIRE_AT(WireMessage, remote_va, 40);

constexpr std::uint8_t kFirst = 1U << 0U;
constexpr std::uint8_t kLast = 1U << 1U;
constexpr std::uint8_t kSolicited = 1U << 2U;
constexpr std::uint8_t kImmediate = 1U << 3U;
constexpr std::uint8_t kInvalidate = 1U << 4U;
constexpr std::uint8_t kAcknowledge = 1U << 5U;
constexpr std::uint8_t kMessageFlags = 0x3f;

constexpr std::uint32_t kMask24 = 0xffffff;
constexpr std::uint64_t kMaxMessage = std::uint64_t{1} << 31U;

struct WireEthernet {
    std::uint8_t flags;
    std::uint8_t reserved;
    be16 vlan_tci;
    be16 checksum_start;
    be16 checksum_offset;
    be16 segment_size;
    be16 reserved2;
    be32 first_segment;
};
ERNIC_WIRE(WireEthernet, 16);

constexpr std::uint8_t kVlan = 1U << 0U;
constexpr std::uint8_t kChecksum = 1U << 1U;
constexpr std::uint8_t kChecksumValid = 1U << 2U;
constexpr std::uint8_t kSegmentation = 1U << 3U;
constexpr std::uint8_t kLastSegment = 1U << 4U;
constexpr std::uint8_t kEthernetFlags = 0x1f;

std::uint8_t flag(bool on, std::uint8_t bit) {
    return on ? bit : std::uint8_t{0};
}

bool has_payload(MessageKind kind) {
    return kind == MessageKind::Send || kind == MessageKind::Write || kind == MessageKind::Datagram ||
           kind == MessageKind::ReadResponse;
}

bool sane(const WireMessage& in, std::size_t body_size) {
    if (in.kind > static_cast<std::uint8_t>(MessageKind::AtomicResponse) ||
        in.syndrome > static_cast<std::uint8_t>(net::Syndrome::NakRemoteOperation) ||
        (in.flags & ~kMessageFlags) != 0 || in.rnr_timer > 31) {
        return false;
    }
    const auto kind = static_cast<MessageKind>(in.kind);
    const std::uint64_t length = in.length.get();
    const std::uint16_t mtu = in.path_mtu.get();
    if (mtu != 0 && (mtu > kMaxDatagram || mtu < 256 || !std::has_single_bit(mtu))) {
        return false;
    }
    if (length > (kind == MessageKind::Datagram ? kMaxDatagram : kMaxBody) ||
        in.message_length.get() > kMaxMessage) {
        return false;
    }
    return body_size == (has_payload(kind) ? length : 0);
}

}  // namespace

void encode(const net::Message& message, HeadBuffer& out) {
    WireMessage head{};
    head.kind = static_cast<std::uint8_t>(message.kind);
    head.flags = static_cast<std::uint8_t>(
        flag(message.first, kFirst) | flag(message.last, kLast) | flag(message.solicited, kSolicited) |
        flag(message.has_immediate, kImmediate) | flag(message.has_invalidate, kInvalidate) |
        flag(message.acknowledge_request, kAcknowledge));
    head.syndrome = static_cast<std::uint8_t>(message.syndrome);
    head.rnr_timer = message.rnr_timer & 31U;
    head.path_mtu.set(message.path_mtu);
    head.destination_qpn.set(message.destination_qpn);
    head.source_qpn.set(message.source_qpn);
    head.psn.set(message.psn);
    head.msn.set(message.msn);
    head.immediate.set(message.immediate);
    head.invalidate_key.set(message.invalidate_key);
    head.qkey.set(message.qkey);
    head.rkey.set(message.rkey);
    head.remote_va.set(message.remote_va);
    head.length.set(message.length);
    head.message_length.set(message.message_length);
    head.compare.set(message.compare);
    head.swap_add.set(message.swap_add);
    std::memcpy(out.bytes.data(), &head, sizeof head);
    std::array<std::byte, net::kMaxRouteHeader> route;
    const std::size_t size = net::write_route(*message.route, route);
    std::memcpy(out.bytes.data() + sizeof head, route.data(), size);
    out.size = sizeof head + size;
}

std::optional<MessageHead> decode_message(Bytes head, std::size_t body_size) {
    ByteReader reader(head);
    const auto in = reader.read<WireMessage>();
    if (!in || !sane(*in, body_size)) {
        return std::nullopt;
    }
    const auto route = net::parse_route(reader.rest());
    if (!route) {
        return std::nullopt;
    }
    MessageHead out;
    out.route = *route;
    net::Message& message = out.message;
    message.kind = static_cast<MessageKind>(in->kind);
    message.first = (in->flags & kFirst) != 0;
    message.last = (in->flags & kLast) != 0;
    message.solicited = (in->flags & kSolicited) != 0;
    message.has_immediate = (in->flags & kImmediate) != 0;
    message.has_invalidate = (in->flags & kInvalidate) != 0;
    message.acknowledge_request = (in->flags & kAcknowledge) != 0;
    message.syndrome = static_cast<net::Syndrome>(in->syndrome);
    message.rnr_timer = in->rnr_timer;
    message.destination_qpn = in->destination_qpn.get() & kMask24;
    message.source_qpn = in->source_qpn.get() & kMask24;
    message.psn = in->psn.get() & kMask24;
    message.msn = in->msn.get() & kMask24;
    message.immediate = in->immediate.get();
    message.invalidate_key = in->invalidate_key.get();
    message.qkey = in->qkey.get();
    message.path_mtu = in->path_mtu.get();
    message.rkey = in->rkey.get();
    message.remote_va = in->remote_va.get();
    message.length = in->length.get();
    message.message_length = in->message_length.get();
    message.compare = in->compare.get();
    message.swap_add = in->swap_add.get();
    return out;
}

bool encode(const net::Frame& frame, HeadBuffer& out) {
    WireEthernet head{};
    head.flags = static_cast<std::uint8_t>(
        flag(frame.insert_vlan.has_value(), kVlan) | flag(frame.checksum.has_value(), kChecksum) |
        flag(frame.checksum_valid, kChecksumValid) | flag(frame.segmentation.has_value(), kSegmentation));
    if (frame.data.bytes() > kMaxEthernet) {
        return false;
    }
    if (frame.insert_vlan) {
        head.vlan_tci.set(*frame.insert_vlan);
    }
    if (frame.checksum) {
        head.checksum_start.set(frame.checksum->start);
        head.checksum_offset.set(frame.checksum->offset);
    }
    out.size = sizeof head;
    if (frame.segmentation) {
        const net::Frame::Segmentation& cut = *frame.segmentation;
        if (cut.header.size() > net::kMaxHeader) {
            return false;
        }
        head.flags = static_cast<std::uint8_t>(head.flags | flag(cut.last, kLastSegment));
        head.segment_size.set(cut.segment_size);
        head.first_segment.set(cut.first_segment);
        std::memcpy(out.bytes.data() + out.size, cut.header.data(), cut.header.size());
        out.size += cut.header.size();
    }
    std::memcpy(out.bytes.data(), &head, sizeof head);
    return true;
}

std::optional<EthernetHead> decode_ethernet(Bytes head, std::size_t body_size) {
    ByteReader reader(head);
    const auto in = reader.read<WireEthernet>();
    if (!in || (in->flags & ~kEthernetFlags) != 0 || body_size > kMaxEthernet) {
        return std::nullopt;
    }
    EthernetHead out;
    if ((in->flags & kVlan) != 0) {
        out.insert_vlan = in->vlan_tci.get();
    }
    if ((in->flags & kChecksum) != 0) {
        out.checksum = {in->checksum_start.get(), in->checksum_offset.get()};
    }
    out.checksum_valid = (in->flags & kChecksumValid) != 0;
    const Bytes header = reader.rest();
    if ((in->flags & kSegmentation) != 0) {
        if (header.size() > net::kMaxHeader || header.size() < 14 || in->segment_size.get() == 0 ||
            body_size == 0) {
            return std::nullopt;
        }
        out.segmentation = net::Frame::Segmentation{.header = header,
                                                    .segment_size = in->segment_size.get(),
                                                    .first_segment = in->first_segment.get(),
                                                    .last = (in->flags & kLastSegment) != 0};
    } else if (!header.empty()) {
        return std::nullopt;
    }
    return out;
}

}  // namespace ernic::mesh
