// SPDX-License-Identifier: MIT
#include "net/bridge.hpp"

#include <algorithm>
#include <cassert>
#include <optional>

#include "wire/ethernet.hpp"

namespace ernic::net {
namespace {

std::size_t size_of(const Frame& frame) {
    return frame.data.bytes() + (frame.segmentation ? frame.segmentation->header.size() : 0);
}

}  // namespace

FramePort::FramePort(Bridge& bridge, std::string name) : bridge_(bridge), name_(std::move(name)) {
    bridge_.add(*this);
}

FramePort::~FramePort() {
    bridge_.remove(*this);
}

void FramePort::transmit(const Frame& frame) {
    frames_in_.add();
    bytes_in_.add(size_of(frame));
    bridge_.forward(*this, frame);
}

void FramePort::deliver(const Frame& frame) {
    if (device_ == nullptr) {
        return;  // nothing is plugged in here
    }
    frames_out_.add();
    bytes_out_.add(size_of(frame));
    device_->transmit(frame);
}

std::size_t FramePort::room() const {
    std::size_t least = SIZE_MAX;
    for (const FramePort* port : bridge_.ports_) {
        if (port != nullptr && port != this && port->device_ != nullptr) {
            least = std::min(least, port->device_->room());
        }
    }
    return least;
}

void FramePort::made_room() {
    for (FramePort* port : bridge_.ports_) {
        if (port != nullptr && port != this && port->room_handler_) {
            port->room_handler_();
        }
    }
}

FramePort::Counts FramePort::counts() const {
    return {frames_in_.value(), bytes_in_.value(), frames_out_.value(), bytes_out_.value(), drops_.value()};
}

void FramePort::register_metrics(metrics::Registry& registry) const {
    const std::string prefix = "segment.ports." + name_ + ".";
    registry.add({prefix + "frames_in", "frames",
                  "frames from this port into the segment; a TCP packet that is still to be cut counts once"},
                 frames_in_);
    registry.add({prefix + "bytes_in", "bytes", "bytes of those frames"}, bytes_in_);
    registry.add(
        {prefix + "frames_out", "frames", "frames out of the segment to this port, counted likewise"},
        frames_out_);
    registry.add({prefix + "bytes_out", "bytes", "bytes of those frames"}, bytes_out_);
    registry.add(
        {prefix + "drops", "frames",
         "frames for this port that it could not take; high: it is down, or slower than the senders"},
        drops_);
}

void Bridge::add(FramePort& port) {
    const auto place = std::find(ports_.begin(), ports_.end(), nullptr);
    assert(place != ports_.end());
    *place = &port;
    port.id_ = static_cast<MacTable::Port>(place - ports_.begin());
}

void Bridge::remove(FramePort& port) {
    ports_[port.id_] = nullptr;
    table_.forget(port.id_);
}

void Bridge::forward(FramePort& from, const Frame& frame) {
    const auto header = ethernet_header(frame);
    if (!header) {
        runts_.add();
        return;
    }
    if (observer_ != nullptr) {
        observer_->on_frame(frame);
    }
    const Nanoseconds time = now();
    if (table_.learn(header->source, from.id_, time)) {
        evictions_.add();
    }
    const auto known = port_of(header->destination, time);
    if (filter_ != nullptr && !filter_->pass(frame, from.id_, path_of(from.id_, known))) {
        return;
    }
    hand_over(frame, from.id_, known);
}

std::optional<MacTable::Port> Bridge::port_of(const wire::MacAddress& destination, Nanoseconds time) const {
    return destination.multicast() ? std::nullopt : table_.find(destination, time);
}

Path Bridge::path_of(MacTable::Port from, std::optional<MacTable::Port> known) const {
    const bool from_guest = from == guest_;
    return {.from_guest = from_guest, .to_guest = known ? known == guest_ : !from_guest};
}

void Bridge::deliver(const Frame& frame, MacTable::Port from) {
    if (const auto header = ethernet_header(frame)) {
        hand_over(frame, from, port_of(header->destination, now()));
    }
}

void Bridge::hand_over(const Frame& frame, MacTable::Port from, std::optional<MacTable::Port> known) {
    if (known) {
        if (*known == from) {
            same_port_.add();
        } else if (ports_[*known] != nullptr) {
            ports_[*known]->deliver(frame);
        }
        return;
    }
    floods_.add();
    for (FramePort* port : ports_) {
        if (port != nullptr && port->id_ != from) {
            port->deliver(frame);
        }
    }
}

void Bridge::register_metrics(metrics::Registry& registry) const {
    registry.add({"segment.frames.flooded", "frames",
                  "frames sent to all ports: broadcast, multicast, or a MAC address not seen in 300 s"},
                 floods_);
    registry.add({"segment.frames.same_port", "frames",
                  "frames to a MAC address on the port they came from, which a bridge drops"},
                 same_port_);
    registry.add({"segment.frames.runts", "frames", "frames without a whole Ethernet header, dropped"},
                 runts_);
    registry.add({"segment.mac_table.evictions", "addresses",
                  "addresses that had to make room for another before they aged; high: more than some "
                  "thousand hosts, or somebody floods made-up addresses"},
                 evictions_);
    registry.add({"segment.mac_table.entries", "addresses", "addresses seen in the last 300 s"},
                 [this] { return table_.count(now()); });
}

}  // namespace ernic::net
