// SPDX-License-Identifier: MIT
#include "app/control_plane.hpp"

#include <utility>

#include "app/mesh_control.hpp"
#include "app/nvmeof_control.hpp"

namespace ernic::app {

ControlPlane::ControlPlane(EventLoop& loop, metrics::Registry& registry, const Options& options,
                           Instance& instance, CaptureControl& capture, std::shared_ptr<log::Sink> sink)
    : path_(options.control_path),
      targets_{.registry = registry,
               .clock = loop.clock(),
               .link = instance.link(),
               .cable = options.tap.empty() ? "backend" : "tap",
               .bridge = instance.bridge(),
               .capture = capture,
               .faults = instance.faults(),
               .sink = sink,
               .log = log::Logger(sink, "control"),
               .identity = identity(options),
               .driver_attached = [&instance] { return instance.driver_attached(); },
               .started = loop.clock().now()},
      server_(loop, registry, targets_.log, commands_) {
    add_control_commands(commands_, targets_);
    add_mesh_commands(commands_, instance.mesh());
    add_nvmeof_commands(commands_, instance.nvmeof());
}

}  // namespace ernic::app
