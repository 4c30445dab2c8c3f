// SPDX-License-Identifier: MIT
#include "mesh/peer.hpp"

#include <algorithm>
#include <utility>

#include "base/byte_order.hpp"

namespace ernic::mesh {

Peer::Peer(const NodeId& id, std::uint16_t slot, net::Segment& segment, const Clock& clock,
           Counters& counters, PeerOwner& owner)
    : id_(id), slot_(slot), segment_(segment), clock_(clock), counters_(counters), owner_(owner) {
    node.id = id;
}

Peer::~Peer() {
    announce({});
}

std::unique_ptr<Link> Peer::open(std::unique_ptr<Link> link) {
    std::unique_ptr<Link> older = close();
    link_ = std::move(link);
    heard_ = clock_.now();
    pinged_ = 0;
    ping_open_ = false;
    round_trip_ = blocked_ = 0;
    ++connects_;
    return older;
}

std::unique_ptr<Link> Peer::close() {
    announce({});
    if (link_) {
        link_->close();
    }
    return std::move(link_);
}

void Peer::announce(std::vector<wire::MacAddress> macs) {
    // Detaching looks at all addresses of all peers: not for one that has none.
    if (!announced_.empty()) {
        segment_.detach(*this);
    }
    announced_ = std::move(macs);
}

void Peer::send_control(FrameType type, Bytes head, const mem::SpanList* body) {
    if (link_) {
        link_->send(type, head, body, Importance::Control);
    }
}

bool Peer::send_frame(const HeadBuffer& head, const mem::SpanList& data) {
    if (link_ && link_->send(FrameType::Ethernet, head.view(), &data, Importance::Data)) {
        traffic_.bytes_sent += data.bytes();
        return true;
    }
    ++traffic_.dropped;
    return false;
}

bool Peer::has(const wire::MacAddress& mac) const {
    return segment_.owner(mac) == this;
}

void Peer::tick(Nanoseconds now, Nanoseconds heartbeat) {
    if (!link_) {
        return;
    }
    link_->trim();
    if (!link_->ready()) {
        // A datagram's sender does not wait for ever.
        segment_.made_room(*this);
    }
    if (!ping_open_ && now - pinged_ >= heartbeat) {
        ping(now);
    }
}

void Peer::ping(Nanoseconds now) {
    pinged_ = now;
    ping_open_ = true;
    const be64 stamp(now);
    send_control(FrameType::Ping, bytes_of(stamp));
}

bool Peer::on_pong(Bytes head) {
    const auto stamp = read_value<be64>(head);
    if (!ping_open_ || !stamp || stamp->get() != pinged_) {
        return false;
    }
    ping_open_ = false;
    settled_ = pinged_;
    round_trip_ = clock_.now() - pinged_;
    return true;
}

void Peer::deliver(const net::Message& message) {
    HeadBuffer head;
    encode(message, head);
    const std::size_t size = message.payload != nullptr ? message.payload->bytes() : 0;
    if (!link_ || size > kMaxBody ||
        !link_->send(FrameType::Message, head.view(), message.payload, Importance::Data)) {
        counters_.messages_dropped.add();
        ++traffic_.dropped;
        return;
    }
    ++traffic_.messages_sent;
    traffic_.bytes_sent += size;
}

bool Peer::ready(bool may_lose) const {
    if (!link_ || link_->ready()) {
        blocked_ = 0;
        return true;
    }
    const Nanoseconds now = clock_.now();
    if (blocked_ == 0) {
        blocked_ = now;
    }
    return may_lose && now - blocked_ >= kDatagramPatience;
}

bool Peer::settled(Nanoseconds since) {
    if (!link_ || settled_ >= since) {
        return true;
    }
    if (!ping_open_) {
        ping(clock_.now());
    }
    return false;
}

bool Peer::on_incoming(const Incoming& incoming) {
    heard_ = clock_.now();
    switch (incoming.type) {
        case FrameType::Message:
            return on_message(incoming);
        case FrameType::Ping:
            send_control(FrameType::Pong, incoming.head);
            return true;
        case FrameType::Pong:
            return on_pong(incoming.head);
        default:
            return owner_.on_peer_control(*this, incoming);
    }
}

bool Peer::on_message(const Incoming& incoming) {
    auto decoded = decode_message(incoming.head, incoming.body_size);
    if (!decoded) {
        return false;
    }
    net::Message& message = decoded->message;
    message.route = &decoded->route;
    ++traffic_.messages_received;
    traffic_.bytes_received += incoming.body_size;
    if (!has(decoded->route.source)) {
        counters_.foreign_source.add();
        return true;
    }
    const net::Port* const owner = segment_.owner(decoded->route.destination);
    if (owner == nullptr || owner->remote()) {
        counters_.foreign_destination.add();
        return true;
    }
    switch (message.kind) {
        case net::MessageKind::Send:
        case net::MessageKind::Write:
        case net::MessageKind::Datagram:
        case net::MessageKind::ReadResponse:
            message.payload = incoming.body;
            message.stream = incoming.stream;
            break;
        default:
            break;
    }
    segment_.send(message);
    return true;
}

}  // namespace ernic::mesh
