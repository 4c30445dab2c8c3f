// SPDX-License-Identifier: MIT
// Who is there: what a manager tells, and who dials whom.
#include <algorithm>
#include <utility>

#include "base/byte_order.hpp"
#include "mesh/fabric.hpp"

namespace ernic::mesh {

Redial* Fabric::redial_of(const Introduction& introduction) {
    if (manager_redial_.current() == &introduction) {
        return &manager_redial_;
    }
    const auto found = introduction.expected() ? peers_.find(*introduction.expected()) : peers_.end();
    return found != peers_.end() && found->second.redial->current() == &introduction
               ? found->second.redial.get()
               : nullptr;
}

void Fabric::dial(Redial& redial, const Endpoint& to, std::optional<NodeId> expected) {
    const auto dialing = std::count_if(introductions_.begin(), introductions_.end(),
                                       [](const auto& one) { return !one->over() && one->dialed(); });
    if (static_cast<std::size_t>(dialing) >= kMaxDialing) {
        redial.later(next_random());
        return;
    }
    UniqueFd socket = begin_connect(to);
    if (!socket) {
        counters_.dials_failed.add();
        redial.later(next_random());
        return;
    }
    Hello hello = own_hello();
    if (&redial == &manager_redial_) {
        hello.capabilities |= kCapabilityJoin;
    }
    introductions_.push_back(Introduction::dial(std::move(socket), to, hello, around_, *this, expected));
    redial.set(introductions_.back().get());
}

void Fabric::dial_manager() {
    dial(manager_redial_, config_.manager, std::nullopt);
}

void Fabric::dial_peer(const NodeId& id) {
    const auto found = peers_.find(id);
    if (found != peers_.end() && !found->second.peer->open()) {
        dial(*found->second.redial, found->second.peer->node.endpoint, id);
    }
}

std::string Fabric::why_unwelcome(const Introduction& introduction) const {
    const Hello& hello = introduction.hello();
    if (hello.id == id_) {
        return "it is this node itself";
    }
    if (manager_redial_.current() == &introduction && !hello.has(kCapabilityManager)) {
        return "it is no manager";
    }
    if (!introduction.dialed() && hello.has(kCapabilityJoin) && !config_.is_manager) {
        return "it takes this node for a manager";
    }
    if (!introduction.dialed() && config_.is_manager && !hello.has(kCapabilityJoin)) {
        return "it does not want to join";
    }
    if (introduction.expected() && *introduction.expected() != hello.id) {
        return "another node answers there";
    }
    return {};
}

Peer* Fabric::find_or_make(const NodeId& id) {
    if (const auto found = peers_.find(id); found != peers_.end()) {
        return found->second.peer.get();
    }
    const auto slot = std::find(slots_.begin(), slots_.end(), false);
    if (peers_.size() + 1 >= kMaxNodes || slot == slots_.end()) {
        return nullptr;
    }
    *slot = true;
    Entry& entry = peers_[id];
    entry.peer = std::make_unique<Peer>(id, static_cast<std::uint16_t>(slot - slots_.begin()), segment_,
                                        loop_.clock(), counters_, *this);
    entry.redial = std::make_unique<Redial>(loop_, [this, id] { dial_peer(id); });
    counters_.peers_known = peers_.size();
    return entry.peer.get();
}

void Fabric::follow_up(Peer& peer) {
    if (peer.joined) {
        peer.joined = false;
        numbers_.give_back(peer.node.number);
        Node gone = peer.node;
        gone.present = false;
        tell_all(gone, peer);
    }
    if (peer.is_manager) {
        peer.is_manager = false;
        manager_redial_.soon();
    }
    Entry& entry = peers_.at(peer.id());
    if (!peer.listed) {
        lost_.push_back(peer.id());
    } else if (id_ < peer.id() && entry.redial->current() == nullptr && !entry.redial->waiting()) {
        entry.redial->soon();
    }
}

void Fabric::forget_lost() {
    for (const NodeId& id : std::exchange(lost_, {})) {
        const auto found = peers_.find(id);
        if (found == peers_.end() || found->second.peer->open() || found->second.peer->listed) {
            continue;
        }
        slots_[found->second.peer->slot()] = false;
        if (const Introduction* const current = found->second.redial->current()) {
            for (const auto& one : introductions_) {
                if (one.get() == current) {
                    one->abandon();
                }
            }
        }
        peers_.erase(found);
    }
    counters_.peers_known = peers_.size();
}

// A manager.

void Fabric::welcome(Peer& peer, std::uint32_t wanted) {
    peer.node.number = numbers_.take(wanted);
    peer.joined = true;
    const be32 number(peer.node.number);
    peer.send_control(FrameType::Welcome, bytes_of(number));
    NodeList others{.complete = true, .nodes = {}};
    for (const auto& [id, entry] : peers_) {
        if (entry.peer->joined && entry.peer.get() != &peer) {
            others.nodes.push_back(entry.peer->node);
        }
    }
    send_list(peer, others);
    tell_all(peer.node, peer);
}

void Fabric::tell_all(const Node& node, const Peer& about) {
    const NodeList change{.complete = false, .nodes = {node}};
    std::vector<Peer*> told;
    for (const auto& [id, entry] : peers_) {
        if (entry.peer->joined && entry.peer.get() != &about) {
            told.push_back(entry.peer.get());
        }
    }
    for (Peer* const peer : told) {
        send_list(*peer, change);
    }
}

void Fabric::send_list(Peer& to, const NodeList& list) {
    const auto head = encode_nodes_head(list);
    std::vector<std::byte> bytes = encode_nodes_body(list);
    mem::SpanList body;
    body.add(bytes.data(), bytes.size());
    to.send_control(FrameType::Nodes, head, &body);
}

// A node with a manager.

bool Fabric::on_peer_control(Peer& peer, const Incoming& incoming) {
    switch (incoming.type) {
        case FrameType::Announce:
            return on_announce(peer, incoming);
        case FrameType::Ethernet:
            return switch_.receive(peer, incoming);
        case FrameType::Welcome: {
            const auto number = read_value<be32>(incoming.head);
            if (!peer.is_manager || !number) {
                return false;
            }
            number_ = number->get();
            return true;
        }
        case FrameType::Nodes:
            return peer.is_manager && on_nodes(incoming);
        default:
            return false;
    }
}

bool Fabric::on_nodes(const Incoming& incoming) {
    std::vector<std::byte> body(incoming.body_size);
    if (incoming.body != nullptr) {
        mem::copy(MutableBytes(body), *incoming.body);
    }
    const auto list = decode_nodes(incoming.head, body);
    if (!list) {
        return false;
    }
    if (list->complete) {
        for (auto& [id, entry] : peers_) {
            entry.peer->listed = false;
            lost_.push_back(id);
        }
    }
    for (const Node& node : list->nodes) {
        if (node.id == id_) {
            continue;
        }
        if (!node.present) {
            if (const auto found = peers_.find(node.id); found != peers_.end()) {
                found->second.peer->listed = false;
                lost_.push_back(node.id);
            }
            continue;
        }
        Peer* const peer = find_or_make(node.id);
        if (peer == nullptr) {
            counters_.refused_nodes.add();
            continue;
        }
        peer->listed = true;
        peer->node = node;
        if (!peer->open()) {
            follow_up(*peer);
        }
    }
    return true;
}

}  // namespace ernic::mesh
