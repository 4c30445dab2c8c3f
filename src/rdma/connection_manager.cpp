// SPDX-License-Identifier: MIT
#include "rdma/connection_manager.hpp"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "net/mac_text.hpp"
#include "rdma/limits.hpp"

namespace ernic::rdma {
namespace {

using wire::ib_cm::About;
using wire::ib_cm::Attribute;
using wire::ib_cm::RejectReason;

/// Longer times than these (4.3 s, 69 s) are not waited, whatever a peer asks for.
constexpr std::uint8_t kMostPatience = 20;
constexpr std::uint8_t kMostServiceTime = 24;
/// Of answers that are on their way for as long as a packet may live.
constexpr Nanoseconds kLeastTimeWait = 500'000'000;

Nanoseconds limited_timeout(std::uint8_t code, std::uint8_t most) {
    return acknowledge_timeout(std::min(code, most));
}

}  // namespace

void ConnectionCounters::register_metrics(metrics::Registry& registry) const {
    const metrics::CounterGroup add(registry, "rdma_cm.");
    add("requests", "messages", "connection requests (REQ) to services, repeated ones included", requests);
    add("accepted", "connections", "requests accepted", accepted);
    add("established", "connections", "accepted connections that the peer has begun to use", established);
    add("refused", "messages", "requests rejected, for whatever reason", refused);
    add("repeated", "messages", "requests seen twice; high: answers get lost", repeated);
    add("stale", "connections", "connections ended because their peer has begun anew on the same QP", stale);
    add("ended_by_reset", "connections", "connections ended because their peer's card was reset",
        ended_by_reset);
    add("ended_by_peer", "connections", "connections ended by the peer (DREQ or REJ)", ended_by_peer);
    add("timeouts", "messages", "answers or requests to disconnect that were never answered", timeouts);
    add("ignored", "messages", "management datagrams that mean nothing here", ignored);
    add("unsent", "messages", "answers lost because too many waited to be sent", unsent);
}

ConnectionManager::ConnectionManager(Endpoint& endpoint, ConnectionCounters& counters, log::Logger log)
    : endpoint_(endpoint),
      counters_(counters),
      log_(std::move(log)),
      guid_(cm::guid_of(endpoint.engine().mac())),
      port_(endpoint),
      timer_(endpoint.engine().loop(), [this] { on_timer(); }),
      // Not those of an earlier run, of which a peer may still know.
      last_id_(static_cast<ConnectionId>(endpoint.engine().loop().clock().now() >> 10U)),
      next_transaction_(endpoint.engine().loop().clock().now()) {
    endpoint_.engine().segment().listen(*this);
}

ConnectionManager::~ConnectionManager() {
    endpoint_.engine().segment().unlisten(*this);
}

void ConnectionManager::on_reset(net::Port& port) {
    for (auto entry = connections_.begin(); entry != connections_.end();) {
        if (endpoint_.engine().segment().owner(entry->second->route.destination) != &port) {
            ++entry;
            continue;
        }
        if (entry->second->user != nullptr) {
            counters_.ended_by_reset.add();
        }
        tell_ended(*entry->second);
        entry = connections_.erase(entry);
    }
}

void ConnectionManager::step() {
    if (!port_.has_arrivals()) {
        return;
    }
    port_.receive([this](const net::Route& back, const cm::Datagram& datagram) { handle(back, datagram); });
    arm_timer();
}

void ConnectionManager::handle(const net::Route& back, const cm::Datagram& datagram) {
    const auto header = cm::header_of(datagram);
    if (!header) {
        counters_.ignored.add();
        return;
    }
    const std::uint64_t transaction = header->transaction_id.get();
    switch (static_cast<Attribute>(header->attribute_id.get())) {
        case Attribute::Request:
            on_request(back, datagram, transaction);
            return;
        case Attribute::ReadyToUse: {
            const auto body = cm::body_of<wire::ib_cm::ReadyToUse>(datagram);
            Connection* const connection = find(back, body.remote_id.get(), body.local_id.get());
            if (connection != nullptr && connection->state == State::ReplySent) {
                heard(body.remote_id.get());
                connection->user->established();
                return;
            }
            break;
        }
        case Attribute::Reject: {
            const auto body = cm::body_of<wire::ib_cm::Reject>(datagram);
            Connection* const connection = find(back, body.remote_id.get(), body.local_id.get());
            if (connection != nullptr && connection->state == State::ReplySent) {
                counters_.ended_by_peer.add();
                enter_time_wait(*connection);
                tell_ended(*connection);
                return;
            }
            break;
        }
        case Attribute::DisconnectRequest:
            on_disconnect_request(back, datagram, transaction);
            return;
        case Attribute::DisconnectReply: {
            const auto body = cm::body_of<wire::ib_cm::DisconnectReply>(datagram);
            Connection* const connection = find(back, body.remote_id.get(), body.local_id.get());
            if (connection != nullptr && connection->state == State::DisconnectSent) {
                enter_time_wait(*connection);
                return;
            }
            break;
        }
        case Attribute::MessageReceiptAcknowledgement:
            on_receipt(back, datagram);
            return;
        case Attribute::ServiceResolutionRequest:
            send(back, cm::make_resolution_reply(
                           *header, cm::body_of<wire::ib_cm::ServiceResolutionRequest>(datagram)));
            return;
        case Attribute::Reply:
        case Attribute::ServiceResolutionReply:
        case Attribute::LoadAlternatePath:
        case Attribute::AlternatePathResponse:
            break;
    }
    counters_.ignored.add();
}

void ConnectionManager::on_request(const net::Route& back, const cm::Datagram& datagram,
                                   std::uint64_t transaction) {
    counters_.requests.add();
    const auto body = cm::body_of<wire::ib_cm::Request>(datagram);
    const auto read = cm::read_request(body);
    if (const auto* reason = std::get_if<RejectReason>(&read)) {
        reject(back, transaction, body.local_id.get(), {.reason = *reason});
        return;
    }
    cm::RequestMessage message = std::get<cm::RequestMessage>(read);
    message.request.route = back;

    Connection* stale = nullptr;
    for (const auto& [id, connection] : connections_) {
        if (connection->ca_guid != message.ca_guid || !(connection->route.destination == back.destination)) {
            continue;
        }
        if (connection->peer_id == message.peer_id) {
            counters_.repeated.add();
            if (connection->state == State::ReplySent) {
                send(connection->route, connection->message);
            } else if (connection->state != State::Established) {
                reject(back, transaction, message.peer_id, {.reason = RejectReason::StaleConnection});
            }
            return;
        }
        if (connection->peer_qpn == message.request.peer_qpn && connection->user != nullptr) {
            stale = connection.get();
        }
    }
    if (stale != nullptr) {
        // The peer has lost its memory of the old connection (InfiniBand 12.9.8.3.1): neither goes on.
        counters_.stale.add();
        reject(back, transaction, message.peer_id, {.reason = RejectReason::StaleConnection});
        enter_time_wait(*stale);
        tell_ended(*stale);
        return;
    }

    const auto listener = listeners_.find(message.request.port);
    if (listener == listeners_.end()) {
        reject(back, transaction, message.peer_id, {.reason = RejectReason::InvalidServiceId});
        return;
    }
    if (!make_room()) {
        reject(back, transaction, message.peer_id, {.reason = RejectReason::NoResources});
        return;
    }
    const ConnectionId id = free_id();
    const ConnectionAnswer answer = listener->second->requested(message.request, id);
    if (const auto* refused = std::get_if<ConnectionRefused>(&answer)) {
        reject(back, transaction, message.peer_id, *refused);
        return;
    }
    accept(back, message, id, std::get<ConnectionAccepted>(answer), transaction);
}

void ConnectionManager::accept(const net::Route& back, const cm::RequestMessage& message, ConnectionId id,
                               const ConnectionAccepted& accepted, std::uint64_t transaction) {
    counters_.accepted.add();
    auto connection = std::make_unique<Connection>();
    connection->user = accepted.user;
    connection->route = back;
    connection->peer_id = message.peer_id;
    connection->ca_guid = message.ca_guid;
    connection->peer_qpn = message.request.peer_qpn;
    connection->qpn = accepted.qpn;
    connection->transaction = transaction;
    const Nanoseconds packet_life = limited_timeout(message.request.acknowledge_timeout, kMostPatience);
    connection->patience = limited_timeout(message.response_timeout, kMostPatience) + packet_life;
    connection->time_wait = std::max(2 * packet_life, kLeastTimeWait);
    connection->retry_limit = message.cm_retries;
    connection->message = cm::make_reply({.transaction = transaction, .local = id, .remote = message.peer_id},
                                         accepted, message.request.rnr_retry_count, guid_);
    send_and_wait(*connection);
    connections_.emplace(id, std::move(connection));
}

void ConnectionManager::on_disconnect_request(const net::Route& back, const cm::Datagram& datagram,
                                              std::uint64_t transaction) {
    const auto body = cm::body_of<wire::ib_cm::DisconnectRequest>(datagram);
    const cm::Ids ids{
        .transaction = transaction, .local = body.remote_id.get(), .remote = body.local_id.get()};
    Connection* const connection = find(back, ids.local, ids.remote);
    if (connection != nullptr && body.remote_qpn.get() >> 8U != connection->qpn) {
        counters_.ignored.add();
        return;
    }
    // Of a connection nobody knows it is true that it has ended.
    send(back, cm::make_disconnect_reply(ids));
    if (connection != nullptr && connection->state != State::TimeWait) {
        counters_.ended_by_peer.add();
        enter_time_wait(*connection);
        tell_ended(*connection);
    }
}

void ConnectionManager::on_receipt(const net::Route& back, const cm::Datagram& datagram) {
    const auto body = cm::body_of<wire::ib_cm::Receipt>(datagram);
    Connection* const connection = find(back, body.remote_id.get(), body.local_id.get());
    if (connection == nullptr || connection->state != State::ReplySent ||
        body.about >> 6U != static_cast<unsigned>(About::Reply)) {
        counters_.ignored.add();
        return;
    }
    const auto service_timeout = static_cast<std::uint8_t>(body.service_timeout >> 3U);
    connection->deadline = endpoint_.engine().loop().clock().now() + connection->patience +
                           limited_timeout(service_timeout, kMostServiceTime);
}

void ConnectionManager::heard(ConnectionId id) {
    const auto found = connections_.find(id);
    if (found != connections_.end() && found->second->state == State::ReplySent) {
        counters_.established.add();
        found->second->state = State::Established;
        found->second->deadline.reset();
    }
}

void ConnectionManager::disconnect(ConnectionId id) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) {
        return;
    }
    Connection& connection = *found->second;
    connection.user = nullptr;
    if (connection.state != State::ReplySent && connection.state != State::Established) {
        return;
    }
    connection.state = State::DisconnectSent;
    connection.retries = 0;
    connection.message = cm::make_disconnect_request(
        {.transaction = next_transaction_++, .local = id, .remote = connection.peer_id}, connection.peer_qpn);
    send_and_wait(connection);
    arm_timer();
}

