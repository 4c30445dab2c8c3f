// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "app/nvmeof_targets.hpp"
#include "app/options.hpp"
#include "base/event_loop.hpp"
#include "base/log.hpp"
#include "base/result.hpp"
#include "mesh/config.hpp"
#include "mesh/fabric.hpp"
#include "metrics/registry.hpp"
#include "net/bridge.hpp"
#include "net/faults.hpp"
#include "net/link.hpp"
#include "net/observer.hpp"
#include "net/tap.hpp"

namespace ernic::app {

/// Who this process is, for readers of statistics and operators.
[[nodiscard]] nlohmann::json identity(const Options& options);

/// The objects of one running card and who knows whom. The only place where the rooms meet;
/// docs/architecture.md draws it. Owns: all of them. Thread: the loop's.
class Instance {
  public:
    /// Builds and joins everything, registers every number. Nothing is visible outside yet. `loop` and
    /// `registry` must outlive the instance, and `registry` must not be read after it. `tap` is the interface
    /// of options.tap, already open; `mesh` is made from options.backend.mesh when that is used,
    /// `nvmeof` from options.services.
    Instance(EventLoop& loop, metrics::Registry& registry, const Options& options, const log::Logger& log,
             std::unique_ptr<NvmeofTargets> nvmeof, std::optional<net::TapDevice> tap = std::nullopt,
             std::optional<mesh::Config> mesh = std::nullopt);
    ~Instance();
    Instance(const Instance&) = delete;
    Instance& operator=(const Instance&) = delete;

    /// Joins the mesh, when there is one, and creates the socket; from now on a VMM can connect. The socket
    /// is removed with the instance. Fails: with one sentence (a live server owns the path, no such
    /// directory, no permission).
    [[nodiscard]] Status listen();

    /// `observer` sees all traffic of the segment from now on; null ends it. It must outlive its time here.
    void observe(net::Observer* observer);

    // For the control socket; all live as long as the instance.
    /// The faults on the segment, to add and clear while it runs.
    net::Faults& faults();
    /// The link of the card: the operator's say in it is Link::Source::Operator.
    net::Link& link();
    [[nodiscard]] const net::Bridge& bridge() const;
    /// The mesh; null without one.
    [[nodiscard]] const mesh::Fabric* mesh() const;
    /// The NVMe over Fabrics targets, of which there may be none.
    NvmeofTargets& nvmeof();
    /// See ionic::Card::driver_attached().
    [[nodiscard]] bool driver_attached() const;

  private:
    struct Parts;
    std::unique_ptr<Parts> parts_;
};

}  // namespace ernic::app
