// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.hpp"
#include "mem/guest_memory.hpp"
#include "mesh/protocol.hpp"
#include "net/payload.hpp"

namespace ernic::mesh {

/// Something that has arrived. Valid only while it is being handed over.
struct Incoming {
    FrameType type = FrameType::Ping;
    Bytes head;
    std::size_t body_size = 0;
    /// The body, where it lies; or, of a large message, a way to read it to where it belongs.
    const mem::SpanList* body = nullptr;
    net::PayloadStream* stream = nullptr;
};

/// Why a link ended.
enum class LinkEnd : std::uint8_t {
    Closed,     ///< the other side closed it
    Broken,     ///< reset, timed out, unreachable
    Protocol,   ///< something arrived that a node of this version does not send
    Forged,     ///< a tag was wrong
    Congested,  ///< it took nothing for so long that control messages would have been lost
};

/// Who uses a link. Thread: device.
class LinkUser {
  public:
    virtual ~LinkUser() = default;
    /// Fails: false ends the link with LinkEnd::Protocol.
    virtual bool on_incoming(const Incoming& incoming) = 0;
    /// Whether the body of an RDMA message may come as a stream.
    [[nodiscard]] virtual bool takes_streams() const = 0;
    /// The link has become ready.
    virtual void on_ready() = 0;
    /// The link has ended by itself. It must not be destroyed from inside.
    virtual void on_end(LinkEnd why) = 0;
};

/// What may become of a frame that finds a full queue.
enum class Importance : std::uint8_t {
    Data,     ///< it is lost, as on a wire
    Control,  ///< it is not lost as long as the link lives
};

/// A way to one other node that keeps the order and loses nothing of what it has taken, until it ends. TCP is
/// one; docs/mesh.md says what another would need. Thread: device. Owns: its connection.
class Link {
  public:
    virtual ~Link() = default;

    /// Sends a frame. `body` (null: none) is not needed any more when this returns. Fails: false when it was
    /// lost.
    virtual bool send(FrameType type, Bytes head, const mem::SpanList* body, Importance importance) = 0;

    /// A message sent now would not have to queue.
    [[nodiscard]] virtual bool ready() const = 0;
    /// Bytes that wait in this process.
    [[nodiscard]] virtual std::size_t queued() const = 0;
    /// Writes what send() has collected.
    virtual void flush() = 0;
    /// Looks for something that has arrived; true when there was something.
    virtual bool receive() = 0;
    /// Gives back memory that a burst has taken.
    virtual void trim() = 0;
    /// Ends it; the user does not hear of it.
    virtual void close() = 0;
};

}  // namespace ernic::mesh
