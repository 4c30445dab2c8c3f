// SPDX-License-Identifier: MIT
#include "nvmeof/target.hpp"

#include <algorithm>
#include <utility>

namespace ernic::nvmeof {

Result<std::unique_ptr<Target>> Target::make(const TargetConfig& config, Runtime& runtime,
                                             Directory& directory) {
    auto nvm = Subsystem::make(config, runtime);
    if (!nvm) {
        return nvm.error();
    }
    return std::unique_ptr<Target>(new Target(config, runtime, directory, std::move(*nvm)));
}

std::unique_ptr<Target> Target::make_path(const TargetConfig& config, const Target& other, Runtime& runtime,
                                          Directory& directory) {
    TargetConfig merged = other.config_;
    merged.host = config.host;
    merged.port = config.port;
    merged.ana_state = config.ana_state;
    merged.path_of = other.config_.nqn;
    return std::unique_ptr<Target>(new Target(merged, runtime, directory, other.nvm_));
}

Target::Target(const TargetConfig& config, Runtime& runtime, Directory& directory,
               std::shared_ptr<Subsystem> nvm)
    : config_(config),
      path_(config.ana_state),
      runtime_(runtime),
      directory_(directory),
      nvm_(std::move(nvm)),
      discovery_(Subsystem::make_discovery(config, runtime)) {
    directory_.add(*this);
}

Target::~Target() {
    directory_.remove(*this);
    // The subsystem may live on by another path; its controllers must not refer to this one.
    nvm_->forget(path_);
    queues_.clear();
}

Acceptor::Grant Target::grant(const QueueRequest& request) const {
    const std::uint16_t most = request.queue_id == 0 ? kAdminEntries : kMaxEntries;
    return {std::min(request.host_send_entries, most), request.queue_id == 0 ? 0U : config_.in_capsule};
}

std::uint64_t Target::capsule_memory(const Grant& grant) {
    return std::uint64_t{grant.entries} * (kSubmissionBytes + grant.in_capsule_bytes);
}

std::optional<Acceptor::Grant> Target::consider(const QueueRequest& request) {
    const Grant granted = grant(request);
    if (granted.entries < 2 || request.queue_id > nvm_->max_io_queues() ||
        queues_.size() >= kMaxConnections || capsule_memory_ + capsule_memory(granted) > kMaxCapsuleMemory) {
        runtime_.counters.refused_connections.add();
        return std::nullopt;
    }
    return granted;
}

QueueHandler& Target::accepted(const QueueRequest& request, QueueChannel& channel) {
    const Grant granted = grant(request);
    runtime_.counters.connections.add();
    const std::uint64_t memory = capsule_memory(granted);
    capsule_memory_ += memory;
    queues_.push_back({std::make_unique<Queue>(*this, runtime_, request, granted.entries, channel), memory});
    return *queues_.back().queue;
}

std::vector<net::IpAddress> Target::addresses() const {
    std::vector<net::IpAddress> addresses;
    if (config_.host.ipv4) {
        addresses.push_back(config_.host.ipv4->address);
    }
    for (const net::IpPrefix& prefix : config_.host.ipv6) {
        addresses.push_back(prefix.address);
    }
    return addresses;
}

Subsystem* Target::subsystem(const std::string& nqn) const {
    for (Subsystem* const subsystem : {nvm_.get(), discovery_.get()}) {
        if (subsystem->nqn() == nqn) {
            return subsystem;
        }
    }
    return nullptr;
}

void Target::set_ana_state(wire::nvme::AnaState state) {
    if (state != path_.state()) {
        path_.set(state);
        nvm_->changed(path_);
    }
}

void Target::ended() {
    if (!queued()) {
        runtime_.work.add(*this);
    }
}

void Target::run() {
    const auto finished = [this](const Connection& connection) {
        if (!connection.queue->finished()) {
            return false;
        }
        capsule_memory_ -= connection.memory;
        return true;
    };
    queues_.erase(std::remove_if(queues_.begin(), queues_.end(), finished), queues_.end());
}

}  // namespace ernic::nvmeof
