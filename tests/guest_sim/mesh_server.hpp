// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "guest_sim/server_process.hpp"

namespace ernic::guest_sim {

/// What a process costs its host.
struct Footprint {
    std::uint64_t rss_kib = 0;
    /// Memory of its own: guests' memory, which is shared, does not count.
    std::uint64_t anon_kib = 0;
    std::uint64_t fds = 0;
};

/// A server process that is a node of a mesh, with a control socket. Fails: GuestError.
class MeshServer {
  public:
    struct Options {
        /// Its card's MAC address and its name are made from it.
        std::uint32_t number = 0;
        std::string backend;
        std::string network_namespace = {};
        /// As ServerProcess::Options has it.
        bool wait = true;
    };

    explicit MeshServer(const Options& options);

    /// The server's answer to a command, one line of JSON. `arguments` is an object.
    [[nodiscard]] std::string ask(std::string_view command, std::string_view arguments = "{}") const;
    /// A number of the mesh, as docs/usage.md lists them, without the "mesh." in front.
    [[nodiscard]] std::uint64_t statistic(std::string_view name) const;
    [[nodiscard]] std::uint64_t connected() const { return statistic("peers_connected"); }
    /// The numbers that the manager has given to the peers it is connected to.
    [[nodiscard]] std::vector<std::uint32_t> peer_numbers() const;
    [[nodiscard]] Footprint footprint() const;

    [[nodiscard]] ServerProcess& process() { return process_; }

  private:
    ServerProcess process_;
};

/// A TCP port of loopback for a manager. It is none that a kernel gives to somebody who connects: a node that
/// dials while the manager is away could be given it, and would keep the manager from coming back.
std::uint16_t manager_port();

}  // namespace ernic::guest_sim
