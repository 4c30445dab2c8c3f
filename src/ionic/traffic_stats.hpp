// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <utility>

#include "metrics/registry.hpp"
#include "wire/ethernet.hpp"
#include "wire/ionic_ethernet.hpp"
#include "wire/ionic_identity.hpp"

namespace ernic::ionic {

enum class Cast : std::uint8_t { Unicast = 0, Multicast = 1, Broadcast = 2 };

/// How a frame to `destination` is addressed.
Cast cast_of(const wire::MacAddress& destination);

/// The statistics blocks of the LIF and of the port. They are kept here and copied to guest memory by their
/// owners, at most once per refresh period and only after a change. Thread: device.
class TrafficStats {
  public:
    /// Called on the first change after each take_dirty().
    void on_change(std::function<void()> handler) { on_change_ = std::move(handler); }
    /// True when something changed since the last call.
    bool take_dirty() { return std::exchange(dirty_, false); }

    /// `packets` frames (the segments of one TSO run) of `bytes` bytes in all left the card.
    void transmitted(Cast cast, std::uint64_t packets, std::uint64_t bytes);
    void transmit_dropped(Cast cast, std::uint64_t bytes);
    void received(Cast cast, std::uint64_t bytes);
    void receive_dropped(Cast cast, std::uint64_t bytes);
    /// Any other LIF counter; RDMA adds its own here.
    void add(wire::ionic::LifStat stat, std::uint64_t by = 1) {
        lif_[static_cast<std::size_t>(stat)] += by;
        touch();
    }

    [[nodiscard]] std::uint64_t lif(wire::ionic::LifStat stat) const {
        return lif_[static_cast<std::size_t>(stat)];
    }
    [[nodiscard]] std::uint64_t port(wire::ionic::PortStat stat) const {
        return port_[static_cast<std::size_t>(stat)];
    }

    /// Totals of the process, which no reset of the card touches.
    void register_in(metrics::Registry& registry) const;

    void reset_lif() { lif_ = {}; }
    void reset_port() { port_ = {}; }

    /// The blocks as they go to guest memory.
    [[nodiscard]] std::array<le64, wire::ionic::kLifStatsCount> lif_block() const;
    [[nodiscard]] std::array<le64, wire::ionic::kPortStatsCount> port_block() const;

  private:
    void touch() {
        if (!dirty_) {
            dirty_ = true;
            if (on_change_) {
                on_change_();
            }
        }
    }
    std::uint64_t& lif_at(wire::ionic::LifStat first, Cast cast, unsigned which);
    std::uint64_t& port_at(wire::ionic::PortStat first, unsigned which = 0);
    void count_sizes(wire::ionic::PortStat first_bin, std::uint64_t packets, std::uint64_t bytes);

    std::array<std::uint64_t, wire::ionic::kLifStatsCount> lif_{};
    std::array<std::uint64_t, wire::ionic::kPortStatsCount> port_{};
    struct Totals {
        metrics::Counter frames;
        metrics::Counter bytes;
        metrics::Counter drops;
    };
    Totals tx_;
    Totals rx_;
    std::function<void()> on_change_;
    bool dirty_ = false;
};

}  // namespace ernic::ionic
