// SPDX-License-Identifier: MIT
#include "ionic/rx_filters.hpp"

#include "base/bytes.hpp"

namespace ernic::ionic {
namespace {

using wire::ionic::RxFilterMatch;
using wire::ionic::Status;
namespace rx_mode = wire::ionic::rx_mode;

constexpr std::uint16_t kMaxVlanId = 4095;
constexpr unsigned kVlanShift = 48;
constexpr unsigned kMatchShift = 60;

}  // namespace

RxFilters::Key RxFilters::key_of(RxFilterMatch match, std::uint16_t vlan, const wire::MacAddress& address) {
    Key key = 0;
    for (const std::uint8_t byte : address.bytes) {
        key = key << 8U | byte;
    }
    return key | Key{vlan} << kVlanShift | Key{static_cast<std::uint16_t>(match)} << kMatchShift;
}

std::optional<RxFilters::Key> RxFilters::parse(const wire::ionic::RxFilterAddCommand& command) {
    const auto match = static_cast<RxFilterMatch>(command.match.get());
    switch (match) {
        case RxFilterMatch::Vlan: {
            const std::uint16_t vlan = read_value<le16>(command.body)->get();
            return vlan <= kMaxVlanId ? std::optional(key_of(match, vlan, {})) : std::nullopt;
        }
        case RxFilterMatch::Mac:
            return key_of(match, 0, *read_value<wire::MacAddress>(command.body));
        case RxFilterMatch::MacVlan: {
            const auto body = *read_value<wire::ionic::MacVlanMatch>(command.body);
            const std::uint16_t vlan = body.vlan.get();
            return vlan <= kMaxVlanId ? std::optional(key_of(match, vlan, body.address)) : std::nullopt;
        }
        case RxFilterMatch::PacketClass:
            break;
    }
    return std::nullopt;
}

Status RxFilters::add(const wire::ionic::RxFilterAddCommand& command, std::uint32_t& id) {
    const auto match = static_cast<RxFilterMatch>(command.match.get());
    if (match == RxFilterMatch::PacketClass) {
        return Status::NotSupported;  // only with time stamps
    }
    const auto key = parse(command);
    if (!key) {
        return Status::Invalid;
    }
    if (const auto found = ids_.find(*key); found != ids_.end()) {
        id = found->second;
        return Status::Exists;
    }
    const bool vlan_only = match == RxFilterMatch::Vlan;
    std::uint32_t& used = vlan_only ? vlan_filters_ : mac_filters_;
    if (used >= (vlan_only ? max_vlan_filters_ : max_mac_filters_)) {
        return Status::NoSpace;
    }
    ++used;
    // Ids in use are few; a guest that adds and deletes 2^32 times meets a used id at most `count()` times in
    // a row.
    while (filters_.contains(next_id_)) {
        ++next_id_;
    }
    id = next_id_++;
    filters_.emplace(id, *key);
    ids_.emplace(*key, id);
    return Status::Success;
}

Status RxFilters::remove(std::uint32_t id) {
    const auto found = filters_.find(id);
    if (found == filters_.end()) {
        return Status::NotFound;
    }
    const auto match = static_cast<RxFilterMatch>(found->second >> kMatchShift);
    --(match == RxFilterMatch::Vlan ? vlan_filters_ : mac_filters_);
    ids_.erase(found->second);
    filters_.erase(found);
    return Status::Success;
}

std::vector<wire::MacAddress> RxFilters::unicast() const {
    std::vector<wire::MacAddress> addresses;
    for (const auto& [key, id] : ids_) {
        wire::MacAddress address;
        for (std::size_t i = 0; i < address.bytes.size(); ++i) {
            address.bytes[i] = static_cast<std::uint8_t>(key >> (8 * (address.bytes.size() - 1 - i)));
        }
        if (static_cast<RxFilterMatch>(key >> kMatchShift) == RxFilterMatch::Mac && !address.multicast()) {
            addresses.push_back(address);
        }
    }
    return addresses;
}

bool RxFilters::accepts(const wire::MacAddress& destination, std::optional<std::uint16_t> vlan,
                        bool filter_vlans) const {
    if ((mode_ & rx_mode::kPromiscuous) != 0) {
        return true;
    }
    const auto known = [&] {
        return has(key_of(RxFilterMatch::Mac, 0, destination)) ||
               (vlan && has(key_of(RxFilterMatch::MacVlan, *vlan, destination)));
    };
    bool address = false;
    switch (cast_of(destination)) {
        case Cast::Unicast:
            address = (mode_ & rx_mode::kUnicast) != 0 && known();
            break;
        case Cast::Multicast:
            address =
                (mode_ & rx_mode::kAllMulticast) != 0 || ((mode_ & rx_mode::kMulticast) != 0 && known());
            break;
        case Cast::Broadcast:
            address = (mode_ & rx_mode::kBroadcast) != 0;
            break;
    }
    if (!address || !vlan || !filter_vlans) {
        return address;
    }
    return has(key_of(RxFilterMatch::Vlan, *vlan, {})) ||
           has(key_of(RxFilterMatch::MacVlan, *vlan, destination));
}

void RxFilters::reset() {
    mode_ = 0;
    mac_filters_ = 0;
    vlan_filters_ = 0;
    filters_.clear();
    ids_.clear();
}

}  // namespace ernic::ionic
