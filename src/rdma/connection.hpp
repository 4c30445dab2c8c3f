// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <variant>

#include "base/bytes.hpp"
#include "net/ip_address.hpp"
#include "net/route.hpp"
#include "rdma/types.hpp"
#include "wire/ib_cm.hpp"

/// What a service and the connection manager tell each other.
namespace ernic::rdma {

/// A peer's wish for a connection (REQ), as far as it has been checked.
struct ConnectionRequest {
    /// To the peer, with headers of our own.
    net::Route route;
    /// The TCP port its service id stands for.
    std::uint16_t port = 0;
    /// Where it says it comes from and goes to.
    net::IpAddress source;
    net::IpAddress destination;
    std::uint32_t peer_qpn = 0;
    /// What it wants to receive first.
    std::uint32_t starting_psn = 0;
    /// Bytes: 256 to 4096.
    std::uint32_t path_mtu = 0;
    /// Reads it can serve, and will have under way, at a time.
    std::uint8_t responder_resources = 0;
    std::uint8_t initiator_depth = 0;
    std::uint8_t retry_count = 0;
    std::uint8_t rnr_retry_count = 0;
    /// As in QpAttributes.
    std::uint8_t acknowledge_timeout = 0;
    /// Behind the header of RDMA CM. Valid only during the call.
    Bytes private_data;
};

/// A connection's number at the manager; never 0.
using ConnectionId = std::uint32_t;

/// What happens to an accepted connection. Told from within ConnectionManager::step(), its timer, or the
/// reset of the peer's card. Thread: device.
class ConnectionUser {
  public:
    virtual ~ConnectionUser() = default;
    /// The peer is ready (RTU). Not called when the manager has been told so (heard()).
    virtual void established() = 0;
    /// The peer has ended it, or it never came to be. The manager has forgotten the user.
    virtual void ended() = 0;
};

/// An accepted request (REP).
struct ConnectionAccepted {
    ConnectionUser* user = nullptr;
    std::uint32_t qpn = 0;
    /// What our queue pair expects to receive first.
    std::uint32_t starting_psn = 0;
    /// Reads that we will have under way, and can serve, at a time.
    std::uint8_t initiator_depth = 0;
    std::uint8_t responder_resources = 0;
    std::array<std::byte, wire::ib_cm::Reply::kPrivate> private_data{};
};

/// A refused one (REJ).
struct ConnectionRefused {
    wire::ib_cm::RejectReason reason = wire::ib_cm::RejectReason::NoResources;
    std::array<std::byte, wire::ib_cm::Reject::kPrivate> private_data{};
};

using ConnectionAnswer = std::variant<ConnectionAccepted, ConnectionRefused>;

/// Who decides about requests to a port. Thread: device.
class ConnectionListener {
  public:
    virtual ~ConnectionListener() = default;
    /// Decides at once. An accepted connection's queue pair is in RTS: the peer may use it as soon as it
    /// has the answer. `id` is the connection's when it is accepted.
    virtual ConnectionAnswer requested(const ConnectionRequest& request, ConnectionId id) = 0;
};

}  // namespace ernic::rdma
