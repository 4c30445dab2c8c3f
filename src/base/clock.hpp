// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <ctime>

namespace ernic {

/// Nanoseconds of a monotonic clock.
using Nanoseconds = std::uint64_t;

/// Where time comes from, so that tests can advance it by hand.
class Clock {
  public:
    virtual ~Clock() = default;
    /// Thread: any.
    [[nodiscard]] virtual Nanoseconds now() const = 0;
};

/// CLOCK_MONOTONIC.
class SystemClock final : public Clock {
  public:
    [[nodiscard]] Nanoseconds now() const override {
        timespec time{};
        clock_gettime(CLOCK_MONOTONIC, &time);
        return static_cast<Nanoseconds>(time.tv_sec) * 1'000'000'000U +
               static_cast<Nanoseconds>(time.tv_nsec);
    }
};

/// A clock that stands still until told otherwise.
class FakeClock final : public Clock {
  public:
    [[nodiscard]] Nanoseconds now() const override { return now_; }
    void advance(Nanoseconds by) { now_ += by; }

  private:
    Nanoseconds now_ = 1'000'000'000;
};

}  // namespace ernic
