// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "nvmeof/limits.hpp"
#include "wire/nvme_log.hpp"

namespace ernic::nvmeof {

/// The last errors of a controller. Thread: device.
class ErrorLog {
  public:
    /// Numbers `entry` and keeps it in the place of the oldest.
    void add(wire::nvme::ErrorEntry entry) {
        entry.count.set(++count_);
        entries_[count_ % kErrorEntries] = entry;
    }
    /// Errors so far.
    [[nodiscard]] std::uint64_t count() const { return count_; }
    /// The newest (0), the one before, and so on; zeroes where there is none.
    [[nodiscard]] wire::nvme::ErrorEntry newest(std::size_t index) const {
        return index < count_ && index < kErrorEntries ? entries_[(count_ - index) % kErrorEntries]
                                                       : wire::nvme::ErrorEntry{};
    }

  private:
    std::array<wire::nvme::ErrorEntry, kErrorEntries> entries_{};
    std::uint64_t count_ = 0;
};

}  // namespace ernic::nvmeof
