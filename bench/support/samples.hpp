// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <vector>

namespace ernic::bench {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Seconds the calling thread has spent on a CPU.
inline double thread_cpu_time() {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

/// Repeated measurements of one quantity.
class Samples {
  public:
    void add(double value) { values_.push_back(value); }
    [[nodiscard]] double median() const { return quantile(0.5); }
    /// The value below which `part` of all samples lie.
    [[nodiscard]] double quantile(double part) const {
        if (values_.empty()) {
            return 0;
        }
        std::vector<double> sorted = values_;
        const auto at = static_cast<std::ptrdiff_t>(part * static_cast<double>(sorted.size() - 1));
        std::nth_element(sorted.begin(), sorted.begin() + at, sorted.end());
        return sorted[static_cast<std::size_t>(at)];
    }

  private:
    std::vector<double> values_;
};

}  // namespace ernic::bench
