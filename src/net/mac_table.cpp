// SPDX-License-Identifier: MIT
#include "net/mac_table.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace ernic::net {

MacTable::MacTable() : entries_(kCapacity) {
}

std::size_t MacTable::first_of(const wire::MacAddress& mac) {
    // The upper bits of the hash are the well-mixed ones.
    return (std::hash<wire::MacAddress>()(mac) >> 40U) % kSets * kWays;
}

bool MacTable::learn(const wire::MacAddress& mac, Port port, Nanoseconds now) {
    if (mac.multicast() || mac.zero()) {
        return false;
    }
    const std::size_t first = first_of(mac);
    Entry* place = &entries_[first];
    for (std::size_t i = first; i < first + kWays; ++i) {
        Entry& entry = entries_[i];
        if (entry.used && entry.mac == mac) {
            entry.port = port;
            entry.seen = now;
            return false;
        }
        // Places never used sort before all others.
        if (std::pair(entry.used, entry.seen) < std::pair(place->used, place->seen)) {
            place = &entry;
        }
    }
    const bool evicted = fresh(*place, now);
    *place = {mac, port, true, now};
    return evicted;
}

std::optional<MacTable::Port> MacTable::find(const wire::MacAddress& mac, Nanoseconds now) const {
    const std::size_t first = first_of(mac);
    for (std::size_t i = first; i < first + kWays; ++i) {
        const Entry& entry = entries_[i];
        if (entry.mac == mac && fresh(entry, now)) {
            return entry.port;
        }
    }
    return std::nullopt;
}

void MacTable::forget(Port port) {
    for (Entry& entry : entries_) {
        if (entry.port == port) {
            entry = {};
        }
    }
}

std::optional<MacTable::Seen> MacTable::at(std::size_t place, Nanoseconds now) const {
    const Entry& entry = entries_[place];
    return fresh(entry, now) ? std::optional(Seen{entry.mac, entry.port, now - entry.seen}) : std::nullopt;
}

std::size_t MacTable::count(Nanoseconds now) const {
    return static_cast<std::size_t>(
        std::count_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return fresh(e, now); }));
}

}  // namespace ernic::net
