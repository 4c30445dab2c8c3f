// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <thread>

namespace ernic::guest_sim {

/// How long a driver waits for a device before it gives up.
inline constexpr std::chrono::milliseconds kPatience{20000};

/// How many times slower a sanitizer makes what a time limit is about.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int kInstrumentation = 4;
#else
inline constexpr int kInstrumentation = 1;
#endif

/// Waits until `done()` returns true: spinning first, as answers usually take microseconds, then giving the
/// CPU away, then sleeping. Returns what done() said last.
template <typename Predicate>
bool wait_until(Predicate done, std::chrono::nanoseconds patience = kPatience) {
    using Clock = std::chrono::steady_clock;
    constexpr int kSpins = 2000;
    for (int i = 0; i < kSpins; ++i) {
        if (done()) {
            return true;
        }
    }
    const auto start = Clock::now();
    while (!done()) {
        const auto waited = Clock::now() - start;
        if (waited >= patience) {
            return done();
        }
        if (waited < std::chrono::milliseconds(1)) {
            std::this_thread::yield();
        } else {
            std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
    }
    return true;
}

}  // namespace ernic::guest_sim
