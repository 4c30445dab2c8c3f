// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "ionic/traffic_stats.hpp"
#include "wire/ethernet.hpp"
#include "wire/ionic_device.hpp"

namespace ernic::ionic {

/// Which received frames the LIF takes: the RX mode, MAC and VLAN filters the driver has set. Bounded by the
/// limits of the profile. Thread: device.
class RxFilters {
  public:
    RxFilters(std::uint32_t max_mac_filters, std::uint32_t max_vlan_filters)
        : max_mac_filters_(max_mac_filters), max_vlan_filters_(max_vlan_filters) {}

    void set_mode(std::uint16_t mode) { mode_ = mode; }

    /// Fills `id`, also when the same filter is there already (Exists), because the driver stores what it
    /// gets.
    wire::ionic::Status add(const wire::ionic::RxFilterAddCommand& command, std::uint32_t& id);
    wire::ionic::Status remove(std::uint32_t id);

    /// True when a frame to `destination` with VLAN id `vlan` (none: untagged) is for this LIF.
    /// `filter_vlans`: the driver has been granted VLAN filtering.
    [[nodiscard]] bool accepts(const wire::MacAddress& destination, std::optional<std::uint16_t> vlan,
                               bool filter_vlans) const;

    /// Every unicast address that is filtered for, in no order.
    [[nodiscard]] std::vector<wire::MacAddress> unicast() const;
    [[nodiscard]] std::size_t count() const { return filters_.size(); }
    void reset();

  private:
    /// Kind, VLAN id and address packed into one number: filters are equal when their keys are.
    using Key = std::uint64_t;
    static Key key_of(wire::ionic::RxFilterMatch match, std::uint16_t vlan, const wire::MacAddress& address);
    static std::optional<Key> parse(const wire::ionic::RxFilterAddCommand& command);
    [[nodiscard]] bool has(Key key) const { return ids_.contains(key); }

    std::uint32_t max_mac_filters_;
    std::uint32_t max_vlan_filters_;
    std::uint16_t mode_ = 0;
    std::uint32_t next_id_ = 1;
    std::uint32_t mac_filters_ = 0;
    std::uint32_t vlan_filters_ = 0;
    std::unordered_map<std::uint32_t, Key> filters_;
    std::unordered_map<Key, std::uint32_t> ids_;
};

}  // namespace ernic::ionic
