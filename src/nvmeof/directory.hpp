// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

namespace ernic::nvmeof {

class Target;

/// All targets of a process, which each discovery controller of it tells of. Thread: device.
class Directory {
  public:
    void add(Target& target);
    void remove(Target& target);
    [[nodiscard]] const std::vector<Target*>& targets() const { return targets_; }
    /// Changes with every change.
    [[nodiscard]] std::uint64_t generation() const { return generation_; }

  private:
    void changed();

    std::vector<Target*> targets_;
    std::uint64_t generation_ = 0;
};

}  // namespace ernic::nvmeof
