// SPDX-License-Identifier: MIT
#include "vfio_user/connection.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/fd_passing.hpp"
#include "vfio_user/limits.hpp"
#include "vfio_user/trace.hpp"

namespace ernic::vfio_user {
namespace {

bool may_carry_fds(const Header& header) {
    switch (header.code()) {
        case Command::Version:
        case Command::DmaMap:
        case Command::DmaUnmap:
        case Command::DeviceSetIrqs:
        case Command::DeviceFeature:
            return true;
        default:
            return false;
    }
}

}  // namespace

Connection::Connection(UniqueFd socket, Receiver& receiver, Counters& counters, LogLimits& limits,
                       log::Logger logger)
    : socket_(std::move(socket)),
      receiver_(receiver),
      counters_(counters),
      limits_(limits),
      logger_(std::move(logger)),
      in_(kReceiveBuffer) {
    out_.reserve(kReceiveBuffer);
}

Connection::Received Connection::receive() {
    make_room();
    alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxMessageFds * sizeof(int))> control;
    iovec room{in_.data() + end_, in_.size() - end_};
    msghdr message{};
    message.msg_iov = &room;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t size = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (size < 0) {
        return errno == EAGAIN || errno == EINTR ? Received::Nothing : Received::Closed;
    }
    std::vector<UniqueFd> fds;
    if (message.msg_controllen != 0) {
        fds = received_fds(message);
    }
    if ((message.msg_flags & MSG_CTRUNC) != 0) {
        // The kernel has dropped descriptors: a DMA map or an interrupt would silently be missing.
        counters_.clients_truncated.add();
        logger_.warn_limited(
            limits_.descriptors_lost,
            "connection dropped: file descriptors were lost (more than {} in one message, or none free here)",
            kMaxMessageFds);
        return Received::Closed;
    }
    if (size == 0) {
        return Received::Closed;
    }
    counters_.receives.add();
    const std::size_t read_begin = end_;
    end_ += static_cast<std::size_t>(size);
    const bool with_fds = !fds.empty();
    if (with_fds) {
        attribute_fds(read_begin, std::move(fds));
    }
    execute();
    if (!flush() || closing_) {
        return Received::Closed;
    }
    return with_fds ? Received::DataAndFds : Received::Data;
}

// Which message do descriptors belong to, when one read returns many messages?
//
// Protocol: to the message whose first byte they accompany. A read of exactly one header at a time would show
// that, at the price of two system calls per doorbell. We read greedily and use how Linux treats AF_UNIX
// streams (net/unix/af_unix.c, unix_stream_read_generic): every sendmsg makes its own socket buffer (skb),
// the descriptors hang on the first skb of that sendmsg, and recvmsg returns after the first skb that had
// any. So:
//
//     read:  [ tail of an older skb | skb without fds | ... | skb WITH fds ]   never anything behind it
//
// and clients send a message with one sendmsg, so the descriptors belong to the last message that *starts* in
// this read. (If the buffer ends before that skb does, its rest arrives with later reads, without descriptors
// and without a new start in between.) A client that puts several messages into one sendmsg is met half way:
// among the messages that start in this read, the last one whose command may carry descriptors gets them. A
// header that has not arrived completely wins, because under the one-sendmsg rule it must be the one. Without
// any start in this read the descriptors came in the middle of a message; they belong to nothing and are
// closed.
void Connection::attribute_fds(std::size_t read_begin, std::vector<UniqueFd> fds) {
    std::optional<std::size_t> last_start;
    std::optional<std::size_t> owner;
    for (std::size_t at = begin_; at < end_;) {
        const bool starts_here = at >= read_begin;
        const auto header = read_value<Header>(Bytes(in_).subspan(at, end_ - at));
        if (starts_here) {
            last_start = at;
            if (!header || may_carry_fds(*header)) {
                owner = at;
            }
        }
        if (!header || header->size.get() < sizeof(Header)) {
            break;
        }
        at += header->size.get();
    }
    if (!owner) {
        owner = last_start;
    }
    if (!owner) {
        counters_.stray_fds.add(fds.size());
        logger_.warn_limited(limits_.descriptors_stray,
                             "closed {} file descriptors that came in the middle of a message", fds.size());
        return;
    }
    pending_fds_.push_back({stream_base_ + *owner, std::move(fds)});
}

std::vector<UniqueFd> Connection::take_fds(std::uint64_t message) {
    std::vector<UniqueFd> taken;
    while (!pending_fds_.empty() && pending_fds_.front().message <= message) {
        if (pending_fds_.front().message == message) {
            std::move(pending_fds_.front().fds.begin(), pending_fds_.front().fds.end(),
                      std::back_inserter(taken));
        }
        pending_fds_.erase(pending_fds_.begin());
    }
    return taken;
}

void Connection::execute() {
    const bool tracing = logger_.on(log::Level::Debug);
    while (!closing_ && end_ - begin_ >= sizeof(Header)) {
        const auto header = read_value<Header>(Bytes(in_).subspan(begin_, end_ - begin_));
        if (!trustworthy(*header)) {
            return;
        }
        const std::size_t size = header->size.get();
        if (end_ - begin_ < size) {
            break;
        }
        Message message{*header, Bytes(in_).subspan(begin_ + sizeof(Header), size - sizeof(Header)), {}};
        if (!pending_fds_.empty()) {
            message.fds = take_fds(stream_base_ + begin_);
        }
        if (tracing) {
            trace(logger_, Direction::Received, message.header, message.payload, message.fds.size());
        }
        counters_.messages.add();
        begin_ += size;
        receiver_.on_message(message);
    }
    recycle();
}

