// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "metrics/registry.hpp"
#include "net/ip_address.hpp"
#include "nvmeof/config.hpp"
#include "nvmeof/directory.hpp"
#include "nvmeof/path.hpp"
#include "nvmeof/queue.hpp"
#include "nvmeof/runtime.hpp"
#include "nvmeof/subsystem.hpp"
#include "nvmeof/transport.hpp"

namespace ernic::nvmeof {

/// One NVM subsystem and a discovery subsystem behind one address: takes the queues that the transport has
/// connected. Several can be paths to one NVM subsystem, which they share. Thread: device.
class Target final : public Acceptor, public Work {
  public:
    /// `runtime` and `directory`, which the discovery log is made from, must outlive the target. Fails: one
    /// sentence about the namespace that cannot be had.
    static Result<std::unique_ptr<Target>> make(const TargetConfig& config, Runtime& runtime,
                                                Directory& directory);
    /// A further path to the subsystem of `other`. Of `config` its address, port and ANA state count.
    /// `runtime` and `directory` as above.
    static std::unique_ptr<Target> make_path(const TargetConfig& config, const Target& other,
                                             Runtime& runtime, Directory& directory);
    ~Target() override;

    std::optional<Grant> consider(const QueueRequest& request) override;
    QueueHandler& accepted(const QueueRequest& request, QueueChannel& channel) override;

    [[nodiscard]] const TargetConfig& config() const { return config_; }
    [[nodiscard]] Subsystem& nvm() const { return *nvm_; }
    [[nodiscard]] const Path& path() const { return path_; }
    /// It shares its subsystem with the target that was there first.
    [[nodiscard]] bool further_path() const { return !config_.path_of.empty(); }
    /// Changes the ANA state and tells all hosts that have come this way.
    void set_ana_state(wire::nvme::AnaState state);
    [[nodiscard]] Subsystem& discovery() const { return *discovery_; }
    [[nodiscard]] const Directory& directory() const { return directory_; }
    /// By which hosts reach it, at least one; the first one names it.
    [[nodiscard]] std::vector<net::IpAddress> addresses() const;
    /// Null when there is none of this name here.
    [[nodiscard]] Subsystem* subsystem(const std::string& nqn) const;
    /// Connections that have not ended.
    [[nodiscard]] std::size_t connections() const { return queues_.size(); }

    /// For Queue: one may have finished.
    void ended();
    /// Gives back queues that have finished.
    void run() override;

  private:
    Target(const TargetConfig& config, Runtime& runtime, Directory& directory,
           std::shared_ptr<Subsystem> nvm);
    [[nodiscard]] Grant grant(const QueueRequest& request) const;
    [[nodiscard]] static std::uint64_t capsule_memory(const Grant& grant);

    TargetConfig config_;
    Path path_;
    Runtime& runtime_;
    Directory& directory_;
    std::shared_ptr<Subsystem> nvm_;
    std::unique_ptr<Subsystem> discovery_;
    struct Connection {
        std::unique_ptr<Queue> queue;
        std::uint64_t memory = 0;
    };
    std::vector<Connection> queues_;
    std::uint64_t capsule_memory_ = 0;
};

}  // namespace ernic::nvmeof
