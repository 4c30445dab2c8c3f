// SPDX-License-Identifier: MIT
#include "services/dhcp_leases.hpp"

#include <algorithm>
#include <cassert>

namespace ernic::services {

DhcpLeases::DhcpLeases(const Clock& clock, const net::IpAddress& first, const net::IpAddress& last)
    : clock_(clock), first_(first.value_v4()), entries_(last.value_v4() - first.value_v4() + 1) {
    assert(entries_.size() <= kMaxAddresses);
}

std::optional<std::size_t> DhcpLeases::index_of(const net::IpAddress& address) const {
    const std::uint32_t offset = address.value_v4() - first_;
    return offset < entries_.size() ? std::optional<std::size_t>(offset) : std::nullopt;
}

void DhcpLeases::assign(std::size_t index, const wire::MacAddress& client, Nanoseconds until, bool bound) {
    Entry& entry = entries_[index];
    if (entry.client != client) {
        if (!entry.client.zero()) {
            by_client_.erase(entry.client);
        }
        if (const auto former = by_client_.find(client); former != by_client_.end()) {
            entries_[former->second] = {};
        }
        by_client_[client] = index;
    }
    entry = {client, until, bound};
}

std::optional<std::size_t> DhcpLeases::choose(const wire::MacAddress& client,
                                              std::optional<net::IpAddress> wanted) const {
    if (const auto found = by_client_.find(client); found != by_client_.end()) {
        return found->second;
    }
    if (const auto index = wanted ? index_of(*wanted) : std::nullopt; index && free(entries_[*index])) {
        return index;
    }
    // A fresh entry has until == 0, so that it comes first.
    const auto oldest = std::min_element(entries_.begin(), entries_.end(),
                                         [](const Entry& a, const Entry& b) { return a.until < b.until; });
    return free(*oldest) ? std::optional(static_cast<std::size_t>(oldest - entries_.begin())) : std::nullopt;
}

std::optional<net::IpAddress> DhcpLeases::offer(const wire::MacAddress& client,
                                                std::optional<net::IpAddress> wanted) {
    const auto index = choose(client, wanted);
    if (!index) {
        return std::nullopt;
    }
    const Entry& entry = entries_[*index];
    if (entry.client != client || free(entry)) {
        assign(*index, client, clock_.now() + kOffer, false);
    }
    return net::IpAddress::v4(first_ + static_cast<std::uint32_t>(*index));
}

bool DhcpLeases::bind(const wire::MacAddress& client, const net::IpAddress& address, Nanoseconds time) {
    const auto index = index_of(address);
    if (!index || (entries_[*index].client != client && !free(entries_[*index]))) {
        return false;
    }
    assign(*index, client, clock_.now() + time, true);
    return true;
}

void DhcpLeases::release(const wire::MacAddress& client) {
    if (const auto found = by_client_.find(client); found != by_client_.end()) {
        // The client is remembered: it gets the same address when it comes back in time.
        Entry& entry = entries_[found->second];
        entry.until = std::min(entry.until, clock_.now());
        entry.bound = false;
    }
}

void DhcpLeases::decline(const wire::MacAddress& client, const net::IpAddress& address) {
    const auto found = by_client_.find(client);
    if (found == by_client_.end() || index_of(address) != found->second) {
        return;  // only who was given an address may take it out of use
    }
    entries_[found->second] = {{}, clock_.now() + kDeclined, false};
    by_client_.erase(found);
}

void DhcpLeases::reserve(const net::IpAddress& address) {
    if (const auto index = index_of(address)) {
        entries_[*index] = {{}, UINT64_MAX, false};
    }
}

std::size_t DhcpLeases::bound() const {
    return static_cast<std::size_t>(
        std::count_if(entries_.begin(), entries_.end(),
                      [this](const Entry& entry) { return entry.bound && !free(entry); }));
}

}  // namespace ernic::services
