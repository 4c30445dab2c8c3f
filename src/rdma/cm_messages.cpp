// SPDX-License-Identifier: MIT
#include "rdma/cm_messages.hpp"

#include <algorithm>
#include <cstring>

namespace ernic::rdma::cm {
namespace {

using namespace wire::ib_cm;

constexpr unsigned kNumberShift = 8;
constexpr std::uint8_t kRdmaCmVersion = 0;
constexpr std::uint8_t kReliableConnection = 0;
constexpr std::uint8_t kLargestMtuCode = 5;

/// The upper 24 bits of a word that a number shares with something else.
std::uint32_t upper24(const be32& word) {
    return word.get() >> kNumberShift;
}

std::optional<net::IpAddress> address_of(std::uint8_t version, const std::array<std::uint8_t, 16>& bytes) {
    if (version == 6) {
        return net::IpAddress::v6(bytes);
    }
    if (version != 4) {
        return std::nullopt;
    }
    return net::IpAddress::v4(read_value<be32>(std::as_bytes(std::span(bytes)).subspan(12))->get());
}

}  // namespace

std::optional<MadHeader> header_of(const Datagram& datagram) {
    const auto header = *read_value<MadHeader>(datagram);
    if (header.base_version != kBaseVersion || header.management_class != kClassCommunicationManagement ||
        header.class_version != kClassVersion || header.method != kMethodSend) {
        return std::nullopt;
    }
    return header;
}

std::variant<RequestMessage, RejectReason> read_request(const Request& body) {
    RequestMessage message;
    ConnectionRequest& request = message.request;
    message.peer_id = body.local_id.get();
    message.ca_guid = body.ca_guid.get();
    message.response_timeout = static_cast<std::uint8_t>(body.psn_retry.get() >> 3U & 0x1fU);
    message.cm_retries = body.cm_retries >> 4U;

    const std::uint64_t service = body.service_id.get();
    const auto header = *read_value<RdmaCmHeader>(body.private_data);
    const auto source = address_of(header.ip_version >> 4U, header.source);
    const auto destination = address_of(header.ip_version >> 4U, header.destination);
    if ((service & ~kServicePortMask) != kServicePrefixTcp || header.version != kRdmaCmVersion || !source) {
        return RejectReason::InvalidServiceId;
    }
    request.port = static_cast<std::uint16_t>(service & kServicePortMask);
    request.source = *source;
    request.destination = *destination;
    if ((body.eecn_transport.get() >> 1U & 3U) != kReliableConnection) {
        return RejectReason::InvalidTransport;
    }
    const std::uint8_t mtu_code = body.mtu_rnr_retry >> 4U;
    if (mtu_code == 0 || mtu_code > kLargestMtuCode) {
        return RejectReason::InvalidMtu;
    }
    request.path_mtu = 128U << mtu_code;
    request.peer_qpn = upper24(body.qpn_resources);
    if (request.peer_qpn <= kManagementQpn) {
        return RejectReason::NoQueuePair;
    }
    request.responder_resources = static_cast<std::uint8_t>(body.qpn_resources.get());
    request.initiator_depth = static_cast<std::uint8_t>(body.eecn_depth.get());
    request.starting_psn = upper24(body.psn_retry);
    request.retry_count = body.psn_retry.get() & 7U;
    request.rnr_retry_count = body.mtu_rnr_retry & 7U;
    request.acknowledge_timeout = body.primary.acknowledge_timeout >> 3U;
    request.private_data = Bytes(body.private_data).subspan(sizeof(RdmaCmHeader));
    return message;
}

Datagram make_reply(const Ids& ids, const ConnectionAccepted& accepted, std::uint8_t rnr_retry_count,
                    std::uint64_t ca_guid) {
    Reply body{};
    body.local_id.set(ids.local);
    body.remote_id.set(ids.remote);
    body.qpn.set(accepted.qpn << kNumberShift);
    body.psn.set(accepted.starting_psn << kNumberShift);
    body.responder_resources = accepted.responder_resources;
    body.initiator_depth = accepted.initiator_depth;
    body.delay_flow_control = 1;
    body.rnr_retry = static_cast<std::uint8_t>(rnr_retry_count << 5U);
    body.ca_guid.set(ca_guid);
    body.private_data = accepted.private_data;
    return datagram_of(Attribute::Reply, ids.transaction, body);
}

Datagram make_reject(const Ids& ids, About about, const ConnectionRefused& refused, std::uint64_t ca_guid) {
    Reject body{};
    body.local_id.set(ids.local);
    body.remote_id.set(ids.remote);
    body.about = static_cast<std::uint8_t>(static_cast<unsigned>(about) << 6U);
    body.reason.set(static_cast<std::uint16_t>(refused.reason));
    const auto inform = [&body](const auto& value) {
        body.information_length = static_cast<std::uint8_t>(sizeof value << 1U);
        std::memcpy(body.information.data(), &value, sizeof value);
    };
    if (refused.reason == RejectReason::Timeout) {
        inform(be64(ca_guid));
    } else if (refused.reason == RejectReason::InvalidMtu) {
        inform(std::uint8_t{kLargestMtuCode});
    }
    body.private_data = refused.private_data;
    return datagram_of(Attribute::Reject, ids.transaction, body);
}

Datagram make_disconnect_request(const Ids& ids, std::uint32_t peer_qpn) {
    DisconnectRequest body{};
    body.local_id.set(ids.local);
    body.remote_id.set(ids.remote);
    body.remote_qpn.set(peer_qpn << kNumberShift);
    return datagram_of(Attribute::DisconnectRequest, ids.transaction, body);
}

Datagram make_disconnect_reply(const Ids& ids) {
    DisconnectReply body{};
    body.local_id.set(ids.local);
    body.remote_id.set(ids.remote);
    return datagram_of(Attribute::DisconnectReply, ids.transaction, body);
}

Datagram make_resolution_reply(const MadHeader& header, const ServiceResolutionRequest& request) {
    ServiceResolutionReply body{};
    body.request_id = request.request_id;
    body.status = ServiceResolutionReply::kUnsupported;
    body.service_id = request.service_id;
    return datagram_of(Attribute::ServiceResolutionReply, header.transaction_id.get(), body);
}

std::uint64_t guid_of(const wire::MacAddress& mac) {
    const auto& bytes = mac.bytes;
    const std::array<std::uint8_t, 8> guid = {static_cast<std::uint8_t>(bytes[0] ^ 2U),
                                              bytes[1],
                                              bytes[2],
                                              0xff,
                                              0xfe,
                                              bytes[3],
                                              bytes[4],
                                              bytes[5]};
    return read_value<be64>(std::as_bytes(std::span(guid)))->get();
}

}  // namespace ernic::rdma::cm
