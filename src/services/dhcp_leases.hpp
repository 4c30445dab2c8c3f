// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "net/ip_address.hpp"
#include "wire/ethernet.hpp"

namespace ernic::services {

/// Which client has which address of a range. One address per MAC address; a client that comes back gets the
/// one it had. Thread: device.
class DhcpLeases {
  public:
    /// Addresses of a range: this bounds the table.
    static constexpr std::size_t kMaxAddresses = 4096;
    /// How long an offer is kept for its client, and a declined address is not given out.
    static constexpr Nanoseconds kOffer = 60'000'000'000;
    static constexpr Nanoseconds kDeclined = 600'000'000'000;

    /// IPv4 addresses from `first` to `last`, at most kMaxAddresses. `clock` must outlive this.
    DhcpLeases(const Clock& clock, const net::IpAddress& first, const net::IpAddress& last);

    /// Chooses an address for `client`: the one it has or had, else `wanted` when that is free, else one that
    /// was never used, else the one unused for longest. Fails: nullopt when all are taken.
    std::optional<net::IpAddress> offer(const wire::MacAddress& client, std::optional<net::IpAddress> wanted);

    /// Gives `address` to `client` for `time`. Fails: false when it is outside of the range or another
    /// client's.
    bool bind(const wire::MacAddress& client, const net::IpAddress& address, Nanoseconds time);

    /// The client gives back what it has, or an offer.
    void release(const wire::MacAddress& client);
    /// Somebody else uses the address that `client` was given.
    void decline(const wire::MacAddress& client, const net::IpAddress& address);

    /// Never gives out `address` (a host of ours has it).
    void reserve(const net::IpAddress& address);

    /// Clients with a lease that has not run out.
    [[nodiscard]] std::size_t bound() const;

  private:
    struct Entry {
        /// Who has it, or had it last; zero: nobody so far.
        wire::MacAddress client;
        /// When it becomes free.
        Nanoseconds until = 0;
        bool bound = false;
    };

    [[nodiscard]] std::optional<std::size_t> index_of(const net::IpAddress& address) const;
    [[nodiscard]] bool free(const Entry& entry) const { return entry.until <= clock_.now(); }
    void assign(std::size_t index, const wire::MacAddress& client, Nanoseconds until, bool bound);
    [[nodiscard]] std::optional<std::size_t> choose(const wire::MacAddress& client,
                                                    std::optional<net::IpAddress> wanted) const;

    const Clock& clock_;
    std::uint32_t first_;
    std::vector<Entry> entries_;
    std::unordered_map<wire::MacAddress, std::size_t> by_client_;
};

}  // namespace ernic::services
