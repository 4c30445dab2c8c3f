// SPDX-License-Identifier: MIT
#include "app/services.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace ernic::app {

Services::Services(EventLoop& loop, metrics::Registry& registry, net::Segment& segment,
                   const ServiceOptions& options, std::unique_ptr<NvmeofTargets> nvmeof,
                   const log::Logger& log)
    : nvmeof_(std::move(nvmeof)) {
    net::Bridge& bridge = segment.bridge();
    stack_counters_.register_metrics(registry);
    echo_counters_.register_metrics(registry);
    dhcp_counters_.register_metrics(registry);
    nvmeof_->register_metrics(registry);
    if (options.needs_stack()) {
        stack_.emplace(loop, stack_counters_, log.named("stack"), options.limits);
    }
    std::size_t nvmeof_hosts = 0;
    for (const TargetSpec& target : options.targets) {
        switch (target.kind) {
            case TargetSpec::Kind::Echo:
                echoes_.emplace_back(*stack_, plug(bridge, registry, name("echo", echoes_.size())),
                                     target.host, echo_counters_);
                break;
            case TargetSpec::Kind::Null:
                null_ports_.emplace_back(bridge, name("null", null_ports_.size())).register_metrics(registry);
                break;
            case TargetSpec::Kind::Reflect:
                reflect_ports_.emplace_back(bridge, name("reflect", reflect_ports_.size()), target.host.mac)
                    .register_metrics(registry);
                break;
            case TargetSpec::Kind::Nvmeof:
                nvmeof_->plug(nvmeof_hosts, *stack_, plug(bridge, registry, name("nvmeof", nvmeof_hosts)),
                              segment);
                ++nvmeof_hosts;
                break;
        }
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

std::string Services::name(std::string_view prefix, std::size_t before) {
    return before == 0 ? std::string(prefix) : fmt::format("{}{}", prefix, before + 1);
}

net::FramePort& Services::plug(net::Bridge& bridge, metrics::Registry& registry, const std::string& name) {
    net::FramePort& port = ports_.emplace_back(bridge, name);
    port.register_metrics(registry);
    return port;
}

}  // namespace ernic::app
