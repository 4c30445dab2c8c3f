// SPDX-License-Identifier: MIT
#include "app/services.hpp"

#include <fmt/format.h>

#include <string>

namespace ernic::app {

Services::Services(EventLoop& loop, metrics::Registry& registry, net::Bridge& bridge,
                   const ServiceOptions& options, const log::Logger& log) {
    stack_counters_.register_metrics(registry);
    echo_counters_.register_metrics(registry);
    dhcp_counters_.register_metrics(registry);
    if (!options.any()) {
        return;
    }
    stack_.emplace(loop, stack_counters_, log.named("stack"), options.limits);
    for (const TargetSpec& target : options.targets) {
        // The statistics name them echo, echo2, echo3, ...
        const std::size_t number = echoes_.size() + 1;
        net::FramePort& port = plug(bridge, registry, number == 1 ? "echo" : fmt::format("echo{}", number));
        echoes_.emplace_back(*stack_, port, target.host, echo_counters_);
    }
    if (options.dhcp) {
        dhcp_.emplace(loop, *stack_, plug(bridge, registry, "dhcp"), *options.dhcp, dhcp_counters_,
                      log.named("dhcp"));
        for (const TargetSpec& target : options.targets) {
            if (target.host.ipv4) {
                dhcp_->reserve(target.host.ipv4->address);
            }
        }
    }
}

Services::~Services() = default;

net::FramePort& Services::plug(net::Bridge& bridge, metrics::Registry& registry, const std::string& name) {
    net::FramePort& port = ports_.emplace_back(bridge, name);
    port.register_metrics(registry);
    return port;
}

}  // namespace ernic::app
