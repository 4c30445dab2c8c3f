// SPDX-License-Identifier: MIT
#pragma once

#include <functional>

#include "base/event_loop.hpp"
#include "base/fd.hpp"
#include "base/log.hpp"
#include "mesh/counters.hpp"
#include "mesh/endpoint.hpp"

namespace ernic::mesh {

/// A TCP port that accepts whoever comes, a few in a round, with a pause when there are no descriptors.
/// Thread: device. Owns: the socket.
class Acceptor {
  public:
    /// `on_socket` gets each connection, non-blocking. References must outlive this.
    Acceptor(EventLoop& loop, Counters& counters, log::Logger log,
             std::function<void(UniqueFd socket, const Endpoint& from)> on_socket);
    ~Acceptor();
    Acceptor(const Acceptor&) = delete;
    Acceptor& operator=(const Acceptor&) = delete;

    /// Fails: Io with one sentence.
    [[nodiscard]] Status listen(const Endpoint& endpoint);
    /// With the port that was chosen. Precondition: listening.
    [[nodiscard]] const Endpoint& endpoint() const { return endpoint_; }

  private:
    void accept_some();

    EventLoop& loop_;
    Counters& counters_;
    log::Logger log_;
    log::Limiter limiter_;
    std::function<void(UniqueFd, const Endpoint&)> on_socket_;
    UniqueFd socket_;
    Endpoint endpoint_;
    Timer pause_;
};

}  // namespace ernic::mesh
