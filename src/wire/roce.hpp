// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/byte_order.hpp"

/// Transport headers of RoCE v2 packets behind UDP (InfiniBand volume 1, chapter 9; annex A17 for the packet
/// as a whole).
namespace ernic::wire::roce {

/// BTH opcodes (InfiniBand 9.2.1, table 38): three bits of transport service, five of operation.
enum class Opcode : std::uint8_t {
    RcSendFirst = 0x00,
    RcSendMiddle = 0x01,
    RcSendLast = 0x02,
    RcSendLastImmediate = 0x03,
    RcSendOnly = 0x04,
    RcSendOnlyImmediate = 0x05,
    RcWriteFirst = 0x06,
    RcWriteMiddle = 0x07,
    RcWriteLast = 0x08,
    RcWriteLastImmediate = 0x09,
    RcWriteOnly = 0x0a,
    RcWriteOnlyImmediate = 0x0b,
    RcReadRequest = 0x0c,
    RcReadResponseFirst = 0x0d,
    RcReadResponseMiddle = 0x0e,
    RcReadResponseLast = 0x0f,
    RcReadResponseOnly = 0x10,
    RcAcknowledge = 0x11,
    RcAtomicAcknowledge = 0x12,
    RcCompareSwap = 0x13,
    RcFetchAdd = 0x14,
    RcSendLastInvalidate = 0x16,
    RcSendOnlyInvalidate = 0x17,
    UdSendOnly = 0x64,
    UdSendOnlyImmediate = 0x65,
};

/// The default partition, full membership (InfiniBand 10.9.1.1): the only one RoCE knows.
inline constexpr std::uint16_t kDefaultPartition = 0xffff;

/// Base transport header (InfiniBand 9.2).
struct BaseHeader {
    std::uint8_t opcode;
    /// Solicited event (1), migration state (1), bytes of padding (2), version 0 (4).
    std::uint8_t flags;
    be16 partition;
    /// Reserved, on RoCE congestion bits: not covered by the ICRC (8); destination QP (24).
    be32 destination_qpn;
    /// Acknowledge request (1), reserved (7), PSN (24).
    be32 acknowledge_psn;

    static constexpr std::uint8_t kSolicited = 0x80;
    /// The path is the one both sides use; every QP of ours is in that state (InfiniBand 17.2.8).
    static constexpr std::uint8_t kMigrated = 0x40;
    static constexpr unsigned kPaddingShift = 4;
    static constexpr std::uint32_t kAcknowledgeRequest = 0x80000000U;
    static constexpr std::uint32_t kNumberMask = 0xffffffU;
};
ERNIC_WIRE(BaseHeader, 12);

/// RDMA extended transport header (InfiniBand 9.3.3).
struct RdmaHeader {
    be64 remote_va;
    be32 rkey;
    be32 length;
};
ERNIC_WIRE(RdmaHeader, 16);

/// Atomic extended transport header (InfiniBand 9.3.4).
struct AtomicHeader {
    be64 remote_va;
    be32 rkey;
    be64 swap_add;
    be64 compare;
};
ERNIC_WIRE(AtomicHeader, 28);

/// Acknowledge extended transport header (InfiniBand 9.3.5).
struct AcknowledgeHeader {
    /// Syndrome (8), MSN (24).
    be32 syndrome_msn;

    // Syndromes (InfiniBand 9.7.5.1.2, tables 43 to 45).
    static constexpr unsigned kSyndromeShift = 24;
    /// An acknowledgement whose credit count means nothing.
    static constexpr std::uint8_t kAck = 0x1f;
    static constexpr std::uint8_t kRnrNak = 0x20;
    static constexpr std::uint8_t kNakSequence = 0x60;
    static constexpr std::uint8_t kNakInvalidRequest = 0x61;
    static constexpr std::uint8_t kNakRemoteAccess = 0x62;
    static constexpr std::uint8_t kNakRemoteOperation = 0x63;
};
ERNIC_WIRE(AcknowledgeHeader, 4);

/// Atomic acknowledge extended transport header (InfiniBand 9.3.5.3).
struct AtomicAcknowledgeHeader {
    be64 original;
};
ERNIC_WIRE(AtomicAcknowledgeHeader, 8);

/// Immediate data (InfiniBand 9.3.6).
struct ImmediateHeader {
    be32 immediate;
};
ERNIC_WIRE(ImmediateHeader, 4);

/// Invalidate extended transport header (InfiniBand 9.3.7).
struct InvalidateHeader {
    be32 rkey;
};
ERNIC_WIRE(InvalidateHeader, 4);

/// Datagram extended transport header (InfiniBand 9.3.2).
struct DatagramHeader {
    be32 qkey;
    /// Reserved (8), source QP (24).
    be32 source_qpn;
};
ERNIC_WIRE(DatagramHeader, 8);

/// The invariant CRC behind the padding (InfiniBand 7.8.1, annex A17.3.3).
inline constexpr std::size_t kIcrcSize = 4;

/// Bytes of padding that make `payload` a multiple of four (InfiniBand 9.2, field PadCnt).
constexpr std::size_t padding_of(std::size_t payload) {
    return (4 - payload % 4) % 4;
}

}  // namespace ernic::wire::roce
