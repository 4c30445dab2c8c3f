// SPDX-License-Identifier: MIT
#pragma once

#include <string>

namespace ernic::guest_sim {

/// Network namespaces that are joined by a bridge in one more, so that nothing of the host's own network is
/// touched. Number 0, 1, ... has the address 10.99.0.1, 10.99.0.2, ... Needs root. Fails: GuestError.
class NetworkNamespaces {
  public:
    explicit NetworkNamespaces(unsigned count);
    ~NetworkNamespaces();
    NetworkNamespaces(const NetworkNamespaces&) = delete;
    NetworkNamespaces& operator=(const NetworkNamespaces&) = delete;

    /// Whether this process may make them.
    static bool possible();

    [[nodiscard]] std::string name(unsigned number) const;
    [[nodiscard]] static std::string address(unsigned number);
    /// The bridge forwards nothing from and to that one any more. Its own interface stays up: what is lost is
    /// lost somewhere in the network.
    void cut(unsigned number);
    void heal(unsigned number);

  private:
    void make();
    void remove() const;
    [[nodiscard]] std::string bridge() const;

    unsigned count_;
};

}  // namespace ernic::guest_sim
