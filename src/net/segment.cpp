// SPDX-License-Identifier: MIT
#include "net/segment.hpp"

namespace ernic::net {

void Segment::attach(Port& port, wire::MacAddress mac) {
    if (closed_) {
        return;
    }
    owners_[mac] = &port;
    last_port_ = nullptr;
}

void Segment::detach(Port& port) {
    std::erase_if(owners_, [&port](const auto& entry) { return entry.second == &port; });
    last_port_ = nullptr;
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
    const auto owner = owners_.find(mac);
    return owner != owners_.end() && owner->second == guest_;
}

void Segment::deliver(const Message& message) {
    const wire::MacAddress& mac = message.route->destination;
    if (last_port_ == nullptr || !(mac == last_mac_)) {
        const auto owner = owners_.find(mac);
        if (owner == owners_.end()) {
            unknown_destination_.add();
            return;
        }
        last_mac_ = mac;
        last_port_ = owner->second;
    }
    last_port_->deliver(message);
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