void ConnectionManager::on_timer() {
    const Nanoseconds now = endpoint_.engine().loop().clock().now();
    std::vector<ConnectionId> due;
    for (const auto& [id, connection] : connections_) {
        if (connection->deadline && *connection->deadline <= now) {
            due.push_back(id);
        }
    }
    for (const ConnectionId id : due) {
        if (const auto found = connections_.find(id); found != connections_.end()) {
            run_out(id, *found->second);
        }
    }
    arm_timer();
}

void ConnectionManager::run_out(ConnectionId id, Connection& connection) {
    if (connection.state == State::TimeWait) {
        connections_.erase(id);
        return;
    }
    if (connection.retries < connection.retry_limit) {
        ++connection.retries;
        send_and_wait(connection);
        return;
    }
    counters_.timeouts.add();
    if (connection.state == State::ReplySent) {
        send(connection.route,
             cm::make_reject(
                 {.transaction = connection.transaction, .local = id, .remote = connection.peer_id},
                 About::Reply, {.reason = RejectReason::Timeout}, guid_));
    }
    enter_time_wait(connection);
    tell_ended(connection);
}

void ConnectionManager::send_and_wait(Connection& connection) {
    send(connection.route, connection.message);
    connection.deadline = endpoint_.engine().loop().clock().now() + connection.patience;
}

