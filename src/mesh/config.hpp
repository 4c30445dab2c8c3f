// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

#include "base/clock.hpp"
#include "mesh/auth.hpp"
#include "mesh/endpoint.hpp"

namespace ernic::mesh {

/// What a node is told: resolved, checked, ready to use.
struct Config {
    /// Introduces others to each other. Otherwise `manager` does that for this one.
    bool is_manager = false;
    /// Where this node listens; port 0: any.
    Endpoint listen;
    Endpoint manager;
    std::optional<Key> key;
    Nanoseconds heartbeat = 1'000'000'000;
    Nanoseconds dead_after = 10'000'000'000;
    std::string name;

    [[nodiscard]] unsigned dead_after_ms() const { return static_cast<unsigned>(dead_after / 1'000'000); }
};

}  // namespace ernic::mesh
