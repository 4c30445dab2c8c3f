// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "ionic/packet_info.hpp"
#include "mem/guest_memory.hpp"
#include "wire/ionic_device.hpp"

namespace ernic::ionic {

/// Receive-side scaling: Toeplitz hash over addresses and ports, and the table that turns it into a queue.
/// Thread: device.
class Rss {
  public:
    explicit Rss(std::uint16_t table_size) : table_(table_size) {}

    /// LIF_SETATTR RSS; the table is copied from guest memory, so later changes there mean nothing.
    /// Fails: BadAddress, the old settings stay.
    wire::ionic::Status configure(const wire::ionic::RssAttribute& attribute, const mem::GuestMemory& memory);

    struct Choice {
        std::uint32_t queue = 0;
        std::uint32_t hash = 0;
        /// Whether a hash was made, and whether ports are in it.
        bool hashed = false;
        bool ports_hashed = false;
    };
    [[nodiscard]] Choice choose(const PacketInfo& packet) const;

    /// No hashing: everything goes to queue 0.
    void reset();

  private:
    [[nodiscard]] std::uint32_t toeplitz(Bytes input) const;

    std::uint16_t types_ = 0;
    std::array<std::uint8_t, wire::ionic::kRssKeySize> key_{};
    std::vector<std::uint8_t> table_;
};

}  // namespace ernic::ionic
