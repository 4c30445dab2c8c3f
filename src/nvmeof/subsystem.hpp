// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nvmeof/config.hpp"
#include "nvmeof/controller.hpp"
#include "nvmeof/dhchap_secret.hpp"
#include "nvmeof/fault_rules.hpp"
#include "nvmeof/namespace.hpp"
#include "nvmeof/pace.hpp"
#include "nvmeof/runtime.hpp"

namespace ernic::nvmeof {

/// VS: NVM Express 2.0.
inline constexpr std::uint32_t kVersion = 0x00020000;

/// Namespaces under one NQN, and the controllers through which hosts reach them; or a discovery subsystem.
/// Thread: device.
class Subsystem {
  public:
    enum class Kind : std::uint8_t { Nvm, Discovery };

    /// Opens the media. Fails: with one sentence about the namespace that cannot be had.
    static Result<std::unique_ptr<Subsystem>> make(const TargetConfig& config, Runtime& runtime);
    /// The discovery subsystem of the same target.
    static std::unique_ptr<Subsystem> make_discovery(const TargetConfig& config, Runtime& runtime);

    [[nodiscard]] Kind kind() const { return kind_; }
    [[nodiscard]] bool discovery() const { return kind_ == Kind::Discovery; }
    [[nodiscard]] const std::string& nqn() const { return nqn_; }
    [[nodiscard]] const std::string& serial() const { return serial_; }
    [[nodiscard]] const TargetConfig& config() const { return config_; }
    /// When it was made, by the loop's clock.
    [[nodiscard]] Nanoseconds started() const { return started_; }
    [[nodiscard]] std::uint16_t max_io_queues() const;
    /// Bytes of one command's data at most (MDTS).
    [[nodiscard]] std::uint32_t max_transfer() const { return config_.max_transfer; }
    /// Faults and slowness on purpose.
    [[nodiscard]] FaultRules& faults() { return faults_; }
    [[nodiscard]] Pace& pace() { return pace_; }
    [[nodiscard]] bool allows(const std::string& host_nqn) const;
    /// Hosts' secrets, when they must authenticate; else null.
    [[nodiscard]] const DhChapSecrets* secrets() const { return secrets_ ? &*secrets_ : nullptr; }

    /// Null when there is none with this id.
    [[nodiscard]] const std::shared_ptr<Namespace>& find(std::uint32_t nsid) const {
        return nsid < namespaces_.size() ? namespaces_[nsid] : none_;
    }
    /// The largest id that a namespace may have (NN).
    [[nodiscard]] static constexpr std::uint32_t max_namespace() { return NamespaceConfig::kMostId; }
    /// Indexed by id; some are null.
    [[nodiscard]] const std::vector<std::shared_ptr<Namespace>>& namespaces() const { return namespaces_; }
    /// Times that a namespace has come or gone.
    [[nodiscard]] std::uint64_t list_changes() const { return list_changes_; }
    /// Replaces a namespace of the same id, if there is one, and tells all hosts.
    void put(std::shared_ptr<Namespace> space);
    /// Fails: false when there is none.
    bool remove(std::uint32_t nsid);
    /// Changes a namespace's size and tells all hosts. Fails: one sentence.
    Status resize(std::uint32_t nsid, std::uint64_t bytes);
    /// Tells all hosts that something about the namespace has changed.
    void changed(std::uint32_t nsid);
    /// Tells those hosts that have come by `path` that its state has changed.
    void changed(const Path& path);

    /// Fails: null when there are too many.
    std::shared_ptr<Controller> make_controller(const Path& path, HostIdentity host,
                                                std::uint32_t keep_alive);
    [[nodiscard]] std::shared_ptr<Controller> controller(std::uint16_t id) const;
    [[nodiscard]] const std::vector<std::shared_ptr<Controller>>& controllers() const { return controllers_; }
    /// The controller's admin queue is gone.
    void remove(const Controller& controller);
    /// `path` ends, and all queues that have come by it: so do their controllers.
    void forget(const Path& path);

  private:
    Subsystem(Kind kind, const TargetConfig& config, std::string nqn, Runtime& runtime);

    Kind kind_;
    TargetConfig config_;
    std::string nqn_;
    std::string serial_;
    Runtime& runtime_;
    Nanoseconds started_;
    FaultRules faults_;
    Pace pace_;
    std::optional<DhChapSecrets> secrets_;
    std::vector<std::shared_ptr<Namespace>> namespaces_;
    std::shared_ptr<Namespace> none_;
    std::vector<std::shared_ptr<Controller>> controllers_;
    std::uint64_t list_changes_ = 0;
    std::uint16_t last_controller_ = 0;
};

}  // namespace ernic::nvmeof
