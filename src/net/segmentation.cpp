// SPDX-License-Identifier: MIT
#include "net/segmentation.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "net/checksum.hpp"
#include "wire/ethernet.hpp"

namespace ernic::net {
namespace {

constexpr std::size_t kTag = sizeof(wire::VlanTag);
/// Enough for all headers a receiver looks at.
constexpr std::size_t kLookedAt = 128;
constexpr std::size_t kMaxIpLength = 65535;

/// Replaces a header at `offset` of `packet`. Precondition: it lies inside.
template <WireValue T>
void store(MutableBytes packet, std::size_t offset, const T& value) {
    std::memcpy(packet.data() + offset, &value, sizeof value);
}

struct InsertedTag {
    be16 ether_type;
    be16 tci;
};

/// Writes `header` with a tag behind the MAC addresses; returns how many bytes that are.
std::size_t copy_header_with_tag(Bytes header, std::uint16_t tci, MutableBytes out) {
    std::copy_n(header.begin(), wire::kMacAddressesSize, out.begin());
    store(out, wire::kMacAddressesSize, InsertedTag{be16(wire::kEtherTypeVlan), be16(tci)});
    std::copy(header.begin() + wire::kMacAddressesSize, header.end(),
              out.begin() + wire::kMacAddressesSize + kTag);
    return header.size() + kTag;
}

/// The template of a packet, tag inserted, in the caller's buffer.
struct Template {
    MutableBytes bytes;
    TcpLayout layout;
};

std::optional<Template> make_template(const Frame& frame, MutableBytes buffer) {
    const Bytes header = frame.segmentation->header;
    if (header.size() < sizeof(wire::EthernetHeader) || header.size() + kTag > buffer.size()) {
        return std::nullopt;
    }
    std::size_t size = header.size();
    if (frame.insert_vlan) {
        size = copy_header_with_tag(header, *frame.insert_vlan, buffer);
    } else {
        std::copy(header.begin(), header.end(), buffer.begin());
    }
    const MutableBytes bytes = buffer.first(size);
    const auto layout = tcp_layout(bytes);
    if (!layout || layout->size != size) {
        return std::nullopt;
    }
    return Template{bytes, *layout};
}

/// What the headers of one segment, or of several in a row, need to know.
struct Position {
    std::uint32_t index = 0;
    std::uint32_t offset = 0;
    std::size_t payload = 0;
    bool last = false;
};

/// Turns the template into the headers of the packet at `position`, all but the TCP checksum. Returns the sum
/// of the pseudo header.
std::uint16_t fill_headers(const Template& from, MutableBytes out, const Position& position) {
    const TcpLayout& layout = from.layout;
    std::copy(from.bytes.begin(), from.bytes.end(), out.begin());
    const std::size_t transport_length = layout.size - layout.transport + position.payload;
    Bytes addresses;
    if (layout.ipv4) {
        auto ip = *read_value<wire::Ipv4Header>(out.subspan(layout.network));
        ip.total_length.set(static_cast<std::uint16_t>(layout.transport - layout.network + transport_length));
        ip.id.set(static_cast<std::uint16_t>(ip.id.get() + position.index));
        ip.checksum.set(0);
        store(out, layout.network, ip);
        const Bytes header = out.subspan(layout.network, layout.transport - layout.network);
        const le16 checksum(static_cast<std::uint16_t>(~ones_complement_sum(header)));
        store(out, layout.network + offsetof(wire::Ipv4Header, checksum), checksum);
        addresses = out.subspan(layout.network + offsetof(wire::Ipv4Header, source), 8);
    } else {
        auto ip = *read_value<wire::Ipv6Header>(out.subspan(layout.network));
        ip.payload_length.set(static_cast<std::uint16_t>(transport_length));
        store(out, layout.network, ip);
        addresses = out.subspan(layout.network + offsetof(wire::Ipv6Header, source), 32);
    }
    auto tcp = *read_value<wire::TcpHeader>(out.subspan(layout.transport));
    tcp.sequence.set(tcp.sequence.get() + position.offset);
    if (position.index != 0) {
        tcp.flags &= static_cast<std::uint8_t>(~wire::kTcpCwr);
    }
    if (!position.last) {
        tcp.flags &= static_cast<std::uint8_t>(~(wire::kTcpFin | wire::kTcpPush));
    }
    tcp.checksum.set(0);
    store(out, layout.transport, tcp);
    return pseudo_header_sum(addresses, wire::kIpProtocolTcp, static_cast<std::uint32_t>(transport_length));
}

}  // namespace

void copy_with_tag(const mem::SpanList& data, std::uint16_t tci, MutableBytes out) {
    mem::copy(out.first(wire::kMacAddressesSize), data);
    store(out, wire::kMacAddressesSize, InsertedTag{be16(wire::kEtherTypeVlan), be16(tci)});
}

std::optional<TcpLayout> tcp_layout(Bytes packet) {
    const auto ethernet = read_value<wire::EthernetHeader>(packet);
    if (!ethernet) {
        return std::nullopt;
    }
    TcpLayout layout;
    layout.network = sizeof *ethernet;
    std::uint16_t ether_type = ethernet->ether_type.get();
    if (ether_type == wire::kEtherTypeVlan) {
        const auto tag = read_value<wire::VlanTag>(packet.subspan(layout.network));
        if (!tag) {
            return std::nullopt;
        }
        ether_type = tag->ether_type.get();
        layout.network += kTag;
    }
    const Bytes network = packet.subspan(layout.network);
    std::uint8_t protocol = 0;
    if (ether_type == wire::kEtherTypeIpv4) {
        const auto ip = read_value<wire::Ipv4Header>(network);
        const std::size_t size = ip ? (ip->version_ihl & 0xfU) * std::size_t{4} : 0;
        if (!ip || ip->version_ihl >> 4U != 4 || size < sizeof *ip ||
            (ip->flags_fragment.get() & wire::kIpv4FragmentMask) != 0) {
            return std::nullopt;
        }
        layout.ipv4 = true;
        layout.transport = layout.network + size;
        protocol = ip->protocol;
    } else if (ether_type == wire::kEtherTypeIpv6) {
        const auto ip = read_value<wire::Ipv6Header>(network);
        if (!ip || ip->version_class_flow.get() >> 28U != 6) {
            return std::nullopt;
        }
        layout.transport = layout.network + sizeof *ip;
        protocol = ip->next_header;
    }
    if (protocol != wire::kIpProtocolTcp || layout.transport > packet.size()) {
        return std::nullopt;
    }
    const auto tcp = read_value<wire::TcpHeader>(packet.subspan(layout.transport));
    const std::size_t size = tcp ? (tcp->data_offset >> 4U) * std::size_t{4} : 0;
    layout.size = layout.transport + size;
    if (size < sizeof(wire::TcpHeader) || layout.size > packet.size()) {
        return std::nullopt;
    }
    return layout;
}

FrameFinisher::FrameFinisher() : scratch_(std::size_t{1} << 17U) {
}

Bytes FrameFinisher::contiguous(const mem::SpanList& data, std::size_t offset) {
    const std::size_t size = data.bytes() - offset;
    std::size_t skip = offset;
    for (const mem::SpanList::Piece& piece : data) {
        if (skip < piece.size) {
            if (piece.size - skip == size) {
                return {piece.data + skip, size};
            }
            break;
        }
        skip -= piece.size;
    }
    const MutableBytes copied = MutableBytes(scratch_).first(size);
    mem::copy(copied, data, offset);
    return copied;
}

bool FrameFinisher::finish(const Frame& frame, WireFrameSink& sink) {
    if (frame.data.bytes() > scratch_.size()) {
        return false;
    }
    return frame.segmentation ? cut(frame, sink) : finish_whole(frame, sink);
}

bool FrameFinisher::finish_whole(const Frame& frame, WireFrameSink& sink) {
    const std::size_t size = frame.data.bytes();
    if (size < sizeof(wire::EthernetHeader)) {
        return false;
    }
    const bool untouched = !frame.checksum && !frame.insert_vlan;
    if (untouched && frame.data.count() == 1) {
        sink.take({{frame.data.begin()->data, size}, {}, frame.checksum_valid});
        return true;
    }
    // The head is a copy that can be written to: up to the checksum, and all that receivers look at.
    std::size_t head_size = std::min(size, kLookedAt);
    if (frame.checksum) {
        const std::size_t field = std::size_t{frame.checksum->start} + frame.checksum->offset;
        if (field + sizeof(le16) > size) {
            return false;
        }
        head_size = std::max(head_size, field + sizeof(le16));
    }
    if (head_size + kTag > head_.size()) {
        return false;  // no protocol has its checksum that far behind
    }
    std::array<std::byte, kMaxHeader> raw;
    const MutableBytes head = MutableBytes(raw).first(head_size);
    mem::copy(head, frame.data);
    const Bytes tail = contiguous(frame.data, head_size);
    if (frame.checksum) {
        ChecksumAccumulator sum;
        sum.add(Bytes(head).subspan(frame.checksum->start));
        sum.add(tail);
        store(head, std::size_t{frame.checksum->start} + frame.checksum->offset,
              le16(finished_checksum(sum.sum())));
    }
    std::size_t written = head_size;
    if (frame.insert_vlan) {
        written = copy_header_with_tag(head, *frame.insert_vlan, head_);
    } else {
        std::copy(head.begin(), head.end(), head_.begin());
    }
    sink.take({Bytes(head_).first(written), tail, frame.checksum.has_value() || frame.checksum_valid});
    return true;
}

bool FrameFinisher::cut(const Frame& frame, WireFrameSink& sink) {
    const Frame::Segmentation& work = *frame.segmentation;
    std::array<std::byte, kMaxHeader> buffer;
    const auto model = make_template(frame, buffer);
    if (!model || work.segment_size == 0 || model->bytes.size() + work.segment_size > kMaxIpLength) {
        return false;
    }
    Bytes payload = contiguous(frame.data, 0);
    const MutableBytes head = MutableBytes(head_).first(model->bytes.size());
    Position position{.index = work.first_segment,
                      .offset = work.first_segment * work.segment_size,
                      .payload = 0,
                      .last = false};
    do {
        const Bytes part = payload.first(std::min<std::size_t>(payload.size(), work.segment_size));
        payload = payload.subspan(part.size());
        position.payload = part.size();
        position.last = work.last && payload.empty();
        ChecksumAccumulator sum(fill_headers(*model, head, position));
        sum.add(Bytes(head).subspan(model->layout.transport));
        sum.add(part);
        store(head, model->layout.transport + offsetof(wire::TcpHeader, checksum),
              le16(finished_checksum(sum.sum())));
        sink.take({head, part, true});
        ++position.index;
        position.offset += work.segment_size;
    } while (!payload.empty());
    return true;
}

std::optional<SuperFrame> super_frame(const Frame& frame, std::array<std::byte, kMaxHeader>& buffer) {
    assert(frame.segmentation);
    const Frame::Segmentation& work = *frame.segmentation;
    std::array<std::byte, kMaxHeader> raw;
    const auto model = make_template(frame, raw);
    const std::size_t payload = frame.data.bytes();
    if (!model || work.segment_size == 0 || model->bytes.size() + payload > kMaxIpLength) {
        return std::nullopt;
    }
    const MutableBytes header = MutableBytes(buffer).first(model->bytes.size());
    const std::uint16_t seed = fill_headers(*model, header,
                                            {.index = work.first_segment,
                                             .offset = work.first_segment * work.segment_size,
                                             .payload = payload,
                                             .last = work.last});
    const TcpLayout& layout = model->layout;
    store(header, layout.transport + offsetof(wire::TcpHeader, checksum), le16(seed));
    const auto tcp = *read_value<wire::TcpHeader>(header.subspan(layout.transport));
    return SuperFrame{
        .header = header,
        .checksum = {static_cast<std::uint16_t>(layout.transport), offsetof(wire::TcpHeader, checksum)},
        .ipv4 = layout.ipv4,
        .ecn = (tcp.flags & wire::kTcpCwr) != 0,
        .segment_size = payload > work.segment_size ? work.segment_size : std::uint16_t{0}};
}

}  // namespace ernic::net
