// SPDX-License-Identifier: MIT
#include "base/listener.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace ernic {

Listener::Listener(EventLoop& loop, log::Logger logger, std::function<void(UniqueFd socket)> on_client)
    : loop_(loop),
      logger_(std::move(logger)),
      on_client_(std::move(on_client)),
      pause_(loop, [this] { loop_.modify(socket_.fd(), EPOLLIN); }) {
}

Status Listener::listen(const SocketOptions& options) {
    auto socket = SocketPath::listen(options);
    if (!socket) {
        return socket.error();
    }
    socket_ = std::move(*socket);
    loop_.add(socket_.fd(), EPOLLIN, [this](std::uint32_t) { accept_all(); });
    logger_.info("listening on {}", socket_.path());
    return Done{};
}

void Listener::close() {
    pause_.cancel();
    if (listening()) {
        loop_.remove(socket_.fd());
        socket_.close();
    }
}

void Listener::accept_all() {
    for (int i = 0; i < SocketPath::kBacklog; ++i) {
        UniqueFd socket(::accept4(socket_.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (socket.valid()) {
            on_client_(std::move(socket));
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
            // The client stays in the backlog and the listener readable: without a pause this would spin.
            logger_.warn_limited(limiter_, "cannot accept a client: {}", std::strerror(errno));
            loop_.modify(socket_.fd(), 0);
            pause_.arm(loop_.clock().now() + kPause);
        }
        return;
    }
}

}  // namespace ernic
