// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.hpp"
#include "wire/ethernet.hpp"

namespace ernic::net {

/// Where MAC addresses were last seen (IEEE 802.1Q, 8.8): a table of fixed size, as in a real switch, so that
/// a flood of made-up addresses costs neither memory nor time.
///
///     hash ->  | way | way | way | way |   a new address takes a free place, an aged one, or the oldest one
///
/// Thread: device. Owns: its memory, all of it from the beginning.
class MacTable {
  public:
    static constexpr std::size_t kCapacity = 4096;
    static constexpr std::size_t kWays = 4;
    /// IEEE 802.1Q, table 8-6: recommended ageing time.
    static constexpr Nanoseconds kAgeing = 300'000'000'000U;

    using Port = std::uint16_t;

    MacTable();

    /// True when a fresh address had to make room. Multicast and zero addresses are not learned.
    bool learn(const wire::MacAddress& mac, Port port, Nanoseconds now);
    /// Fails: nullopt when the address is unknown or has aged.
    [[nodiscard]] std::optional<Port> find(const wire::MacAddress& mac, Nanoseconds now) const;
    void forget(Port port);
    /// One address that has not aged.
    struct Seen {
        wire::MacAddress mac;
        Port port = 0;
        Nanoseconds age = 0;
    };
    /// What is in `place`, from 0 to kCapacity - 1, for a reading in steps. Fails: nullopt when there is
    /// nothing, or it has aged.
    [[nodiscard]] std::optional<Seen> at(std::size_t place, Nanoseconds now) const;
    /// Addresses that have not aged.
    [[nodiscard]] std::size_t count(Nanoseconds now) const;

  private:
    struct Entry {
        wire::MacAddress mac;
        Port port = 0;
        bool used = false;
        Nanoseconds seen = 0;
    };
    static constexpr std::size_t kSets = kCapacity / kWays;

    [[nodiscard]] static std::size_t first_of(const wire::MacAddress& mac);
    [[nodiscard]] static bool fresh(const Entry& entry, Nanoseconds now) {
        return entry.used && now - entry.seen < kAgeing;
    }

    std::vector<Entry> entries_;
};

}  // namespace ernic::net
