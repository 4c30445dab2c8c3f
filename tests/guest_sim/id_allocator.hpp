// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "guest_sim/error.hpp"

namespace ernic::guest_sim {

/// Hardware ids of the two udma pipelines: bit `udma_shift` of an id says which pipeline it belongs to, the
/// other bits count up within it, lowest free first (`ionic_rdma` 7.2, ionic_resid and its bit permutation).
class UdmaIds {
  public:
    UdmaIds(std::uint32_t count, std::uint32_t udma_shift) : shift_(udma_shift), used_(count, false) {}

    /// The lowest free id of `udma`.
    std::uint32_t take(std::uint32_t udma) {
        for (std::uint32_t id = 0; id < used_.size(); ++id) {
            if (!used_[id] && (id >> shift_ & 1U) == udma) {
                used_[id] = true;
                return id;
            }
        }
        throw GuestError("no id left");
    }
    /// Takes one particular id out of circulation.
    void reserve(std::uint32_t id) { used_.at(id) = true; }
    void release(std::uint32_t id) { used_.at(id) = false; }

  private:
    std::uint32_t shift_;
    std::vector<bool> used_;
};

}  // namespace ernic::guest_sim
