// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/event_loop.hpp"
#include "base/fd.hpp"
#include "mesh/auth.hpp"
#include "mesh/counters.hpp"
#include "mesh/limits.hpp"
#include "mesh/link.hpp"

namespace ernic::mesh {

/// What the links of one node have in common. Thread: device.
struct LinkPool {
    /// Those with collected frames, to be written in this turn of the loop.
    std::vector<Link*> dirty;
    /// Buffers to read ahead into that no link needs now.
    std::vector<std::vector<std::byte>> buffers;
};

/// A link over one TCP connection.
///
/// Sending: small frames are collected and written together; a large one is written at once, straight from
/// where it lies. What the socket does not take of it is copied, and until that has left the link is not
/// ready.
///
///     out_:  | sent already | frames to be written |      + the frame at hand, by the same writev
///
/// Receiving: a few bytes are read ahead, in which heads and small bodies are found. A large body is left in
/// the socket until it is there as a whole, then read to where its receiver says (a stream). When the socket
/// cannot hold it, or tags have to be checked first, it is put together in a buffer (staged).
///
///     in_:   | done | prefix | head | body .. |  -> rest of the body still in the socket
///
/// A link has a buffer for this only while there is something in it: of a thousand links few do.
class TcpLink final : public Link {
  public:
    /// `socket` is connected and non-blocking. All references must outlive the link.
    TcpLink(UniqueFd socket, EventLoop& loop, LinkUser& user, Counters& counters, LinkPool& pool);
    ~TcpLink() override;
    TcpLink(const TcpLink&) = delete;
    TcpLink& operator=(const TcpLink&) = delete;

    /// From now on somebody else uses it.
    void set_user(LinkUser& user) { user_ = &user; }
    /// From now on what is sent carries tags. What has been sent before does not.
    void seal_sent(const Digest& key) { sent_seal_ = std::make_unique<Seal>(key); }
    /// From now on what arrives, not counting what is being handed over, must carry tags.
    void seal_received(const Digest& key) { received_seal_ = std::make_unique<Seal>(key); }

    bool send(FrameType type, Bytes head, const mem::SpanList* body, Importance importance) override;
    [[nodiscard]] bool ready() const override { return socket_.valid() && !blocked_; }
    [[nodiscard]] std::size_t queued() const override { return out_.size() - out_sent_; }
    void flush() override;
    bool receive() override;
    void trim() override;
    void close() override;
    [[nodiscard]] int fd() const { return socket_.get(); }

  private:
    class Body;
    /// Where a frame stands in the read-ahead buffer.
    struct Place {
        Prefix prefix;
        std::size_t head_size;   ///< prefix, head and tag
        std::size_t body_size;   ///< without its tag
        std::size_t whole_body;  ///< with it
    };
    enum class Read : std::uint8_t { Some, Nothing, Ended };

    void end(LinkEnd why);
    void on_event(std::uint32_t events);
    void set_events();

    void append(FrameType type, Bytes head, const mem::SpanList* body);
    void write_large(FrameType type, Bytes head, const mem::SpanList& body);
    /// Asks the socket whether as much waits in it that it is better to wait.
    void look_for_room();
    void block();

    [[nodiscard]] Bytes buffered() const { return Bytes(in_).subspan(in_first_, in_size_); }
    void take_buffer();
    /// Precondition: nothing is in it.
    void give_buffer_back();
    Read read_ahead(std::size_t wanted);
    /// Handles what is in the buffer; false when more has to be read, or the link has ended.
    bool handle_one();
    bool handle_large(const Place& place);
    bool stage(const Place& place);
    bool open_head(const Place& place);
    bool hand_over(const Place& place, const mem::SpanList* body, net::PayloadStream* stream);
    void consume(std::size_t size);
    /// Throws away `size` bytes that are in the buffer or the socket.
    bool skip(std::size_t size);
    void wait_for(std::size_t bytes);

    UniqueFd socket_;
    EventLoop& loop_;
    LinkUser* user_;
    Counters& counters_;
    LinkPool& pool_;
    std::unique_ptr<Seal> sent_seal_;
    std::unique_ptr<Seal> received_seal_;

    std::vector<std::byte> out_;
    std::size_t out_sent_ = 0;
    bool is_dirty_ = false;
    bool blocked_ = false;

    std::vector<std::byte> in_;
    std::size_t in_first_ = 0;
    std::size_t in_size_ = 0;
    /// The tag of the frame at the front has been checked.
    bool head_open_ = false;
    /// SO_RCVLOWAT as it is set; more than 1 while a body is waited for.
    std::size_t low_water_ = 1;
    std::size_t read_size_ = kReadAhead;
    /// The last look at the socket found less than there was room for.
    bool read_short_ = false;
    /// A body that is put together, with its tag.
    std::vector<std::byte> staged_;
    std::size_t staged_size_ = 0;
    bool staging_ = false;
    /// A large body is not there yet: nothing may be read ahead.
    bool waiting_ = false;
    /// The kernel has called us, and not the poller.
    bool woken_ = false;
    bool receiving_ = false;
    int small_run_ = 0;
};

}  // namespace ernic::mesh
