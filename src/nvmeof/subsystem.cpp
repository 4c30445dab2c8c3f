// SPDX-License-Identifier: MIT
#include "nvmeof/subsystem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>

#include "nvmeof/dhchap.hpp"

namespace ernic::nvmeof {
namespace {

/// The last id that the dynamic controller model may give out (Base Specification 3.1.1.1).
constexpr std::uint16_t kLastController = 0xffef;

std::string made_up_serial(const std::string& nqn) {
    std::string serial;
    for (const std::byte b : name_digest(nqn, 0xffffffffU)) {
        serial += fmt::format("{:02x}", static_cast<unsigned>(b));
    }
    return serial.substr(0, TargetConfig::kSerialBytes);
}

}  // namespace

Subsystem::Subsystem(Kind kind, const TargetConfig& config, std::string nqn, Runtime& runtime)
    : kind_(kind),
      config_(config),
      nqn_(std::move(nqn)),
      serial_(config.serial.empty() ? made_up_serial(config.nqn) : config.serial),
      runtime_(runtime),
      started_(runtime.loop.clock().now()),
      faults_(config.faults),
      pace_(runtime, config.latency, config.iops) {
    // parse_nvmeof() has seen to it.
    assert(config.queues <= TargetConfig::kMostQueues && config.in_capsule <= TargetConfig::kMostInline);
    assert(std::has_single_bit(config.max_transfer) && config.max_transfer >= TargetConfig::kLeastTransfer &&
           config.max_transfer <= TargetConfig::kMostTransfer);
}

Result<std::unique_ptr<Subsystem>> Subsystem::make(const TargetConfig& config, Runtime& runtime) {
    std::unique_ptr<Subsystem> subsystem(new Subsystem(Kind::Nvm, config, config.nqn, runtime));
    if (!config.auth_file.empty()) {
        auto secrets = DhChapSecrets::read(config.auth_file, config.nqn);
        if (!secrets) {
            return secrets.error();
        }
        subsystem->secrets_ = std::move(*secrets);
        const bool with_group = config.auth_group != wire::nvme::auth::kNullGroup;
        DhChap::warm_up(with_group);
        if (with_group) {
            (void)runtime.arithmetic();
        }
    }
    for (const NamespaceConfig& space : config.namespaces) {
        auto store = make_store(space, runtime);
        if (!store) {
            return store.error();
        }
        subsystem->put(std::make_shared<Namespace>(space, config.nqn, std::move(*store)));
    }
    return subsystem;
}

std::unique_ptr<Subsystem> Subsystem::make_discovery(const TargetConfig& config, Runtime& runtime) {
    return std::unique_ptr<Subsystem>(
        new Subsystem(Kind::Discovery, config, wire::nvme::kDiscoveryNqn, runtime));
}

std::uint16_t Subsystem::max_io_queues() const {
    return discovery() ? std::uint16_t{0} : config_.queues;
}

bool Subsystem::allows(const std::string& host_nqn) const {
    return discovery() || config_.hosts.empty() ||
           std::find(config_.hosts.begin(), config_.hosts.end(), host_nqn) != config_.hosts.end();
}

void Subsystem::put(std::shared_ptr<Namespace> space) {
    const std::uint32_t nsid = space->id();
    if (nsid >= namespaces_.size()) {
        namespaces_.resize(nsid + 1U);
    }
    namespaces_[nsid] = std::move(space);
    ++list_changes_;
    changed(nsid);
}

bool Subsystem::remove(std::uint32_t nsid) {
    if (find(nsid) == nullptr) {
        return false;
    }
    namespaces_[nsid].reset();
    ++list_changes_;
    changed(nsid);
    return true;
}

Status Subsystem::resize(std::uint32_t nsid, std::uint64_t bytes) {
    const std::shared_ptr<Namespace> space = find(nsid);
    if (space == nullptr) {
        return Error{Errc::InvalidArgument, fmt::format("there is no namespace {}", nsid)};
    }
    if (bytes == 0 || bytes % space->block_size() != 0) {
        return Error{Errc::InvalidArgument,
                     fmt::format("size {} is no multiple of the block size {}", bytes, space->block_size())};
    }
    if (Status resized = space->resize(bytes); !resized) {
        return resized;
    }
    changed(nsid);
    return Done{};
}

void Subsystem::changed(std::uint32_t nsid) {
    for (const auto& controller : controllers_) {
        controller->namespace_changed(nsid);
    }
}

void Subsystem::changed(const Path& path) {
    for (const auto& controller : controllers_) {
        if (&controller->path() == &path) {
            controller->events.raise(AsyncEvents::Kind::Ana);
        }
    }
}

std::shared_ptr<Controller> Subsystem::make_controller(const Path& path, HostIdentity host,
                                                       std::uint32_t keep_alive) {
    if (controllers_.size() >= kMaxControllers) {
        return nullptr;
    }
    do {
        last_controller_ = last_controller_ >= kLastController
                               ? std::uint16_t{1}
                               : static_cast<std::uint16_t>(last_controller_ + 1U);
    } while (controller(last_controller_) != nullptr);
    controllers_.push_back(
        std::make_shared<Controller>(runtime_, *this, path, last_controller_, std::move(host), keep_alive));
    return controllers_.back();
}

std::shared_ptr<Controller> Subsystem::controller(std::uint16_t id) const {
    const auto found = std::find_if(controllers_.begin(), controllers_.end(),
                                    [id](const auto& controller) { return controller->id() == id; });
    return found == controllers_.end() ? nullptr : *found;
}

void Subsystem::remove(const Controller& controller) {
    std::erase_if(controllers_, [&](const auto& each) { return each.get() == &controller; });
}

void Subsystem::forget(const Path& path) {
    std::erase_if(controllers_, [&](const auto& each) { return &each->path() == &path; });
}

}  // namespace ernic::nvmeof