void ConnectionManager::enter_time_wait(Connection& connection) {
    connection.state = State::TimeWait;
    connection.deadline = endpoint_.engine().loop().clock().now() + connection.time_wait;
}

void ConnectionManager::tell_ended(Connection& connection) {
    if (ConnectionUser* const user = std::exchange(connection.user, nullptr)) {
        user->ended();
    }
}

void ConnectionManager::arm_timer() {
    std::optional<Nanoseconds> first;
    for (const auto& [id, connection] : connections_) {
        if (connection->deadline && (!first || *connection->deadline < *first)) {
            first = connection->deadline;
        }
    }
    if (first) {
        timer_.arm(*first);
    } else {
        timer_.cancel();
    }
}

void ConnectionManager::send(const net::Route& route, const cm::Datagram& datagram) {
    if (!port_.send(route, datagram)) {
        counters_.unsent.add();
    }
}

void ConnectionManager::reject(const net::Route& back, std::uint64_t transaction, std::uint32_t peer_id,
                               const ConnectionRefused& refused) {
    counters_.refused.add();
    log_.info_limited(log_limit_, "request of {} rejected, reason {}", net::to_string(back.destination),
                      static_cast<unsigned>(refused.reason));
    send(back, cm::make_reject({.transaction = transaction, .local = 0, .remote = peer_id}, About::Request,
                               refused, guid_));
}

ConnectionManager::Connection* ConnectionManager::find(const net::Route& back, std::uint32_t id,
                                                       std::uint32_t peer_id) {
    const auto found = connections_.find(id);
    if (found == connections_.end() || found->second->peer_id != peer_id ||
        !(found->second->route.destination == back.destination)) {
        return nullptr;
    }
    return found->second.get();
}

bool ConnectionManager::make_room() {
    // As many that have ended are remembered as may live.
    if (connections_.size() < std::size_t{2} * endpoint_.limits().queue_pairs) {
        return true;
    }
    auto oldest = connections_.end();
    for (auto entry = connections_.begin(); entry != connections_.end(); ++entry) {
        if (entry->second->user == nullptr &&
            (oldest == connections_.end() || entry->second->deadline < oldest->second->deadline)) {
            oldest = entry;
        }
    }
    if (oldest == connections_.end()) {
        return false;
    }
    connections_.erase(oldest);
    return true;
}

ConnectionId ConnectionManager::free_id() {
    do {
        ++last_id_;
    } while (last_id_ == 0 || connections_.contains(last_id_));
    return last_id_;
}

}  // namespace ernic::rdma
