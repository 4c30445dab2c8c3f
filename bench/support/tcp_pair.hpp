// SPDX-License-Identifier: MIT
#pragma once

#include <netinet/in.h>

#include "base/fd.hpp"

namespace ernic::bench {

/// Both ends of a TCP connection, blocking, without Nagle's algorithm.
struct TcpPair {
    UniqueFd client;
    UniqueFd server;
};

/// A socket that listens at `ip` (network order) on a port of the kernel's choice; `address` becomes its own.
UniqueFd listening(in_addr_t ip, sockaddr_in& address);
/// Connects to `listener`, which has this `address`, from the network namespace of the calling thread.
TcpPair connected(const UniqueFd& listener, const sockaddr_in& address);
TcpPair loopback_pair();

}  // namespace ernic::bench
