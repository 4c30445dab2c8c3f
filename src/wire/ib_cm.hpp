// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/byte_order.hpp"

/// Communication management datagrams (InfiniBand volume 1, 13.4.2 for the header, 12.6 for the messages),
/// and the header that RDMA CM puts in front of a consumer's private data (annex A11). Fields that share a
/// word are named in its comment, from the most significant bit on.
namespace ernic::wire::ib_cm {

inline constexpr std::uint8_t kBaseVersion = 1;
inline constexpr std::uint8_t kClassCommunicationManagement = 0x07;
inline constexpr std::uint8_t kClassVersion = 2;
inline constexpr std::uint8_t kMethodSend = 0x03;

/// The QP that these datagrams go to and come from, and its Q_Key (InfiniBand 3.5.3.1, 10.2.5).
inline constexpr std::uint32_t kManagementQpn = 1;
inline constexpr std::uint32_t kManagementQkey = 0x80010000;

enum class Attribute : std::uint16_t {
    Request = 0x10,
    MessageReceiptAcknowledgement = 0x11,
    Reject = 0x12,
    Reply = 0x13,
    ReadyToUse = 0x14,
    DisconnectRequest = 0x15,
    DisconnectReply = 0x16,
    ServiceResolutionRequest = 0x17,
    ServiceResolutionReply = 0x18,
    LoadAlternatePath = 0x19,
    AlternatePathResponse = 0x1a,
};

/// Why a request is rejected (InfiniBand 12.6.7.2, table 108), as far as anybody here says it.
enum class RejectReason : std::uint16_t {
    NoQueuePair = 1,
    NoResources = 3,
    Timeout = 4,
    Unsupported = 5,
    InvalidServiceId = 8,
    InvalidTransport = 9,
    StaleConnection = 10,
    InvalidMtu = 26,
    Consumer = 28,
};

/// Which message a rejection or an acknowledgement is about.
enum class About : std::uint8_t { Request = 0, Reply = 1, Other = 2 };

struct MadHeader {
    std::uint8_t base_version;
    std::uint8_t management_class;
    std::uint8_t class_version;
    std::uint8_t method;
    be16 status;
    be16 class_specific;
    be64 transaction_id;
    be16 attribute_id;
    be16 reserved;
    be32 attribute_modifier;
};
ERNIC_WIRE(MadHeader, 24);

/// The header of a communication management datagram.
[[nodiscard]] inline MadHeader make_header(Attribute attribute, std::uint64_t transaction = 0) {
    MadHeader header{};
    header.base_version = kBaseVersion;
    header.management_class = kClassCommunicationManagement;
    header.class_version = kClassVersion;
    header.method = kMethodSend;
    header.transaction_id.set(transaction);
    header.attribute_id.set(static_cast<std::uint16_t>(attribute));
    return header;
}

inline constexpr std::size_t kMadSize = 256;
inline constexpr std::size_t kBodySize = kMadSize - sizeof(MadHeader);

struct Path {
    be16 local_lid;
    be16 remote_lid;
    std::array<std::uint8_t, 16> local_gid;
    std::array<std::uint8_t, 16> remote_gid;
    /// Flow label (20), reserved (6), packet rate (6).
    be32 flow_rate;
    std::uint8_t traffic_class;
    std::uint8_t hop_limit;
    /// Service level (4), subnet local (1), reserved (3).
    std::uint8_t service_level;
    /// Local ACK timeout (5), reserved (3).
    std::uint8_t acknowledge_timeout;
};
ERNIC_WIRE(Path, 44);

/// REQ (InfiniBand 12.6.5).
struct Request {
    static constexpr std::size_t kPrivate = 92;

    be32 local_id;
    be32 vendor_id;
    be64 service_id;
    be64 ca_guid;
    be32 reserved;
    be32 qkey;
    /// Local QPN (24), responder resources (8).
    be32 qpn_resources;
    /// Local EECN (24), initiator depth (8).
    be32 eecn_depth;
    /// Remote EECN (24), remote CM response timeout (5), transport service type (2), end-to-end flow control
    /// (1).
    be32 eecn_transport;
    /// Starting PSN (24), local CM response timeout (5), retry count (3).
    be32 psn_retry;
    be16 partition;
    /// Path MTU code (4), RDC exists (1), RNR retry count (3).
    std::uint8_t mtu_rnr_retry;
    /// Maximum of CM retries (4), SRQ (1), extended transport type (3).
    std::uint8_t cm_retries;
    Path primary;
    Path alternate;
    std::array<std::byte, kPrivate> private_data;
};
ERNIC_WIRE(Request, kBodySize);
ERNIC_WIRE_AT(Request, qpn_resources, 32);
ERNIC_WIRE_AT(Request, partition, 48);
ERNIC_WIRE_AT(Request, primary, 52);
ERNIC_WIRE_AT(Request, private_data, 140);

/// MRA (InfiniBand 12.6.6).
struct Receipt {
    be32 local_id;
    be32 remote_id;
    /// About (2), reserved (6).
    std::uint8_t about;
    /// Service timeout (5), reserved (3).
    std::uint8_t service_timeout;
    std::array<std::byte, 222> private_data;
};
ERNIC_WIRE(Receipt, kBodySize);

/// REJ (InfiniBand 12.6.7).
struct Reject {
    static constexpr std::size_t kPrivate = 148;