bool Connection::trustworthy(const Header& header) {
    const std::uint32_t size = header.size.get();
    if (size >= sizeof(Header) && size <= kMaxMessage) {
        return true;
    }
    // Where the next message starts is unknown now, so the stream is over.
    counters_.add(Reject::HeaderSize);
    logger_.warn_limited(limits_.stream_lost, "connection dropped: message of {} bytes (command {})", size,
                         header.command.get());
    reply_error(header, EINVAL);
    closing_ = true;
    return false;
}

/// After executing: the buffer returns to its resting state when nothing is left in it.
void Connection::recycle() {
    if (begin_ != end_) {
        return;
    }
    stream_base_ += end_;
    begin_ = 0;
    end_ = 0;
    if (in_.size() > kReceiveBuffer) {
        in_.resize(kReceiveBuffer);
        in_.shrink_to_fit();
    }
}

/// Before reading: the message that has begun must fit behind begin_, and some room must be free in any case.
void Connection::make_room() {
    if (begin_ == end_) {
        return;  // recycle() has left the whole buffer free
    }
    std::size_t needed = kReceiveBuffer;
    if (const auto header = read_value<Header>(Bytes(in_).subspan(begin_, end_ - begin_))) {
        needed = std::max<std::size_t>(needed, header->size.get());  // checked by trustworthy()
    }
    if (begin_ != 0) {
        std::memmove(in_.data(), in_.data() + begin_, end_ - begin_);
        stream_base_ += begin_;
        end_ -= begin_;
        begin_ = 0;
    }
    if (in_.size() < needed) {
        in_.resize(needed);
    }
}

MutableBytes Connection::append(std::size_t size) {
    if (out_.size() - out_begin_ + size > kMaxUnsent &&
        (!flush() || out_.size() - out_begin_ + size > kMaxUnsent)) {
        if (!closing_) {
            counters_.clients_too_slow.add();
            logger_.warn_limited(limits_.too_slow,
                                 "connection dropped: the client leaves {} bytes of replies unread",
                                 out_.size() - out_begin_);
            closing_ = true;
        }
        return {};
    }
    const std::size_t at = out_.size();
    out_.resize(at + size);
    return MutableBytes(out_).subspan(at);
}

MutableBytes Connection::reply(const Header& request, std::size_t payload_size) {
    if (request.no_reply() || closing_) {
        return {};
    }
    const MutableBytes room = append(sizeof(Header) + payload_size);
    if (room.empty()) {
        return {};
    }
    Header header{};
    header.id = request.id;
    header.command = request.command;
    header.size.set(static_cast<std::uint32_t>(room.size()));
    header.flags.set(Header::kTypeReply);
    std::memcpy(room.data(), &header, sizeof(Header));
    if (logger_.on(log::Level::Debug)) {
        trace(logger_, Direction::Sent, header, {}, 0);
    }
    return room.subspan(sizeof(Header));
}

void Connection::reply_error(const Header& request, int error) {
    if (request.no_reply() || closing_) {
        return;
    }
    Header header{};
    header.id = request.id;
    header.command = request.command;
    header.size.set(sizeof(Header));
    header.flags.set(Header::kTypeReply | Header::kFlagError);
    header.error.set(static_cast<std::uint32_t>(error));
    if (const MutableBytes room = append(sizeof(Header)); !room.empty()) {
        std::memcpy(room.data(), &header, sizeof(Header));
    }
    if (logger_.on(log::Level::Debug)) {
        trace(logger_, Direction::Sent, header, {}, 0);
    }
}

bool Connection::send_command(std::uint16_t id, Command command, Bytes payload) {
    const MutableBytes room = closing_ ? MutableBytes{} : append(sizeof(Header) + payload.size());
    if (room.empty()) {
        return false;
    }
    Header header{};
    header.id.set(id);
    header.command.set(static_cast<std::uint16_t>(command));
    header.size.set(static_cast<std::uint32_t>(room.size()));
    std::memcpy(room.data(), &header, sizeof(Header));
    std::copy(payload.begin(), payload.end(), room.begin() + sizeof(Header));
    if (logger_.on(log::Level::Debug)) {
        trace(logger_, Direction::Sent, header, payload, 0);
    }
    return true;
}

bool Connection::flush() {
    while (unsent()) {
        const ssize_t sent = ::send(socket_.get(), out_.data() + out_begin_, out_.size() - out_begin_,
                                    MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0) {
            if (errno == EINTR) {
                continue;
            }
            if (errno != EAGAIN) {
                return false;
            }
            // Keep the unsent rest in front, so that the buffer's size is what the client owes us.
            out_.erase(out_.begin(), out_.begin() + static_cast<std::ptrdiff_t>(out_begin_));
            out_begin_ = 0;
            return true;
        }
        counters_.sends.add();
        out_begin_ += static_cast<std::size_t>(sent);
    }
    out_.clear();
    out_begin_ = 0;
    if (out_.capacity() > 4 * kReceiveBuffer) {
        out_.shrink_to_fit();
    }
    return true;
}

}  // namespace ernic::vfio_user
