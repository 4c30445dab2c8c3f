// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "base/bytes.hpp"
#include "base/fd.hpp"
#include "base/log.hpp"
#include "vfio_user/counters.hpp"
#include "vfio_user/log_limits.hpp"
#include "wire/vfio_user.hpp"

namespace ernic::vfio_user {

using wire::vfio_user::Command;
using wire::vfio_user::Header;

/// One whole message as it arrived. `payload` is valid only during the call that hands it over.
struct Message {
    Header header;
    Bytes payload;
    std::vector<UniqueFd> fds;  // those the receiver does not move out are closed with the message
};

/// Message framing on one client socket: greedy reads, file descriptors given to their message, replies
/// collected and sent once per batch. Owns the socket. Never blocks. Thread: device.
class Connection {
  public:
    /// Who executes messages.
    class Receiver {
      public:
        virtual ~Receiver() = default;
        /// One message, in the order of arrival. May call reply(), send_command() and close_after_flush(),
        /// nothing else. Thread: device. Fails: never.
        virtual void on_message(Message& message) = 0;
    };

    /// What a receive() attempt found.
    enum class Received : std::uint8_t {
        Nothing,     ///< the socket is empty
        Data,        ///< bytes were read and all complete messages executed
        DataAndFds,  ///< the same, and the read stopped behind file descriptors: more may wait
        Closed,      ///< the client is gone or has lost our trust; the owner destroys the connection
    };

    /// `receiver`, `counters` and `limits` must outlive the connection.
    Connection(UniqueFd socket, Receiver& receiver, Counters& counters, LogLimits& limits,
               log::Logger logger);

    /// One non-blocking recvmsg, then executes every complete message and sends the replies.
    Received receive();

    /// Room for the payload of the success reply to `request`; empty when no reply is wanted (No_reply) or
    /// possible. The bytes are zero; the room is valid until the next call.
    MutableBytes reply(const Header& request, std::size_t payload_size);
    /// Success reply whose payload is one wire structure.
    template <WireValue T>
    void reply_value(const Header& request, const T& value) {
        if (const MutableBytes room = reply(request, sizeof(T)); !room.empty()) {
            std::memcpy(room.data(), &value, sizeof(T));
        }
    }
    /// Error reply, unless the request carries No_reply.
    void reply_error(const Header& request, int error);
    /// Sends a command of our own; returns false when the client is being closed.
    bool send_command(std::uint16_t id, Command command, Bytes payload);
    /// Executes nothing more; what is still unsent is tried once.
    void close_after_flush() { closing_ = true; }

    /// Sends what is collected. Fails: false when the client is gone.
    bool flush();
    /// True while unsent bytes wait for the socket to become writable.
    [[nodiscard]] bool unsent() const { return out_begin_ < out_.size(); }
    [[nodiscard]] int fd() const { return socket_.get(); }

  private:
    /// File descriptors on their way to the message that starts at `message` (stream offset).
    struct PendingFds {
        std::uint64_t message;
        std::vector<UniqueFd> fds;
    };

    void make_room();
    void attribute_fds(std::size_t read_begin, std::vector<UniqueFd> fds);
    std::vector<UniqueFd> take_fds(std::uint64_t message);
    void execute();
    bool trustworthy(const Header& header);
    void recycle();
    MutableBytes append(std::size_t size);

    UniqueFd socket_;
    Receiver& receiver_;
    Counters& counters_;
    LogLimits& limits_;
    log::Logger logger_;

    // in_:  | executed | begin_ ... complete and partial messages ... end_ | free |
    std::vector<std::byte> in_;
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
    std::uint64_t stream_base_ = 0;  // stream offset of in_[0]
    std::vector<PendingFds> pending_fds_;

    std::vector<std::byte> out_;
    std::size_t out_begin_ = 0;
    bool closing_ = false;
};

}  // namespace ernic::vfio_user
