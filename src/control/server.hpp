// SPDX-License-Identifier: MIT
#pragma once

#include <sys/epoll.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/event_loop.hpp"
#include "base/fd.hpp"
#include "base/listener.hpp"
#include "base/log.hpp"
#include "base/result.hpp"
#include "control/client.hpp"
#include "control/commands.hpp"
#include "metrics/registry.hpp"

/// The control socket: how operators talk to a running server. docs/control.md has the protocol.
namespace ernic::control {

/// Accepts clients and lets them take turns. Whatever they send, they get at most kTurn of each round of the
/// loop, so the card stays responsive. Without a request nothing runs and nothing wakes up. Thread: device.
/// Owns: the socket and the connections.
class Server {
  public:
    /// `loop` and `commands` must outlive the server; `registry` must not be read after it.
    Server(EventLoop& loop, metrics::Registry& registry, const log::Logger& log, const Commands& commands);
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    /// Creates the socket. Fails: as Listener::listen().
    [[nodiscard]] Status listen(const SocketOptions& options) { return listener_.listen(options); }

    [[nodiscard]] std::size_t clients() const { return seats_.size(); }

  private:
    /// A client and what the loop has to do with it.
    struct Seat {
        std::unique_ptr<Client> client;
        /// Runs while the client's socket is full.
        std::unique_ptr<Timer> patience;
        std::uint64_t sent = 0;
        std::uint32_t events = EPOLLIN;
        bool ready = true;
    };

    void accept(UniqueFd socket);
    [[nodiscard]] bool make_room();
    void refuse(const UniqueFd& socket);
    void on_event(Client& client, std::uint32_t events);
    void wake(Client& client);
    void on_impatience(Client& client);
    /// Work of one round of the loop.
    void take_turn();
    [[nodiscard]] std::optional<std::size_t> next_ready() const;
    /// One step of one client; false when that client has gone.
    bool step(std::size_t index);
    /// Watches for what the client waits for.
    void wait(Seat& seat);
    [[nodiscard]] std::size_t index_of(const Client& client) const;
    void drop(std::size_t index);

    EventLoop& loop_;
    log::Logger log_;
    log::Limiter refused_limiter_;
    log::Limiter stuck_limiter_;
    const Commands& commands_;
    Counters counters_;
    std::vector<Seat> seats_;
    /// Who has the first step of the next turn.
    std::size_t next_ = 0;
    Timer turn_;
    Listener listener_;
};

}  // namespace ernic::control
