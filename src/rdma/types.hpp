// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "mem/ring.hpp"
#include "net/route.hpp"
#include "rdma/limits.hpp"

/// InfiniBand verbs vocabulary (InfiniBand Architecture volume 1, chapters 9 to 11), free of any device's
/// encoding.
namespace ernic::rdma {

enum class QpType : std::uint8_t { Rc, Ud };

enum class QpState : std::uint8_t { Reset, Init, Rtr, Rts, Sqd, Sqe, Error };

enum class Opcode : std::uint8_t {
    Send,
    SendImmediate,
    SendInvalidate,
    Write,
    WriteImmediate,
    Read,
    CompareSwap,
    FetchAdd,
    RegisterMr,
    LocalInvalidate,
    BindMw,
};
inline constexpr std::size_t kOpcodeCount = 11;

/// Short lower-case name for logs and statistics.
const char* name_of(Opcode opcode);
const char* name_of(QpState state);

/// True for operations that end at this QP: nothing is sent to the peer.
constexpr bool is_local(Opcode opcode) {
    return opcode == Opcode::RegisterMr || opcode == Opcode::LocalInvalidate || opcode == Opcode::BindMw;
}
constexpr bool is_atomic(Opcode opcode) {
    return opcode == Opcode::CompareSwap || opcode == Opcode::FetchAdd;
}
/// True for operations that need the responder's read/atomic resources.
constexpr bool is_read_like(Opcode opcode) {
    return opcode == Opcode::Read || is_atomic(opcode);
}

/// Rights of a memory region or window.
struct AccessRights {
    bool local_write = false;
    bool remote_write = false;
    bool remote_read = false;
    bool remote_atomic = false;
    bool window_bind = false;
    bool zero_based = false;
};

struct Sge {
    std::uint64_t va = 0;
    std::uint32_t length = 0;
    std::uint32_t lkey = 0;
};

/// One send work request, copied out of its ring and decoded.
struct WorkRequest {
    std::uint64_t id;
    Opcode opcode;
    bool fence;
    bool solicited;
    bool signalled;
    bool is_inline;
    std::uint8_t sge_count;
    /// RegisterMr / BindMw: the new 8-bit tag of the key.
    std::uint8_t new_tag;
    std::uint8_t page_size_log2;
    AccessRights rights;
    bool window_type2;
    /// Raw immediate bits, the key to invalidate, or the key of the MR / MW to register or bind.
    std::uint32_t immediate_or_key;
    std::uint32_t rkey;
    std::uint64_t remote_va;
    std::uint64_t length;
    std::uint64_t swap_add;
    std::uint64_t compare;
    std::uint32_t ah_id;
    std::uint32_t destination_qpn;
    std::uint32_t destination_qkey;
    /// RegisterMr: where the pages are.
    mem::Iova table;
    std::uint32_t map_count;
    std::uint64_t page_offset;
    /// BindMw: the region to bind to.
    std::uint32_t lkey;
    std::array<Sge, kMaxSges> sges;
    std::array<std::byte, kMaxInline> inline_data;
};

/// One receive work request.
struct ReceiveRequest {
    std::uint64_t id = 0;
    std::uint8_t sge_count = 0;
    std::array<Sge, kMaxSges> sges;
};

/// Completion status in verbs terms (ibv_wc_status).
enum class CompletionStatus : std::uint8_t {
    Success,
    LocalLength,
    LocalQpOperation,
    LocalProtection,
    MemoryManagement,
    BadResponse,
    LocalAccess,
    RemoteInvalidRequest,
    RemoteAccess,
    RemoteOperation,
    RetryExceeded,
    RnrRetryExceeded,
};

struct SendCompletion {
    std::uint64_t id;
    /// Free-running position of the request in its send queue.
    std::uint32_t position;
    Opcode opcode;
    bool signalled;
    CompletionStatus status;
};

enum class ReceiveKind : std::uint8_t { Send, SendInvalidate, SendImmediate, WriteImmediate };

struct ReceiveCompletion {
    std::uint64_t id = 0;
    ReceiveKind kind = ReceiveKind::Send;
    CompletionStatus status = CompletionStatus::Success;
    bool solicited = false;
    std::uint32_t length = 0;
    std::uint32_t source_qpn = 0;
    /// Raw immediate bits or the invalidated key.
    std::uint32_t immediate_or_key = 0;
    /// Where a datagram came from; null on connected QPs.
    const net::Route* route = nullptr;
};

enum class QpEvent : std::uint8_t { SqDrained, CommunicationEstablished, Fatal, RequestError, AccessError };

enum class Side : std::uint8_t { Send, Receive };

/// What is left of an engine step.
struct Budget {
    std::uint64_t bytes;
    std::uint32_t requests;
    [[nodiscard]] bool spent() const { return bytes == 0 || requests == 0; }
    void take(std::uint64_t count) { bytes -= count < bytes ? count : bytes; }
};

/// How a turn of a queue pair ended, from nothing left to do to work that the peer's port has no room for.
enum class Turned : std::uint8_t { Done, More, Blocked };

/// What a queue pair needs from the owner of its rings (the ionic device, or an in-process service).
/// Thread: device for every call. None may destroy the queue pair.
class QueueOwner {
  public:
    virtual ~QueueOwner() = default;

    /// Copies and decodes the send request at free-running `position`. May be asked again for a
    /// retransmission. Fails: false when it cannot be read or decoded; `request.id` and `.opcode` are then
    /// still filled if possible.
    virtual bool fetch_send(std::uint32_t position, WorkRequest& request) = 0;

    /// Copies and decodes the receive request at free-running `position`. Fails: false when it cannot be
    /// read.
    virtual bool fetch_receive(std::uint32_t position, ReceiveRequest& request) = 0;

    /// One send request has ended; called for unsignalled ones too. Requests to a peer end in ring order.
    /// Local ones (RegisterMr, LocalInvalidate, BindMw) end as soon as they are executed, ahead of earlier
    /// requests that wait for their acknowledgement.
    virtual void send_completed(const SendCompletion& completion) = 0;

    /// No further completion follows at once: the owner publishes what it may have held back.
    virtual void send_batch_done() = 0;

    virtual void receive_completed(const ReceiveCompletion& completion) = 0;

    /// All outstanding requests of one side are flushed (the QP is in Error).
    virtual void flushed(Side side) = 0;

    virtual void raise(QpEvent event) = 0;
};

}  // namespace ernic::rdma
