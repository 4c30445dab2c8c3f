// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>

#include "base/byte_order.hpp"

/// What hosts and controllers tell each other in the private data of connection management (NVMe RDMA
/// transport 1.0, 3.1).
namespace ernic::wire::nvme_rdma {

inline constexpr std::uint16_t kRecordFormat = 0;

/// In a REQ.
struct ConnectRequest {
    le16 record_format;
    le16 queue_id;
    /// Entries of the host's receive queue (responses), counted from 1.
    le16 host_receive_entries;
    /// Entries of the host's submission queue, counted from 0.
    le16 host_send_entries;
    le16 controller_id;
    std::array<std::uint8_t, 22> reserved;
};
ERNIC_WIRE(ConnectRequest, 32);

/// In a REP.
struct ConnectAccept {
    le16 record_format;
    /// Entries of the controller's receive queue (commands), counted from 1.
    le16 controller_receive_entries;
    std::array<std::uint8_t, 28> reserved;
};
ERNIC_WIRE(ConnectAccept, 32);

enum class RejectStatus : std::uint16_t {
    InvalidPrivateDataLength = 1,
    InvalidRecordFormat = 2,
    InvalidQueueId = 3,
    InvalidHostSendEntries = 4,
    InvalidHostReceiveEntries = 5,
    NoResources = 6,
    InvalidInboundReads = 7,
    InvalidOutboundReads = 8,
    InvalidControllerId = 9,
};

/// In a REJ whose reason is the consumer's.
struct ConnectReject {
    le16 record_format;
    le16 status;
};
ERNIC_WIRE(ConnectReject, 4);

}  // namespace ernic::wire::nvme_rdma
