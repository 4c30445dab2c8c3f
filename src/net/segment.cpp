// SPDX-License-Identifier: MIT
#include "net/segment.hpp"

#include <algorithm>

namespace ernic::net {

void Segment::attach(Port& port, wire::MacAddress mac) {
    if (closed_) {
        return;
    }
    owners_[mac] = &port;
    last_port_ = nullptr;
    if (!port.remote() && local_change_) {
        local_change_();
    }
}

void Segment::detach(Port& port) {
    const std::size_t gone =
        std::erase_if(owners_, [&port](const auto& entry) { return entry.second == &port; });
    last_port_ = nullptr;
    for (Port* const listener : listeners_) {
        listener->on_gone(port);
    }
    if (gone != 0 && !port.remote() && local_change_) {
        local_change_();
    }
}

Port* Segment::owner(const wire::MacAddress& mac) const {
    const auto found = owners_.find(mac);
    return found == owners_.end() ? nullptr : found->second;
}

std::vector<wire::MacAddress> Segment::local_macs() const {
    std::vector<wire::MacAddress> macs;
    for (const auto& [mac, port] : owners_) {
        if (!port->remote()) {
            macs.push_back(mac);
        }
    }
    std::sort(macs.begin(), macs.end());
    return macs;
}

Port* Segment::find(const wire::MacAddress& mac) {
    if (last_port_ == nullptr || !(mac == last_mac_)) {
        last_port_ = owner(mac);
        last_mac_ = mac;
    }
    return last_port_;
}

bool Segment::ready(const wire::MacAddress& mac, bool may_lose) {
    const Port* const port = find(mac);
    return port == nullptr || port->ready(may_lose);
}

bool Segment::settled(const wire::MacAddress& mac, Nanoseconds since) {
    Port* const port = find(mac);
    return port == nullptr || port->settled(since);
}

void Segment::made_room(Port& port) {
    for (Port* const listener : listeners_) {
        listener->on_room(port);
    }
}

void Segment::was_reset(Port& port) {
    for (Port* const listener : listeners_) {
        listener->on_reset(port);
    }
}

void Segment::send(const Message& message) {
    messages_.add();
    if (observer_ != nullptr) {
        observer_->on_message(message);
    }
    if (filter_ != nullptr && !filter_->pass(message, {.from_guest = of_guest(message.route->source),
                                                       .to_guest = of_guest(message.route->destination)})) {
        return;
    }
    deliver(message);
}

bool Segment::of_guest(const wire::MacAddress& mac) const {
    const Port* const port = owner(mac);
    return port != nullptr && port == guest_;
}

void Segment::deliver(const Message& message) {
    if (Port* const port = find(message.route->destination)) {
        port->deliver(message);
    } else {
        unknown_destination_.add();
    }
}

void Segment::register_metrics(metrics::Registry& registry) {
    registry.add({"segment.messages", "messages", "RDMA message fragments handed to the segment"}, messages_);
    registry.add(
        {"segment.unknown_destination", "messages",
         "messages to a MAC address nobody owns; high: an address handle or connection names a missing host"},
        unknown_destination_);
    bridge_.register_metrics(registry);
}

}  // namespace ernic::net
