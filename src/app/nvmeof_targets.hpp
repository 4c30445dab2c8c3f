// SPDX-License-Identifier: MIT
#pragma once

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "app/service_options.hpp"
#include "base/event_loop.hpp"
#include "base/log.hpp"
#include "base/result.hpp"
#include "metrics/registry.hpp"
#include "net/bridge.hpp"
#include "net/segment.hpp"
#include "net/stack/host.hpp"
#include "net/stack/stack.hpp"
#include "nvmeof/directory.hpp"
#include "nvmeof/rdma_transport.hpp"
#include "nvmeof/runtime.hpp"
#include "nvmeof/target.hpp"

namespace ernic::app {

/// The NVMe over Fabrics targets of one run: what they share, their subsystems, and, once plugged in, their
/// hosts on the segment. Owns: all of them. Thread: the loop's.
class NvmeofTargets {
  public:
    /// Opens the media of all targets in `options`, which parse_services() has found to fit together. `loop`
    /// must outlive this. Fails: one sentence about the namespace that cannot be had.
    static Result<std::unique_ptr<NvmeofTargets>> open(EventLoop& loop, const ServiceOptions& options,
                                                       const log::Logger& log);
    ~NvmeofTargets();
    NvmeofTargets(const NvmeofTargets&) = delete;
    NvmeofTargets& operator=(const NvmeofTargets&) = delete;

    [[nodiscard]] std::size_t size() const { return targets_.size(); }
    [[nodiscard]] nvmeof::Target& target(std::size_t number) const { return *targets_.at(number); }
    [[nodiscard]] nvmeof::Runtime& runtime() { return runtime_; }
    /// From now on target `number` is a host on `segment`, its frames at `port`. All references must outlive
    /// this. Precondition: once for each.
    void plug(std::size_t number, net::stack::Stack& stack, net::FramePort& port, net::Segment& segment);

    /// One budgeted piece of work; true when there is more.
    bool step();

    /// Numbers of targets, which are there (and zero) without one too.
    void register_metrics(metrics::Registry& registry) const;

  private:
    /// A target's place on the segment.
    struct Place {
        Place(net::stack::Stack& stack, net::FramePort& port, net::Segment& segment, NvmeofTargets& all,
              nvmeof::Target& target);
        net::stack::Host host;
        nvmeof::RdmaTransport transport;
    };

    NvmeofTargets(EventLoop& loop, const log::Logger& log);
    /// Precondition: there is one (parse_services() has looked).
    [[nodiscard]] const nvmeof::Target& owner_of(const std::string& nqn) const;

    EventLoop& loop_;
    log::Logger log_;
    nvmeof::TransportCounters transport_counters_;
    rdma::ConnectionCounters connection_counters_;
    nvmeof::Runtime runtime_;
    nvmeof::Directory directory_;
    std::vector<std::unique_ptr<nvmeof::Target>> targets_;
    std::list<Place> places_;
};

}  // namespace ernic::app
