// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.hpp"
#include "net/crossing.hpp"
#include "net/fault_spec.hpp"

namespace ernic::net {

/// SplitMix64 (Steele, Lea, Flood 2014): small, good enough, and the same everywhere, so that a seed repeats.
class FaultRandom {
  public:
    explicit FaultRandom(std::uint64_t seed) : state_(seed) {}
    std::uint64_t next() {
        state_ += 0x9e3779b97f4a7c15ULL;
        std::uint64_t z = state_;
        z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
        return z ^ (z >> 31U);
    }
    /// In [0, 1).
    double fraction() { return static_cast<double>(next() >> 11U) * 0x1.0p-53; }

  private:
    std::uint64_t state_;
};

/// One active fault: what it waits for, and how far it has come. Thread: device.
class FaultRule {
  public:
    /// Faults of different kinds with the same seed hit different traffic.
    FaultRule(std::uint32_t id, const FaultSpec& spec)
        : id_(id),
          spec_(spec),
          random_(spec.seed ^ std::uint64_t{static_cast<std::uint8_t>(spec.kind)} << 56U) {}

    [[nodiscard]] std::uint32_t id() const { return id_; }
    [[nodiscard]] const FaultSpec& spec() const { return spec_; }
    [[nodiscard]] std::uint64_t seen() const { return seen_; }
    [[nodiscard]] std::uint64_t hits() const { return hits_; }
    /// It has hit as often as asked for.
    [[nodiscard]] bool exhausted() const { return spec_.count != 0 && hits_ >= spec_.count; }

    /// Whether it is about this traffic at all.
    [[nodiscard]] bool matches(const Crossing& crossing) const;
    /// Counts something that matches; true when this one is hit.
    bool hit();

    /// When something hit by a delay may go.
    Nanoseconds delayed(Nanoseconds from);
    /// When `bytes` may go at the rate, after all that went before; the rate is then taken up until they are
    /// through. Fails: nullopt when that would be too late.
    std::optional<Nanoseconds> paced(Nanoseconds from, std::uint64_t bytes);
    std::uint64_t random() { return random_.next(); }

    /// Pieces that wait for this fault.
    std::uint32_t waiting = 0;
    /// The outage under way, and when it ends.
    bool link_down = false;
    Nanoseconds link_up_at = 0;

  private:
    std::uint32_t id_;
    FaultSpec spec_;
    FaultRandom random_;
    std::uint64_t seen_ = 0;
    std::uint64_t hits_ = 0;
    Nanoseconds free_at_ = 0;
};

}  // namespace ernic::net
