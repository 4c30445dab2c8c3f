// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <variant>

#include "base/bytes.hpp"
#include "rdma/connection.hpp"
#include "rdma/management_port.hpp"
#include "wire/ethernet.hpp"
#include "wire/ib_cm.hpp"

/// From management datagrams to what they say, and back. Thread: any.
namespace ernic::rdma::cm {

using Datagram = ManagementPort::Datagram;

/// What all answers need.
struct Ids {
    std::uint64_t transaction = 0;
    /// The sender's connection id, and the receiver's.
    std::uint32_t local = 0;
    std::uint32_t remote = 0;
};

/// The header of a communication management datagram. Fails: nullopt for another class, version or method.
[[nodiscard]] std::optional<wire::ib_cm::MadHeader> header_of(const Datagram& datagram);

/// The body of a datagram as one of the structures of wire/ib_cm.hpp.
template <typename Body>
[[nodiscard]] Body body_of(const Datagram& datagram) {
    static_assert(sizeof(Body) == wire::ib_cm::kBodySize);
    return *read_value<Body>(Bytes(datagram).subspan(sizeof(wire::ib_cm::MadHeader)));
}

/// The datagram that carries one of those structures.
template <typename Body>
[[nodiscard]] Datagram datagram_of(wire::ib_cm::Attribute attribute, std::uint64_t transaction,
                                   const Body& body) {
    static_assert(sizeof(Body) == wire::ib_cm::kBodySize);
    const wire::ib_cm::MadHeader header = wire::ib_cm::make_header(attribute, transaction);
    Datagram datagram;
    std::memcpy(datagram.data(), &header, sizeof header);
    std::memcpy(datagram.data() + sizeof header, &body, sizeof body);
    return datagram;
}

/// A REQ.
struct RequestMessage {
    /// `route` is not set.
    ConnectionRequest request;
    std::uint32_t peer_id = 0;
    std::uint64_t ca_guid = 0;
    /// How long the peer takes to answer, and how often to ask.
    std::uint8_t response_timeout = 0;
    std::uint8_t cm_retries = 0;
};
/// Reads a REQ. `body` must live as long as the result. Fails: why it must be refused.
[[nodiscard]] std::variant<RequestMessage, wire::ib_cm::RejectReason> read_request(
    const wire::ib_cm::Request& body);

/// The answers. `ids.local` is ours.
[[nodiscard]] Datagram make_reply(const Ids& ids, const ConnectionAccepted& accepted,
                                  std::uint8_t rnr_retry_count, std::uint64_t ca_guid);
[[nodiscard]] Datagram make_reject(const Ids& ids, wire::ib_cm::About about, const ConnectionRefused& refused,
                                   std::uint64_t ca_guid);
[[nodiscard]] Datagram make_disconnect_request(const Ids& ids, std::uint32_t peer_qpn);
[[nodiscard]] Datagram make_disconnect_reply(const Ids& ids);
/// To a SIDR_REQ, always: not supported.
[[nodiscard]] Datagram make_resolution_reply(const wire::ib_cm::MadHeader& header,
                                             const wire::ib_cm::ServiceResolutionRequest& request);

/// The GUID of a channel adapter with this MAC address (EUI-64).
[[nodiscard]] std::uint64_t guid_of(const wire::MacAddress& mac);

}  // namespace ernic::rdma::cm
