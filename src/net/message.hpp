// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "mem/guest_memory.hpp"
#include "net/payload.hpp"
#include "net/route.hpp"

namespace ernic::net {

/// What an RDMA message fragment is. The names follow the BTH opcodes they would have on a wire.
enum class MessageKind : std::uint8_t {
    // requests, to a responder
    Send,
    Write,
    ReadRequest,
    CompareSwap,
    FetchAdd,
    // unreliable datagram
    Datagram,
    // responses, to a requester
    Acknowledge,
    ReadResponse,
    AtomicResponse,
};

/// AETH syndrome of an acknowledgement (InfiniBand 9.7.5.1).
enum class Syndrome : std::uint8_t {
    Ack,
    RnrNak,
    NakSequence,
    NakInvalidRequest,
    NakRemoteAccess,
    NakRemoteOperation,
};

/// One fragment of an RDMA message on the segment: a run of packets that would be consecutive on a wire,
/// moved whole. Fragments carry the PSN of their first packet and start at a multiple of the path MTU, so
/// that they can always be shown as the RoCE v2 packets they stand for. A message valid only while it is
/// being delivered: it owns nothing.
struct Message {
    const Route* route = nullptr;
    MessageKind kind = MessageKind::Send;
    bool first = true;
    bool last = true;
    bool solicited = false;
    bool has_immediate = false;
    bool has_invalidate = false;
    bool acknowledge_request = false;
    Syndrome syndrome = Syndrome::Ack;
    /// RNR timer code of an RnrNak.
    std::uint8_t rnr_timer = 0;
    std::uint32_t destination_qpn = 0;
    std::uint32_t source_qpn = 0;
    std::uint32_t psn = 0;
    std::uint32_t msn = 0;
    /// Raw big-endian bits, as they lie in a WQE and a CQE.
    std::uint32_t immediate = 0;
    std::uint32_t invalidate_key = 0;
    std::uint32_t qkey = 0;
    std::uint16_t path_mtu = 0;
    std::uint32_t rkey = 0;
    /// Remote address of the first byte of this fragment (Write, ReadRequest, atomics).
    std::uint64_t remote_va = 0;
    /// Payload bytes of this fragment; for a ReadRequest the bytes asked for.
    std::uint64_t length = 0;
    /// Bytes of the whole message (the DMA length of a RETH); Write only.
    std::uint64_t message_length = 0;
    std::uint64_t compare = 0;
    /// Swap or add operand; in an AtomicResponse the original value.
    std::uint64_t swap_add = 0;
    /// Source bytes of Send, Write, Datagram and ReadResponse; null otherwise, and when they are in `stream`.
    const mem::SpanList* payload = nullptr;
    /// Instead of `payload`: bytes that can be read once, straight to where they belong. Never of a Datagram,
    /// and never of a message that an observer or a filter sees.
    PayloadStream* stream = nullptr;
};

}  // namespace ernic::net
