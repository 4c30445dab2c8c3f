// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "base/result.hpp"

namespace ernic::app {

/// Faults on the segment as an operator sees them. Thread: device.
class FaultControl {
  public:
    virtual ~FaultControl() = default;

    /// Adds the fault that `spec` describes, as the option --fault does; returns its number.
    /// Thread: device. Fails: InvalidArgument with one sentence that names the nearest valid spelling.
    virtual Result<std::uint64_t> add(const std::string& spec) = 0;

    /// An array with an object per fault: `id`, `spec`, and what the engine knows beyond.
    /// Thread: device. Fails: never.
    virtual nlohmann::json list() = 0;

    /// Removes one fault. Thread: device. Fails: false when there is no such number.
    virtual bool clear(std::uint64_t id) = 0;

    /// Removes all; returns how many there were. Thread: device. Fails: never.
    virtual std::uint64_t clear_all() = 0;
};

}  // namespace ernic::app
