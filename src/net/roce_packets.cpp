// SPDX-License-Identifier: MIT
#include "net/roce_packets.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "net/checksum.hpp"
#include "net/icrc.hpp"
#include "wire/ethernet.hpp"
#include "wire/roce.hpp"

namespace ernic::net {
namespace {

using wire::roce::AcknowledgeHeader;
using wire::roce::BaseHeader;
using wire::roce::Opcode;
using wire::roce::padding_of;

bool carries_payload(MessageKind kind) {
    return kind == MessageKind::Send || kind == MessageKind::Write || kind == MessageKind::Datagram ||
           kind == MessageKind::ReadResponse;
}

/// One of the four opcodes of a cut message, by place.
Opcode by_place(bool first, bool last, Opcode first_opcode, Opcode middle, Opcode last_opcode, Opcode only) {
    if (first) {
        return last ? only : first_opcode;
    }
    return last ? last_opcode : middle;
}

Opcode send_opcode(const Message& message, bool first, bool last) {
    Opcode at_end = Opcode::RcSendLast;
    Opcode only = Opcode::RcSendOnly;
    if (message.has_immediate) {
        at_end = Opcode::RcSendLastImmediate;
        only = Opcode::RcSendOnlyImmediate;
    } else if (message.has_invalidate) {
        at_end = Opcode::RcSendLastInvalidate;
        only = Opcode::RcSendOnlyInvalidate;
    }
    return by_place(first, last, Opcode::RcSendFirst, Opcode::RcSendMiddle, at_end, only);
}

Opcode opcode_of(const Message& message, bool first, bool last) {
    const bool immediate = message.has_immediate;
    switch (message.kind) {
        case MessageKind::Send:
            return send_opcode(message, first, last);
        case MessageKind::Write:
            return by_place(first, last, Opcode::RcWriteFirst, Opcode::RcWriteMiddle,
                            immediate ? Opcode::RcWriteLastImmediate : Opcode::RcWriteLast,
                            immediate ? Opcode::RcWriteOnlyImmediate : Opcode::RcWriteOnly);
        case MessageKind::ReadRequest:
            return Opcode::RcReadRequest;
        case MessageKind::CompareSwap:
            return Opcode::RcCompareSwap;
        case MessageKind::FetchAdd:
            return Opcode::RcFetchAdd;
        case MessageKind::Datagram:
            return immediate ? Opcode::UdSendOnlyImmediate : Opcode::UdSendOnly;
        case MessageKind::Acknowledge:
            return Opcode::RcAcknowledge;
        case MessageKind::ReadResponse:
            return by_place(first, last, Opcode::RcReadResponseFirst, Opcode::RcReadResponseMiddle,
                            Opcode::RcReadResponseLast, Opcode::RcReadResponseOnly);
        case MessageKind::AtomicResponse:
            break;
    }
    return Opcode::RcAtomicAcknowledge;
}

std::uint8_t syndrome_of(const Message& message) {
    switch (message.syndrome) {
        case Syndrome::Ack:
            break;
        case Syndrome::RnrNak:
            return static_cast<std::uint8_t>(AcknowledgeHeader::kRnrNak | (message.rnr_timer & 0x1fU));
        case Syndrome::NakSequence:
            return AcknowledgeHeader::kNakSequence;
        case Syndrome::NakInvalidRequest:
            return AcknowledgeHeader::kNakInvalidRequest;
        case Syndrome::NakRemoteAccess:
            return AcknowledgeHeader::kNakRemoteAccess;
        case Syndrome::NakRemoteOperation:
            return AcknowledgeHeader::kNakRemoteOperation;
    }
    return AcknowledgeHeader::kAck;
}

AcknowledgeHeader acknowledge_header(const Message& message) {
    return {be32(std::uint32_t{syndrome_of(message)} << AcknowledgeHeader::kSyndromeShift |
                 (message.msn & BaseHeader::kNumberMask))};
}

/// Fills in the UDP checksum of `packet`, which begins with an IPv6 header and is complete.
void finish_udp_checksum(MutableBytes packet) {
    const Bytes udp = packet.subspan(sizeof(wire::Ipv6Header));
    const Bytes addresses = packet.subspan(offsetof(wire::Ipv6Header, source), 32);
    const std::uint16_t pseudo =
        pseudo_header_sum(addresses, wire::kIpProtocolUdp, static_cast<std::uint32_t>(udp.size()));
    const le16 checksum(finished_checksum(ones_complement_sum(udp, pseudo)));
    std::memcpy(packet.data() + sizeof(wire::Ipv6Header) + offsetof(wire::UdpHeader, checksum), &checksum,
                sizeof(checksum));
}

}  // namespace

/// Appends headers. Precondition: the buffer holds kMaxRocePacket bytes.
class RocePackets::Writer {
  public:
    explicit Writer(MutableBytes into) : into_(into) {}

