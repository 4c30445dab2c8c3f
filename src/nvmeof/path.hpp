// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "wire/nvme.hpp"
#include "wire/nvme_log.hpp"

namespace ernic::nvmeof {

/// All namespaces of a subsystem are in one ANA group, this one: what differs is by which path they are
/// reached.
inline constexpr std::uint32_t kAnaGroup = 1;
inline constexpr std::uint32_t kAnaGroups = 1;

/// How good one way to a subsystem is (ANA, Base Specification 8.1); all controllers reached by it report the
/// same. Thread: device.
class Path {
  public:
    explicit Path(wire::nvme::AnaState state) : state_(state) {}

    [[nodiscard]] wire::nvme::AnaState state() const { return state_; }
    /// Times that it has changed.
    [[nodiscard]] std::uint64_t changes() const { return changes_; }
    void set(wire::nvme::AnaState state) {
        state_ = state;
        ++changes_;
    }
    /// What a command that needs a namespace ends with here; Success: nothing is in its way.
    [[nodiscard]] wire::nvme::Status refusal() const {
        using wire::nvme::AnaState;
        using wire::nvme::Status;
        switch (state_) {
            case AnaState::Optimized:
            case AnaState::NonOptimized:
                return Status::Success;
            case AnaState::Inaccessible:
                return Status::AnaInaccessible;
            case AnaState::PersistentLoss:
                return Status::AnaPersistentLoss;
            case AnaState::Change:
                return Status::AnaTransition;
        }
        return Status::InternalError;
    }

  private:
    wire::nvme::AnaState state_;
    std::uint64_t changes_ = 0;
};

}  // namespace ernic::nvmeof
