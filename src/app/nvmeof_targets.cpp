// SPDX-License-Identifier: MIT
#include "app/nvmeof_targets.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "app/sandbox.hpp"

namespace ernic::app {
namespace {

/// Where the target is asked for: at its own port, and where hosts look for discovery.
nvmeof::RdmaTransport::Config transport_config(const nvmeof::TargetConfig& target,
                                               const net::stack::HostAddresses& addresses) {
    nvmeof::RdmaTransport::Config config;
    config.mac = addresses.mac;
    if (addresses.ipv4) {
        config.addresses.push_back(addresses.ipv4->address);
    }
    config.addresses.insert(config.addresses.end(), addresses.ipv6.begin(), addresses.ipv6.end());
    config.ports = {target.port, nvmeof::TargetConfig::kDiscoveryPort};
    return config;
}

}  // namespace

void NvmeofTargets::register_metrics(metrics::Registry& registry) const {
    runtime_.counters.register_metrics(registry);
    transport_counters_.register_metrics(registry);
    connection_counters_.register_metrics(registry);
}

NvmeofTargets::NvmeofTargets(EventLoop& loop, const log::Logger& log)
    : loop_(loop), log_(log), runtime_(loop, log) {
    runtime_.on_thread_start = drop_thread_capabilities;
}

NvmeofTargets::~NvmeofTargets() = default;

Result<std::unique_ptr<NvmeofTargets>> NvmeofTargets::open(EventLoop& loop, const ServiceOptions& options,
                                                           const log::Logger& log) {
    std::unique_ptr<NvmeofTargets> all(new NvmeofTargets(loop, log));
    if (options.storage()) {
        // What a sandbox would not let them have later.
        (void)all->runtime_.files();
        (void)all->runtime_.background();
    }
    std::vector<const nvmeof::TargetConfig*> configs;
    for (const TargetSpec& spec : options.targets) {
        if (spec.nvmeof) {
            configs.push_back(&*spec.nvmeof);
        }
    }
    all->targets_.resize(configs.size());
    for (std::size_t i = 0; i < configs.size(); ++i) {
        if (configs[i]->path_of.empty()) {
            auto target = nvmeof::Target::make(*configs[i], all->runtime_, all->directory_);
            if (!target) {
                return target.error();
            }
            all->targets_[i] = std::move(target.value());
        }
    }
    for (std::size_t i = 0; i < configs.size(); ++i) {
        if (!configs[i]->path_of.empty()) {
            all->targets_[i] = nvmeof::Target::make_path(*configs[i], all->owner_of(configs[i]->path_of),
                                                         all->runtime_, all->directory_);
        }
    }
    return all;
}

const nvmeof::Target& NvmeofTargets::owner_of(const std::string& nqn) const {
    const auto owner = std::find_if(targets_.begin(), targets_.end(), [&nqn](const auto& target) {
        return target != nullptr && !target->further_path() && target->nvm().nqn() == nqn;
    });
    assert(owner != targets_.end());
    return **owner;
}

NvmeofTargets::Place::Place(net::stack::Stack& stack, net::FramePort& port, net::Segment& segment,
                            NvmeofTargets& all, nvmeof::Target& target)
    : host(stack, port, target.config().host),
      transport(segment, all.loop_, transport_config(target.config(), host.addresses()), target,
                all.transport_counters_, all.connection_counters_, all.log_) {
}

void NvmeofTargets::plug(std::size_t number, net::stack::Stack& stack, net::FramePort& port,
                         net::Segment& segment) {
    places_.emplace_back(stack, port, segment, *this, *targets_.at(number));
}

bool NvmeofTargets::step() {
    bool more = false;
    for (Place& place : places_) {
        more = place.transport.step() || more;
    }
    // Behind them, because commands leave work here; what it does may give them something to do, too.
    return runtime_.step() || more;
}

}  // namespace ernic::app