    template <WireValue T>
    void put(const T& header) {
        std::memcpy(into_.data() + size_, &header, sizeof(header));
        size_ += sizeof(header);
    }
    MutableBytes take(std::size_t size) {
        const MutableBytes taken = into_.subspan(size_, size);
        size_ += size;
        return taken;
    }
    [[nodiscard]] std::size_t size() const { return size_; }

  private:
    MutableBytes into_;
    std::size_t size_ = 0;
};

RocePackets::RocePackets(const Message& message)
    : message_(message),
      mtu_(message.path_mtu == 0 ? std::uint32_t{kMaxPacketPayload}
                                 : std::min<std::uint32_t>(message.path_mtu, kMaxPacketPayload)),
      payload_(carries_payload(message.kind) ? message.length : 0),
      count_(1) {
    assert(message.route != nullptr);
    if (message.kind == MessageKind::Datagram) {
        payload_ = std::min<std::uint64_t>(payload_, kMaxPacketPayload);
    } else if (payload_ > mtu_) {
        count_ = static_cast<std::uint32_t>((payload_ + mtu_ - 1) / mtu_);
    }
    if (message.payload != nullptr) {
        piece_ = message.payload->begin();
    }
}

std::optional<RocePackets::Packet> RocePackets::next(MutableBytes into, std::size_t limit) {
    assert(into.size() >= kMaxRocePacket);
    if (done_ == count_) {
        return std::nullopt;
    }
    const std::uint64_t offset = std::uint64_t{done_} * mtu_;
    const std::uint64_t largest = message_.kind == MessageKind::Datagram ? payload_ : mtu_;
    const Place place{.first = message_.first && done_ == 0,
                      .last = message_.last && done_ + 1 == count_,
                      .payload = static_cast<std::size_t>(std::min(payload_ - offset, largest))};
    // The transport part first, for its length: it is written behind the headers in front of it.
    std::array<std::byte, sizeof(BaseHeader) + sizeof(wire::roce::AtomicHeader)> raw{};
    Writer transport(raw);
    write_transport_headers(transport, place);
    const std::size_t padding = padding_of(place.payload);
    const std::size_t behind = place.payload + padding + wire::roce::kIcrcSize;

    Writer out(into);
    write_link_headers(out, transport.size() + behind);
    std::copy_n(raw.begin(), transport.size(), out.take(transport.size()).begin());
    const std::size_t length = out.size() + behind;
    ++done_;
    if (message_.route->ipv4 && limit <= length - wire::roce::kIcrcSize) {
        // Without the end of the packet there is no need for its CRC, nor for the payload in between.
        const std::size_t wanted = limit - std::min(limit, out.size());
        const std::size_t copied = std::min(wanted, place.payload);
        take_payload(out.take(copied));
        skip_payload(place.payload - copied);
        std::ranges::fill(out.take(wanted - copied), std::byte{0});
        return Packet{length, limit};
    }
    take_payload(out.take(place.payload));
    std::ranges::fill(out.take(padding), std::byte{0});
    const std::size_t link =
        sizeof(wire::EthernetHeader) + (message_.route->vlan_tci ? sizeof(wire::VlanTag) : 0);
    const le32 icrc(invariant_crc(into.subspan(link, out.size() - link)));
    out.put(icrc);
    if (!message_.route->ipv4) {
        finish_udp_checksum(into.subspan(link, length - link));
    }
    return Packet{length, std::min(limit, length)};
}

void RocePackets::write_link_headers(Writer& out, std::size_t transport) const {
    const Route& route = *message_.route;
    const std::uint16_t inner = route.ipv4 ? wire::kEtherTypeIpv4 : wire::kEtherTypeIpv6;
    out.put(wire::EthernetHeader{route.destination, route.source,
                                 be16(route.vlan_tci ? wire::kEtherTypeVlan : inner)});
    if (route.vlan_tci) {
        out.put(wire::VlanTag{be16(*route.vlan_tci), be16(inner)});
    }
    // The lengths and the IPv4 checksum, as in a datagram's receive buffer.
    const std::array<std::byte, sizeof(wire::Ipv6Header)> network = network_header(route, transport);
    const std::size_t unused = route.ipv4 ? sizeof(wire::Ipv6Header) - sizeof(wire::Ipv4Header) : 0;
    std::copy(network.begin() + static_cast<std::ptrdiff_t>(unused), network.end(),
              out.take(network.size() - unused).begin());
    out.put(wire::UdpHeader{be16(route.udp_source_port), be16(wire::kRoceUdpPort),
                            be16(static_cast<std::uint16_t>(sizeof(wire::UdpHeader) + transport)), be16(0)});
}

void RocePackets::write_transport_headers(Writer& out, const Place& place) const {
    const bool end_of_fragment = done_ + 1 == count_;
    std::uint8_t flags = BaseHeader::kMigrated;
    flags |= static_cast<std::uint8_t>(padding_of(place.payload) << BaseHeader::kPaddingShift);
    if (message_.solicited && end_of_fragment) {
        flags |= BaseHeader::kSolicited;
    }
    // A request for which there is always an answer need not ask for one, but hardware sets the bit all the
    // same.
    const bool acknowledge = message_.acknowledge_request && end_of_fragment;
    const std::uint32_t psn = (message_.psn + done_) & BaseHeader::kNumberMask;
    out.put(BaseHeader{static_cast<std::uint8_t>(opcode_of(message_, place.first, place.last)), flags,
                       be16(wire::roce::kDefaultPartition),
                       be32(message_.destination_qpn & BaseHeader::kNumberMask),
                       be32((acknowledge ? BaseHeader::kAcknowledgeRequest : 0) | psn)});
    write_extended_headers(out, place);
}

void RocePackets::write_extended_headers(Writer& out, const Place& place) const {
    switch (message_.kind) {
        case MessageKind::Datagram:
            out.put(wire::roce::DatagramHeader{be32(message_.qkey),
                                               be32(message_.source_qpn & BaseHeader::kNumberMask)});
            break;
        case MessageKind::Write:
            if (place.first) {
                // A fragment knows the length of the whole message it begins.
                const std::uint64_t total = std::max(message_.message_length, message_.length);
                out.put(wire::roce::RdmaHeader{be64(message_.remote_va), be32(message_.rkey),
                                               be32(static_cast<std::uint32_t>(total))});
            }
            break;
        case MessageKind::ReadRequest:
            out.put(wire::roce::RdmaHeader{be64(message_.remote_va), be32(message_.rkey),
                                           be32(static_cast<std::uint32_t>(message_.length))});
            break;
        case MessageKind::CompareSwap:
        case MessageKind::FetchAdd:
            out.put(wire::roce::AtomicHeader{be64(message_.remote_va), be32(message_.rkey),
                                             be64(message_.swap_add), be64(message_.compare)});
            break;
        case MessageKind::ReadResponse:
            if (place.first || place.last) {
                out.put(acknowledge_header(message_));
            }
            break;
        case MessageKind::Acknowledge:
            out.put(acknowledge_header(message_));
            break;
        case MessageKind::AtomicResponse:
            out.put(acknowledge_header(message_));
            out.put(wire::roce::AtomicAcknowledgeHeader{be64(message_.swap_add)});
            break;
        case MessageKind::Send:
            break;
    }
    const bool request = message_.kind == MessageKind::Send || message_.kind == MessageKind::Write ||
                         message_.kind == MessageKind::Datagram;
    if (request && place.last && message_.has_immediate) {
        out.put(wire::roce::ImmediateHeader{be32(message_.immediate)});
    } else if (request && place.last && message_.has_invalidate) {
        out.put(wire::roce::InvalidateHeader{be32(message_.invalidate_key)});
    }
}

void RocePackets::take_payload(MutableBytes into) {
    while (!into.empty() && piece_ != nullptr && piece_ != message_.payload->end()) {
        const std::size_t size = std::min(piece_->size - piece_offset_, into.size());
        std::memcpy(into.data(), piece_->data + piece_offset_, size);
        into = into.subspan(size);
        skip_payload(size);
    }
    std::ranges::fill(into, std::byte{0});
}

void RocePackets::skip_payload(std::size_t size) {
    while (size != 0 && piece_ != nullptr && piece_ != message_.payload->end()) {
        const std::size_t part = std::min(piece_->size - piece_offset_, size);
        size -= part;
        piece_offset_ += part;
        if (piece_offset_ == piece_->size) {
            ++piece_;
            piece_offset_ = 0;
        }
    }
}

}  // namespace ernic::net
