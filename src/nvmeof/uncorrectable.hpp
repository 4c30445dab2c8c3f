// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>

namespace ernic::nvmeof {

/// Blocks marked by Write Uncorrectable: reading them fails until they are written again. A bounded set of
/// ranges. Thread: device.
class UncorrectableBlocks {
  public:
    [[nodiscard]] bool empty() const { return ranges_.empty(); }
    /// Fails: false when there are too many ranges already.
    bool mark(std::uint64_t first, std::uint64_t count);
    void clear(std::uint64_t first, std::uint64_t count);
    [[nodiscard]] bool overlaps(std::uint64_t first, std::uint64_t count) const;

  private:
    /// Start to end; neither touching nor overlapping.
    std::map<std::uint64_t, std::uint64_t> ranges_;
};

}  // namespace ernic::nvmeof
