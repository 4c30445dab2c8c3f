// SPDX-License-Identifier: MIT
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "app/nvmeof_targets.hpp"
#include "app/service_options.hpp"
#include "base/event_loop.hpp"
#include "base/log.hpp"
#include "metrics/registry.hpp"
#include "net/bridge.hpp"
#include "net/loop_ports.hpp"
#include "net/segment.hpp"
#include "net/stack/stack.hpp"
#include "services/dhcp.hpp"
#include "services/echo.hpp"

namespace ernic::app {

/// The in-process services of one run, each on a port of the segment, and the IP stack they share. Owns: all
/// of them. Thread: the loop's.
class Services {
  public:
    /// All references must outlive this, and `registry` must not be read after it. Without services there is
    /// no stack, only the names of its numbers.
    /// `nvmeof` has been opened with the same options.
    Services(EventLoop& loop, metrics::Registry& registry, net::Segment& segment,
             const ServiceOptions& options, std::unique_ptr<NvmeofTargets> nvmeof, const log::Logger& log);
    ~Services();
    Services(const Services&) = delete;
    Services& operator=(const Services&) = delete;

    /// One budgeted piece of work; true when there was some.
    bool step() {
        const bool more = stack_ && stack_->step();
        return nvmeof_->step() || more;
    }

    [[nodiscard]] NvmeofTargets& nvmeof() { return *nvmeof_; }

  private:
    /// `prefix` and a number: the statistics name ports echo, echo2, echo3, ...
    static std::string name(std::string_view prefix, std::size_t before);
    net::FramePort& plug(net::Bridge& bridge, metrics::Registry& registry, const std::string& name);

    net::stack::Counters stack_counters_;
    services::EchoCounters echo_counters_;
    services::DhcpCounters dhcp_counters_;
    std::list<net::FramePort> ports_;
    std::optional<net::stack::Stack> stack_;
    std::list<services::Echo> echoes_;
    std::list<net::NullPort> null_ports_;
    std::list<net::ReflectPort> reflect_ports_;
    std::optional<services::Dhcp> dhcp_;
    std::unique_ptr<NvmeofTargets> nvmeof_;
};

}  // namespace ernic::app
