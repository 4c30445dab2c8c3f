// SPDX-License-Identifier: MIT
#include "control/server.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "control/limits.hpp"

namespace ernic::control {

Server::Server(EventLoop& loop, metrics::Registry& registry, const log::Logger& log, const Commands& commands)
    : loop_(loop),
      log_(log.named("control")),
      commands_(commands),
      turn_(loop, [this] { take_turn(); }),
      listener_(loop, log_, [this](UniqueFd socket) { accept(std::move(socket)); }) {
    counters_.register_metrics(registry);
    registry.add({"control.connected", "clients", "Connections on the control socket now."},
                 [this] { return seats_.size(); });
}

Server::~Server() {
    while (!seats_.empty()) {
        drop(seats_.size() - 1);
    }
}

void Server::accept(UniqueFd socket) {
    if (seats_.size() >= kMaxClients && !make_room()) {
        refuse(socket);
        return;
    }
    counters_.clients.add();
    const int fd = socket.get();
    Seat& seat = seats_.emplace_back();
    seat.client = std::make_unique<Client>(std::move(socket), commands_, counters_,
                                           [this](Client& client) { wake(client); });
    // The seat moves when others leave, the client does not.
    Client* const client = seat.client.get();
    seat.patience = std::make_unique<Timer>(loop_, [this, client] { on_impatience(*client); });
    loop_.add(fd, EPOLLIN, [this, client](std::uint32_t events) { on_event(*client, events); });
    wake(*client);
}

/// Those who have left may still have requests here, but are nobody's competitors: a script that calls
/// ernicctl again and again is one client at a time.
bool Server::make_room() {
    std::size_t listening = 0;
    for (const Seat& seat : seats_) {
        pollfd state{seat.client->fd(), 0, 0};
        if (::poll(&state, 1, 0) == 1) {
            seat.client->hang_up();
        }
        listening += seat.client->hung_up() ? 0U : 1U;
    }
    return listening < kMaxClients && seats_.size() < kMaxSeats;
}

void Server::refuse(const UniqueFd& socket) {
    counters_.clients_refused.add();
    log_.warn_limited(refused_limiter_, "another client was refused: there are {} already", kMaxClients);
    static constexpr std::string_view kFull =
        R"({"id":null,"ok":false,"error":{"code":"busy","message":"too many clients on this socket"}})"
        "\n";
    (void)::send(socket.get(), kFull.data(), kFull.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

void Server::on_event(Client& client, std::uint32_t events) {
    if ((events & (EPOLLHUP | EPOLLERR)) != 0) {
        client.hang_up();
    }
    wake(client);
}

void Server::wake(Client& client) {
    seats_[index_of(client)].ready = true;
    if (!turn_.armed()) {
        turn_.arm(loop_.clock().now());
    }
}

void Server::on_impatience(Client& client) {
    counters_.clients_stuck.add();
    log_.warn_limited(stuck_limiter_, "a client was dropped: it has not read for {} s",
                      kPatience / 1'000'000'000U);
    client.give_up();
    wake(client);
}

std::optional<std::size_t> Server::next_ready() const {
    for (std::size_t i = 0; i < seats_.size(); ++i) {
        const std::size_t index = (next_ + i) % seats_.size();
        if (seats_[index].ready) {
            return index;
        }
    }
    return std::nullopt;
}

void Server::take_turn() {
    const Nanoseconds begin = loop_.clock().now();
    for (int left = kStepsPerTurn; left > 0; --left) {
        const auto index = next_ready();
        if (!index) {
            return;
        }
        next_ = step(*index) ? *index + 1 : *index;
        if (loop_.clock().now() - begin >= kTurn) {
            break;
        }
    }
    // Due at once, but not in this round of the loop, which looks for timers that are due again and again.
    turn_.arm(loop_.clock().now() + 1);
}

bool Server::step(std::size_t index) {
    Seat& seat = seats_[index];
    switch (seat.client->step()) {
        case Client::Progress::More:
            return true;
        case Client::Progress::Waiting:
            seat.ready = false;
            wait(seat);
            return true;
        case Client::Progress::Gone:
            break;
    }
    drop(index);
    return false;
}

void Server::wait(Seat& seat) {
    const std::uint32_t events = seat.client->events();
    if (events != seat.events) {
        seat.events = events;
        loop_.modify(seat.client->fd(), events);
    }
    if (!seat.client->unsent()) {
        seat.patience->cancel();
    } else if (!seat.patience->armed() || seat.sent != seat.client->sent()) {
        seat.patience->arm(loop_.clock().now() + kPatience);
    }
    seat.sent = seat.client->sent();
}

std::size_t Server::index_of(const Client& client) const {
    const auto found = std::find_if(seats_.begin(), seats_.end(),
                                    [&client](const Seat& seat) { return seat.client.get() == &client; });
    return static_cast<std::size_t>(found - seats_.begin());
}

void Server::drop(std::size_t index) {
    loop_.remove(seats_[index].client->fd());
    seats_.erase(seats_.begin() + static_cast<std::ptrdiff_t>(index));
}

}  // namespace ernic::control