    be32 local_id;
    be32 remote_id;
    /// About (2), reserved (6).
    std::uint8_t about;
    /// Bytes of additional information (7), reserved (1).
    std::uint8_t information_length;
    be16 reason;
    std::array<std::byte, 72> information;
    std::array<std::byte, kPrivate> private_data;
};
ERNIC_WIRE(Reject, kBodySize);
ERNIC_WIRE_AT(Reject, private_data, 84);

/// REP (InfiniBand 12.6.8).
struct Reply {
    static constexpr std::size_t kPrivate = 196;

    be32 local_id;
    be32 remote_id;
    be32 qkey;
    /// Local QPN (24), reserved (8).
    be32 qpn;
    /// Local EECN (24), reserved (8).
    be32 eecn;
    /// Starting PSN (24), reserved (8).
    be32 psn;
    std::uint8_t responder_resources;
    std::uint8_t initiator_depth;
    /// Target ACK delay (5), failover accepted (2), end-to-end flow control (1).
    std::uint8_t delay_flow_control;
    /// RNR retry count (3), SRQ (1), reserved (4).
    std::uint8_t rnr_retry;
    be64 ca_guid;
    std::array<std::byte, kPrivate> private_data;
};
ERNIC_WIRE(Reply, kBodySize);
ERNIC_WIRE_AT(Reply, private_data, 36);

/// RTU (InfiniBand 12.6.9), and DREP (12.6.11), which looks the same.
struct ReadyToUse {
    be32 local_id;
    be32 remote_id;
    std::array<std::byte, 224> private_data;
};
ERNIC_WIRE(ReadyToUse, kBodySize);
using DisconnectReply = ReadyToUse;

/// DREQ (InfiniBand 12.6.10).
struct DisconnectRequest {
    be32 local_id;
    be32 remote_id;
    /// Remote QPN (24), reserved (8).
    be32 remote_qpn;
    std::array<std::byte, 220> private_data;
};
ERNIC_WIRE(DisconnectRequest, kBodySize);

/// SIDR_REQ (InfiniBand 12.11.1).
struct ServiceResolutionRequest {
    be32 request_id;
    be16 partition;
    be16 reserved;
    be64 service_id;
    std::array<std::byte, 216> private_data;
};
ERNIC_WIRE(ServiceResolutionRequest, kBodySize);

/// SIDR_REP (InfiniBand 12.11.2).
struct ServiceResolutionReply {
    static constexpr std::uint8_t kUnsupported = 1;

    be32 request_id;
    std::uint8_t status;
    std::uint8_t information_length;
    be16 reserved;
    /// QPN (24), reserved (8).
    be32 qpn;
    be64 service_id;
    be32 qkey;
    std::array<std::byte, 72> information;
    std::array<std::byte, 136> private_data;
};
ERNIC_WIRE(ServiceResolutionReply, kBodySize);

/// Service ids of RDMA CM (annex A11.2): this, IP protocol 6 in the third byte from below, and a port.
inline constexpr std::uint64_t kServicePrefixTcp = 0x0000000001060000;
inline constexpr std::uint64_t kServicePortMask = 0xffff;

/// In front of the consumer's private data of a REQ (annex A11.3).
struct RdmaCmHeader {
    /// Major and minor version, both 0 (8); IP version (4), reserved (4).
    std::uint8_t version;
    std::uint8_t ip_version;
    be16 source_port;
    /// An IPv4 address lies in the last four bytes.
    std::array<std::uint8_t, 16> source;
    std::array<std::uint8_t, 16> destination;
};
ERNIC_WIRE(RdmaCmHeader, 36);

/// Of a REQ, behind the header of RDMA CM.
inline constexpr std::size_t kConsumerPrivate = Request::kPrivate - sizeof(RdmaCmHeader);

}  // namespace ernic::wire::ib_cm
