// SPDX-License-Identifier: MIT
#include "mesh/frame_switch.hpp"

#include <algorithm>

namespace ernic::mesh {

FrameSwitch::FrameSwitch(net::FramePort& port, net::Segment& segment, const Clock& clock, Counters& counters)
    : port_(port), segment_(segment), clock_(clock), counters_(counters) {
    port_.connect(this);
}

FrameSwitch::~FrameSwitch() {
    port_.connect(nullptr);
}

void FrameSwitch::add(Peer& peer) {
    if (by_slot_[peer.slot()] != &peer) {
        by_slot_[peer.slot()] = &peer;
        open_.push_back(&peer);
    }
}

void FrameSwitch::remove(Peer& peer) {
    if (by_slot_[peer.slot()] == &peer) {
        by_slot_[peer.slot()] = nullptr;
        std::erase(open_, &peer);
        table_.forget(peer.slot());
    }
}

void FrameSwitch::transmit(const net::Frame& frame) {
    const auto header = ethernet_header(frame);
    HeadBuffer head;
    if (!header || !encode(frame, head)) {
        port_.dropped();
        return;
    }
    if (!header->destination.multicast()) {
        const net::Port* const owner = segment_.owner(header->destination);
        if (const auto peer = std::find(open_.begin(), open_.end(), owner); peer != open_.end()) {
            send(**peer, head, frame);
            return;
        }
        const auto slot = table_.find(header->destination, clock_.now());
        if (slot && by_slot_[*slot] != nullptr) {
            send(*by_slot_[*slot], head, frame);
            return;
        }
    }
    counters_.ethernet_flooded.add();
    // A connection may break while it is written to, which takes the peer out of the list.
    const std::vector<Peer*> peers = open_;
    for (Peer* const peer : peers) {
        send(*peer, head, frame);
    }
}

void FrameSwitch::send(Peer& peer, const HeadBuffer& head, const net::Frame& frame) {
    if (!peer.send_frame(head, frame.data)) {
        counters_.ethernet_dropped.add();
        port_.dropped();
    }
}

bool FrameSwitch::receive(Peer& peer, const Incoming& incoming) {
    const auto head = decode_ethernet(incoming.head, incoming.body_size);
    if (!head || incoming.body == nullptr) {
        return false;
    }
    const net::Frame frame{.data = *incoming.body,
                           .insert_vlan = head->insert_vlan,
                           .checksum = head->checksum,
                           .checksum_valid = head->checksum_valid,
                           .segmentation = head->segmentation};
    const auto header = ethernet_header(frame);
    if (!header) {
        return false;
    }
    // Nobody may pretend to be our guest, or another peer's.
    const net::Port* const owner = segment_.owner(header->source);
    if (header->source.multicast() || (owner != nullptr && owner != &peer)) {
        counters_.foreign_source.add();
        return true;
    }
    if (owner == nullptr) {
        (void)table_.learn(header->source, peer.slot(), clock_.now());
    }
    port_.transmit(frame);
    return true;
}

}  // namespace ernic::mesh
