// SPDX-License-Identifier: MIT
#include "net/held_queue.hpp"

#include <vector>

namespace ernic::net {
namespace {

/// What one turn of the timer may release before the event loop looks at the socket: at most about 100 us.
constexpr std::size_t kBytesPerTurn = std::size_t{512} * 1024;
constexpr std::size_t kPiecesPerTurn = 64;

}  // namespace

void HeldQueue::hold(Nanoseconds due, Entry entry) {
    bytes_ += entry.traffic.bytes();
    const auto place = entries_.emplace(due, std::move(entry));
    if (place == entries_.begin()) {
        timer_.arm(due);
    }
}

void HeldQueue::overtaken(std::uint32_t fault) {
    std::vector<Entries::iterator> free;
    for (auto place = entries_.begin(); place != entries_.end(); ++place) {
        Entry& entry = place->second;
        if (entry.fault == fault && entry.overtakers != 0 && --entry.overtakers == 0) {
            free.push_back(place);
        }
    }
    for (const auto place : free) {
        release(place);
    }
}

void HeldQueue::hurry(std::uint32_t fault) {
    make_due([fault](const Entry& entry) { return entry.fault == fault; });
}

void HeldQueue::hurry_all() {
    make_due([](const Entry&) { return true; });
}

void HeldQueue::make_due(const std::function<bool(const Entry&)>& wanted) {
    const Nanoseconds now = loop_.clock().now();
    for (auto place = entries_.begin(); place != entries_.end();) {
        const auto next = std::next(place);
        if (place->first > now && wanted(place->second)) {
            auto node = entries_.extract(place);
            node.key() = now;
            entries_.insert(std::move(node));
        }
        place = next;
    }
    if (!entries_.empty()) {
        timer_.arm(entries_.begin()->first);
    }
}

void HeldQueue::release(Entries::iterator place) {
    Entry entry = std::move(place->second);
    entries_.erase(place);
    bytes_ -= entry.traffic.bytes();
    if (entries_.empty()) {
        timer_.cancel();
    }
    // May come back here, to hold() what is sent in answer.
    release_(std::move(entry));
}

void HeldQueue::on_timer() {
    const Nanoseconds now = loop_.clock().now();
    std::size_t bytes = 0;
    for (std::size_t pieces = 0; pieces != kPiecesPerTurn && bytes < kBytesPerTurn; ++pieces) {
        const auto first = entries_.begin();
        if (first == entries_.end() || first->first > now) {
            break;
        }
        bytes += first->second.traffic.bytes();
        release(first);
    }
    if (!entries_.empty()) {
        timer_.arm(entries_.begin()->first);
    }
}

}  // namespace ernic::net
