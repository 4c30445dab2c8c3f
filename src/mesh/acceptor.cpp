// SPDX-License-Identifier: MIT
#include "mesh/acceptor.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "mesh/limits.hpp"

namespace ernic::mesh {

Acceptor::Acceptor(EventLoop& loop, Counters& counters, log::Logger log,
                   std::function<void(UniqueFd, const Endpoint&)> on_socket)
    : loop_(loop),
      counters_(counters),
      log_(std::move(log)),
      on_socket_(std::move(on_socket)),
      pause_(loop, [this] { loop_.modify(socket_.get(), EPOLLIN); }) {
}

Acceptor::~Acceptor() {
    if (socket_) {
        loop_.remove(socket_.get());
    }
}

Status Acceptor::listen(const Endpoint& endpoint) {
    auto socket = listen_on(endpoint);
    if (!socket) {
        return socket.error();
    }
    socket_ = std::move(socket.value());
    endpoint_ = local_endpoint(socket_.get()).value_or(endpoint);
    loop_.add(socket_.get(), EPOLLIN, [this](std::uint32_t) { accept_some(); });
    return Done{};
}

void Acceptor::accept_some() {
    for (int i = 0; i < kAcceptsPerRound; ++i) {
        UniqueFd socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (socket) {
            if (const auto from = remote_endpoint(socket.get())) {
                on_socket_(std::move(socket), *from);
            }
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
            // The connection stays in the backlog and the socket readable: without a pause this would spin.
            counters_.accept_pauses.add();
            log_.warn_limited(limiter_, "cannot accept a connection: {}", std::strerror(errno));
            loop_.modify(socket_.get(), 0);
            pause_.arm(loop_.clock().now() + kAcceptPause);
        }
        return;
    }
}

}  // namespace ernic::mesh
