// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "guest_sim/guest.hpp"
#include "support/cpu.hpp"

namespace ernic::bench {

namespace sim = guest_sim;

/// A guest on the client's CPU and its server on the other one.
class BenchGuest {
  public:
    /// `arguments` are added to the server's command line.
    explicit BenchGuest(std::size_t ram, const std::vector<std::string>& arguments = {})
        : server_(options(arguments)), guest_(server_, ram) {}

    sim::Guest& operator*() { return guest_; }
    sim::Guest* operator->() { return &guest_; }
    sim::ServerProcess& server() { return server_; }

  private:
    static sim::ServerProcess::Options options(const std::vector<std::string>& arguments) {
        sim::ServerProcess::Options options;
        options.arguments.insert(options.arguments.end(), arguments.begin(), arguments.end());
        options.cpu = server_cpu();
        return options;
    }

    OnCpu home_{client_cpu()};
    sim::ServerProcess server_;
    sim::Guest guest_;
};

}  // namespace ernic::bench
