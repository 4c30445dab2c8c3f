// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "mesh/limits.hpp"
#include "mesh/protocol.hpp"

namespace ernic::mesh {

/// The numbers a manager gives to nodes: the one a node had, when it is free, else the lowest. Its own is 0.
/// Numbers are for people; nodes know each other by id. A value.
class Numbers {
  public:
    Numbers() : used_(kMaxNodes, false) { used_[0] = true; }

    /// Fails: kNoNumber when all are taken.
    std::uint32_t take(std::uint32_t wanted) {
        if (wanted < used_.size() && !used_[wanted]) {
            used_[wanted] = true;
            return wanted;
        }
        for (std::uint32_t number = 0; number < used_.size(); ++number) {
            if (!used_[number]) {
                used_[number] = true;
                return number;
            }
        }
        return kNoNumber;
    }
    void give_back(std::uint32_t number) {
        if (number != 0 && number < used_.size()) {
            used_[number] = false;
        }
    }

  private:
    std::vector<bool> used_;
};

}  // namespace ernic::mesh
