// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.hpp"
#include "mem/guest_memory.hpp"
#include "wire/ethernet.hpp"

/// NVMe over Fabrics target: a host on the segment.
namespace ernic::nvmeof {

/// Bytes of an NVMe submission queue entry and of a completion queue entry (NVMe Base 2.0, 3.3.3).
inline constexpr std::size_t kSubmissionBytes = 64;
inline constexpr std::size_t kCompletionBytes = 16;

/// A piece of the host's memory, as a keyed SGL data block names it (NVMe over RDMA transport 1.0). Nothing
/// about it is checked: the host's key table refuses what is wrong when it is used.
struct HostMemory {
    std::uint64_t address = 0;
    std::uint32_t length = 0;
    std::uint32_t key = 0;
};

/// Told when a transfer has ended. Must live until then, or until QueueHandler::gone().
class Transfer {
  public:
    virtual ~Transfer() = default;
    /// `ok`: all bytes are where they belong. False: the connection has failed and gone() follows. Never
    /// called from inside the call that began the transfer.
    virtual void transferred(bool ok) = 0;
};

/// One connected queue as its controller sees it; implemented by the RDMA transport and by a fake in tests.
/// Thread: device.
class QueueChannel {
  public:
    virtual ~QueueChannel() = default;
    /// Copies `from` (host bytes of a namespace or of a buffer, which must stay until the end) to
    /// `to.address + offset`: an RDMA WRITE. `done` may be null when a response follows, which cannot
    /// overtake it; the source must then stay until the response has been acknowledged (`responded`).
    virtual void write_host(const HostMemory& to, std::uint32_t offset, const mem::SpanList& from,
                            Transfer* done) = 0;
    /// Copies from `from.address + offset` to `to`: an RDMA READ.
    virtual void read_host(const HostMemory& from, std::uint32_t offset, const mem::SpanList& to,
                           Transfer& done) = 0;
    /// Ends the command of `slot` (see QueueHandler::command) by a response capsule. With `invalidate_key`
    /// the host's key is invalidated by it (SEND with Invalidate). The slot may be used for a new command
    /// once the response has been sent.
    virtual void respond(std::uint16_t slot, Bytes completion,
                         std::optional<std::uint32_t> invalidate_key) = 0;
    /// Ends the connection (DREQ, then QP to Error) after what has been responded; gone() follows, not from
    /// inside this call.
    virtual void close() = 0;
};

/// What a controller's queue is told. Implemented by the controller side. Thread: device.
class QueueHandler {
  public:
    virtual ~QueueHandler() = default;
    /// A command capsule has arrived: kSubmissionBytes, and the in-capsule data behind them. Both stay valid
    /// until respond(slot) is called. `slot` numbers the receive buffer: 0 to the queue's depth - 1.
    virtual void command(std::uint16_t slot, Bytes submission, MutableBytes in_capsule) = 0;
    /// The response of `slot` has reached the host (its SEND is acknowledged).
    virtual void responded(std::uint16_t slot) = 0;
    /// The connection has ended; no transfer is under way any more. The channel must not be used again.
    virtual void gone() = 0;
};

/// What the CM request's private data said (RDMA transport, connection establishment).
struct QueueRequest {
    std::uint16_t queue_id = 0;
    /// Entries the host asks for: its receive (response) and send (command) queue.
    std::uint16_t host_receive_entries = 0;
    std::uint16_t host_send_entries = 0;
    /// The host's controller id (private data format 1), when it is not 0.
    std::uint16_t controller_id = 0;
    /// Who asks, by the address of the segment.
    wire::MacAddress peer;
};

/// Where connections of one address and port go; implemented by the target.
class Acceptor {
  public:
    virtual ~Acceptor() = default;
    /// In-capsule data bytes and entries of a queue of this kind.
    struct Grant {
        std::uint16_t entries = 0;
        std::uint32_t in_capsule_bytes = 0;
    };
    /// Asked before the connection is accepted. Fails: nullopt (no resources), and the CM rejects it.
    virtual std::optional<Grant> consider(const QueueRequest& request) = 0;
    /// The connection stands. The returned handler must live until gone(), and the channel does so too.
    virtual QueueHandler& accepted(const QueueRequest& request, QueueChannel& channel) = 0;
};

}  // namespace ernic::nvmeof
