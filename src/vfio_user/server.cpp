// SPDX-License-Identifier: MIT
#include "vfio_user/server.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cassert>
#include <utility>

#include "vfio_user/limits.hpp"

namespace ernic::vfio_user {

Server::Server(EventLoop& loop, metrics::Registry& registry, log::Logger logger, SocketOptions options)
    : loop_(loop),
      logger_(std::move(logger)),
      options_(std::move(options)),
      dma_(loop, counters_, logger_),
      irqs_(counters_, logger_),
      listener_(loop, logger_, [this](UniqueFd socket) { accept_one(std::move(socket)); }),
      check_timer_(loop, [this] {
          if (session_) {
              session_->verify_shared_memory(check_page_);
              after_output(session_->flush());
          }
      }) {
    counters_.register_in(registry);
    registry.add({"vfio_user.connected", "clients", "1 while a VMM is connected."},
                 [this] { return session_ ? 1U : 0U; });
    registry.add({"vfio_user.dma_regions", "maps", "Pieces of guest memory mapped now."},
                 [this] { return dma_.size(); });
    registry.add({"vfio_user.mapped_files", "files", "Guest memory files mapped into this process now."},
                 [this] { return dma_.files().files(); });
}

Server::~Server() {
    function_ = nullptr;
    close();
}

void Server::attach(pci::Function& function) {
    assert(!listener_.listening());
    function_ = &function;
    irqs_.attach(function);
}

Status Server::listen() {
    assert(function_ != nullptr);
    auto bus_errors = BusErrors::watch();
    if (!bus_errors) {
        return bus_errors.error();
    }
    if (Status listening = listener_.listen(options_); !listening) {
        return listening;
    }
    bus_errors_.emplace(std::move(*bus_errors));
    loop_.add(bus_errors_->fd(), EPOLLIN, [this](std::uint32_t) { on_bus_error(); });
    return Done{};
}

void Server::close() {
    if (session_) {
        drop_client();
    }
    if (listener_.listening()) {
        listener_.close();
        loop_.remove(bus_errors_->fd());
        bus_errors_.reset();
    }
}

void Server::on_bus_error() {
    if (bus_errors_->take() && session_) {
        counters_.clients_shrunk_memory.add();
        logger_.warn_limited(limits_.memory_shrunk,
                             "connection dropped: a memory file became shorter while it was mapped");
        drop_client();
    }
}

void Server::accept_one(UniqueFd socket) {
    // A VMM that died and its successor may become visible in the same round of the loop, in either order.
    if (session_ && client_has_gone()) {
        drop_client();
    }
    if (session_) {
        counters_.clients_refused.add();
        logger_.warn_limited(refuse_limiter_, "another client was refused: one VM is connected already");
        return;
    }
    counters_.clients.add();
    logger_.debug("client connected");
    const int fd = socket.get();
    session_ = std::make_unique<Session>(
        std::move(socket), Session::Context{loop_, *function_, dma_, irqs_, counters_, limits_, logger_});
    watching_output_ = false;
    loop_.add(fd, EPOLLIN, [this](std::uint32_t events) { on_client(events); });
}

bool Server::client_has_gone() const {
    pollfd state{session_->fd(), POLLRDHUP, 0};
    return ::poll(&state, 1, 0) == 1 && (state.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

void Server::on_client(std::uint32_t events) {
    if ((events & EPOLLOUT) != 0) {
        after_output(session_->flush());
    }
    if ((events & ~EPOLLOUT) == 0) {
        return;
    }
    for (unsigned i = 0; session_ && i < kReadsPerWakeup; ++i) {
        if (receive() != Connection::Received::DataAndFds) {
            return;
        }
    }
}

bool Server::poll() {
    return session_ && receive() != Connection::Received::Nothing;
}

Connection::Received Server::receive() {
    const Connection::Received received = session_->receive();
    if (received != Connection::Received::Nothing) {
        after_output(received != Connection::Received::Closed);
    }
    return received;
}

/// Output was tried: a client that is gone is dropped, one whose socket is full is waited for.
void Server::after_output(bool alive) {
    if (!alive) {
        drop_client();
    } else if (session_->unsent() != watching_output_) {
        watching_output_ = session_->unsent();
        loop_.modify(session_->fd(), watching_output_ ? EPOLLIN | EPOLLOUT : EPOLLIN);
    }
}

/// The order matters: DMA stops before its memory goes, and the device is quiet before the next client comes.
void Server::drop_client() {
    if (function_ != nullptr) {
        function_->reset();
    }
    dma_.memory().set_enabled(false);
    check_timer_.cancel();
    loop_.remove(session_->fd());
    // Whoever only knocked (a probe, another server) is not worth a line.
    if (session_->negotiated()) {
        logger_.info_limited(limits_.disconnected, "client disconnected");
    }
    session_.reset();
    irqs_.clear();
    dma_.clear();
    if (bus_errors_) {
        // What this client did with its memory must not be held against the next one.
        (void)bus_errors_->take();
    }
}

void Server::verify_shared_memory(mem::Iova iova) {
    check_page_ = iova;
    check_timer_.arm(loop_.clock().now());
}

}  // namespace ernic::vfio_user
