// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>

#include "base/event_loop.hpp"
#include "base/log.hpp"
#include "metrics/registry.hpp"
#include "rdma/cm_messages.hpp"
#include "rdma/connection.hpp"
#include "rdma/endpoint.hpp"
#include "rdma/management_port.hpp"

namespace ernic::rdma {

/// Numbers of all connection managers, which are there (and zero) without one too.
struct ConnectionCounters {
    metrics::Counter requests;
    metrics::Counter accepted;
    metrics::Counter established;
    metrics::Counter refused;
    metrics::Counter repeated;
    metrics::Counter stale;
    metrics::Counter ended_by_reset;
    metrics::Counter ended_by_peer;
    metrics::Counter timeouts;
    metrics::Counter ignored;
    metrics::Counter unsent;

    void register_metrics(metrics::Registry& registry) const;
};

/// The passive side of connection management (InfiniBand volume 1, chapter 12) for the services of one
/// endpoint: answers requests to their ports, and sees connections through to their end.
///
///     REQ -> listener -> ReplySent -- RTU or first message --> Established -- DREQ --> TimeWait -> forgotten
///                            |                                     |                       ^
///                            | REJ, or no RTU                      | disconnect()          | DREP, or none
///                            +----------> TimeWait                 +--> DisconnectSent ----+
///
/// Requests are decided at once, so no MRA is ever sent. The table is bounded; its timer runs only while an
/// answer is waited for or something must be remembered. When the peer's card on this segment is reset, all
/// is forgotten without a word. Thread: device.
class ConnectionManager final : private net::Port {
  public:
    /// All references must outlive this. `endpoint` is for this manager alone.
    ConnectionManager(Endpoint& endpoint, ConnectionCounters& counters, log::Logger log);
    ~ConnectionManager() override;
    ConnectionManager(const ConnectionManager&) = delete;
    ConnectionManager& operator=(const ConnectionManager&) = delete;

    /// From now on `listener` decides about requests to `port`; it must outlive its time here.
    void listen(std::uint16_t port, ConnectionListener& listener) { listeners_[port] = &listener; }

    /// The first message of the peer has arrived on the connection's queue pair, which says as much as an
    /// RTU.
    void heard(ConnectionId id);
    /// Ends the connection: tells the peer (DREQ), and forgets the user, who is told nothing more.
    void disconnect(ConnectionId id);

    /// Handles the datagrams that have come in.
    void step();
    [[nodiscard]] bool has_work() const { return port_.has_arrivals(); }

    /// Connections that are remembered, ended ones included.
    [[nodiscard]] std::size_t connections() const { return connections_.size(); }
    [[nodiscard]] bool timer_armed() const { return timer_.armed(); }

  private:
    enum class State : std::uint8_t { ReplySent, Established, DisconnectSent, TimeWait };
    struct Connection {
        State state = State::ReplySent;
        ConnectionUser* user = nullptr;
        net::Route route;
        std::uint32_t peer_id = 0;
        std::uint64_t ca_guid = 0;
        std::uint32_t peer_qpn = 0;
        std::uint32_t qpn = 0;
        std::uint64_t transaction = 0;
        /// When the message is sent again, or (TimeWait) all is forgotten.
        std::optional<Nanoseconds> deadline;
        Nanoseconds patience = 0;
        Nanoseconds time_wait = 0;
        std::uint8_t retries = 0;
        std::uint8_t retry_limit = 0;
        /// The REP or DREQ that is waiting for its answer.
        cm::Datagram message{};
    };

    /// It hears of resets only; messages go to the endpoint.
    void deliver(const net::Message& message) override { (void)message; }
    void on_reset(net::Port& port) override;

    void handle(const net::Route& back, const cm::Datagram& datagram);
    void on_request(const net::Route& back, const cm::Datagram& datagram, std::uint64_t transaction);
    void accept(const net::Route& back, const cm::RequestMessage& message, ConnectionId id,
                const ConnectionAccepted& accepted, std::uint64_t transaction);
    void on_disconnect_request(const net::Route& back, const cm::Datagram& datagram,
                               std::uint64_t transaction);
    void on_receipt(const net::Route& back, const cm::Datagram& datagram);
    void on_timer();
    /// Repeats the message of a connection whose time is up, or gives up.
    void run_out(ConnectionId id, Connection& connection);
    /// Sends REP or DREQ and waits for the answer.
    void send_and_wait(Connection& connection);
    void enter_time_wait(Connection& connection);
    /// The user is told, and forgotten.
    static void tell_ended(Connection& connection);
    void arm_timer();
    void send(const net::Route& route, const cm::Datagram& datagram);
    void reject(const net::Route& back, std::uint64_t transaction, std::uint32_t peer_id,
                const ConnectionRefused& refused);

    /// The connection with these ids, when the message comes from its peer. Fails: nullptr.
    Connection* find(const net::Route& back, std::uint32_t id, std::uint32_t peer_id);
    /// Makes room for one more. Fails: false when all connections are alive.
    bool make_room();
    ConnectionId free_id();

    Endpoint& endpoint_;
    ConnectionCounters& counters_;
    log::Logger log_;
    log::Limiter log_limit_;
    std::uint64_t guid_;
    ManagementPort port_;
    Timer timer_;
    std::unordered_map<std::uint16_t, ConnectionListener*> listeners_;
    std::unordered_map<ConnectionId, std::unique_ptr<Connection>> connections_;
    ConnectionId last_id_;
    std::uint64_t next_transaction_;
};

}  // namespace ernic::rdma
