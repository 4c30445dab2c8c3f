// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "app/capture_control.hpp"
#include "app/control_commands.hpp"
#include "app/options.hpp"
#include "app/wiring.hpp"
#include "base/event_loop.hpp"
#include "base/log.hpp"
#include "base/result.hpp"
#include "control/commands.hpp"
#include "control/server.hpp"
#include "metrics/registry.hpp"

namespace ernic::app {

/// The control socket of a running instance (--control). Owns: the socket and the commands. Thread: the
/// loop's.
class ControlPlane {
  public:
    /// All references must outlive this. `registry` must not be read after it.
    ControlPlane(EventLoop& loop, metrics::Registry& registry, const Options& options, Instance& instance,
                 CaptureControl& capture, std::shared_ptr<log::Sink> sink);
    ControlPlane(const ControlPlane&) = delete;
    ControlPlane& operator=(const ControlPlane&) = delete;

    /// Creates the socket. Fails: as Listener::listen().
    [[nodiscard]] Status listen() { return server_.listen({.path = path_}); }

  private:
    std::string path_;
    ControlTargets targets_;
    control::Commands commands_;
    control::Server server_;
};

}  // namespace ernic::app
