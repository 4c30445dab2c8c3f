// SPDX-License-Identifier: MIT
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/fd.hpp"
#include "base/result.hpp"
#include "net/ip_address.hpp"

namespace ernic::mesh {

/// An IP address and a TCP port. A value.
struct Endpoint {
    net::IpAddress address;
    std::uint16_t port = 0;

    [[nodiscard]] bool loopback() const;
    /// `10.0.0.1:7000`, `[fe80::1]:7000`.
    [[nodiscard]] std::string to_string() const;
    friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

/// As the socket calls want it.
struct SocketAddress {
    explicit SocketAddress(const Endpoint& endpoint);
    [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
    sockaddr_storage storage{};
    socklen_t size = 0;
};

/// What the other side, or this one, of a connected socket is called. Fails: nullopt.
std::optional<Endpoint> remote_endpoint(int fd);
std::optional<Endpoint> local_endpoint(int fd);

/// The addresses of a host. Asks the resolver, so it may take seconds: at start only.
/// Fails: InvalidArgument with one sentence.
Result<Endpoint> resolve(const std::string& host, std::uint16_t port);

/// The address of this host that packets to `to` leave from. Sends nothing. Fails: Io with one sentence.
Result<net::IpAddress> source_towards(const Endpoint& to);

/// A non-blocking listening socket. Fails: Io with one sentence.
Result<UniqueFd> listen_on(const Endpoint& endpoint);

/// A non-blocking socket on its way to `to`. Fails: an invalid one, with errno set.
UniqueFd begin_connect(const Endpoint& to);

/// What every connection of the mesh wants of TCP. `dead_after` in milliseconds.
void tune_connection(int fd, unsigned dead_after);

}  // namespace ernic::mesh
