// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "app/capture_control.hpp"
#include "base/clock.hpp"
#include "base/log.hpp"
#include "control/commands.hpp"
#include "metrics/registry.hpp"
#include "net/bridge.hpp"
#include "net/faults.hpp"
#include "net/link.hpp"

namespace ernic::app {

/// What the operator's commands reach. All references must outlive the commands.
struct ControlTargets {
    const metrics::Registry& registry;
    const Clock& clock;
    net::Link& link;
    /// What Link::Source::Cable stands for: the name of a port, or "backend".
    std::string cable;
    const net::Bridge& bridge;
    CaptureControl& capture;
    net::Faults& faults;
    std::shared_ptr<log::Sink> sink;
    log::Logger log;
    /// Who this process is, as in the statistics.
    nlohmann::json identity;
    std::function<bool()> driver_attached;
    Nanoseconds started = 0;  ///< of `clock`
};

/// Registers every command of docs/control.md. `targets` must outlive `commands`.
void add_control_commands(control::Commands& commands, ControlTargets& targets);

}  // namespace ernic::app
