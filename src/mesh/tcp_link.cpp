// SPDX-License-Identifier: MIT
// A TCP link's life and its sending half; tcp_link_receive.cpp has the other one.
#include "mesh/tcp_link.hpp"

#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace ernic::mesh {
namespace {

constexpr std::size_t kMaxVectors = mem::SpanList::kCapacity + 2;

void put(std::vector<std::byte>& out, Bytes bytes) {
    out.insert(out.end(), bytes.begin(), bytes.end());
}

Prefix prefix_of(FrameType type, Bytes head, const mem::SpanList* body) {
    Prefix prefix{};
    prefix.type = static_cast<std::uint8_t>(type);
    prefix.head_size.set(static_cast<std::uint16_t>(head.size()));
    prefix.body_size.set(static_cast<std::uint32_t>(body != nullptr ? body->bytes() : 0));
    return prefix;
}

}  // namespace

TcpLink::TcpLink(UniqueFd socket, EventLoop& loop, LinkUser& user, Counters& counters, LinkPool& pool)
    : socket_(std::move(socket)), loop_(loop), user_(&user), counters_(counters), pool_(pool) {
    loop_.add(socket_.get(), EPOLLIN, [this](std::uint32_t events) { on_event(events); });
}

TcpLink::~TcpLink() {
    close();
}

void TcpLink::close() {
    if (is_dirty_) {
        std::erase(pool_.dirty, this);
        is_dirty_ = false;
    }
    if (socket_) {
        loop_.remove(socket_.get());
        socket_.reset();
    }
}

void TcpLink::end(LinkEnd why) {
    if (socket_) {
        close();
        user_->on_end(why);
    }
}

void TcpLink::on_event(std::uint32_t events) {
    if ((events & EPOLLOUT) != 0 && blocked_) {
        blocked_ = false;
        flush();
        if (socket_ && !blocked_) {
            set_events();
            user_->on_ready();
        }
    }
    if ((events & ~std::uint32_t{EPOLLOUT}) != 0) {
        woken_ = true;
        (void)receive();
        woken_ = false;
    }
}

void TcpLink::set_events() {
    loop_.modify(socket_.get(), EPOLLIN | (blocked_ ? std::uint32_t{EPOLLOUT} : 0U));
}

void TcpLink::trim() {
    for (std::vector<std::byte>* const buffer : {&out_, &staged_}) {
        const bool in_use = buffer == &out_ ? queued() != 0 : staging_;
        if (!in_use && buffer->capacity() > kBatch) {
            *buffer = {};
            (buffer == &out_ ? out_sent_ : staged_size_) = 0;
        }
    }
}

bool TcpLink::send(FrameType type, Bytes head, const mem::SpanList* body, Importance importance) {
    if (!socket_) {
        return false;
    }
    const std::size_t size =
        sizeof(Prefix) + head.size() + (body != nullptr ? body->bytes() : 0) + 2 * kTagSize;
    if (blocked_) {
        const bool control = importance == Importance::Control;
        if (queued() + size > (control ? kMaxQueuedControl : kMaxQueued)) {
            if (control) {
                end(LinkEnd::Congested);
            }
            return false;
        }
    }
    counters_.frames_sent.add();
    counters_.bytes_sent.add(size - 2 * kTagSize);
    if (!blocked_ && !sent_seal_ && body != nullptr && size > kSmallFrame) {
        write_large(type, head, *body);
        return true;
    }
    append(type, head, body);
    if (blocked_) {
        return true;
    }
    if (queued() >= kBatch) {
        flush();
    } else if (!is_dirty_) {
        is_dirty_ = true;
        pool_.dirty.push_back(this);
    }
    return true;
}

void TcpLink::append(FrameType type, Bytes head, const mem::SpanList* body) {
    const Prefix prefix = prefix_of(type, head, body);
    const std::size_t start = out_.size();
    put(out_, bytes_of(prefix));
    put(out_, head);
    if (sent_seal_) {
        const Tag tag = sent_seal_->head(Bytes(out_).subspan(start));
        put(out_, tag);
    }
    if (body == nullptr || body->bytes() == 0) {
        return;
    }
    const std::size_t at = out_.size();
    for (const mem::SpanList::Piece& piece : *body) {
        put(out_, {piece.data, piece.size});
    }
    if (sent_seal_) {
        // Of the copy: a guest may go on writing to its buffer, which is its right.
        const Tag tag = sent_seal_->body(Bytes(out_).subspan(at));
        put(out_, tag);
    }
}

void TcpLink::write_large(FrameType type, Bytes head, const mem::SpanList& body) {
    Prefix prefix = prefix_of(type, head, &body);
    const std::size_t waiting = queued();
    std::array<iovec, kMaxVectors + 1> vectors;
    std::size_t count = 0;
    const auto add = [&](const std::byte* data, std::size_t size) {
        // writev only reads.
        vectors[count++] = {const_cast<std::byte*>(data), size};  // NOLINT
    };
    if (waiting != 0) {
        add(out_.data() + out_sent_, waiting);
    }
    const Bytes prefix_bytes = bytes_of(prefix);
    add(prefix_bytes.data(), prefix_bytes.size());
    add(head.data(), head.size());
    for (const mem::SpanList::Piece& piece : body) {
        add(piece.data, piece.size);
    }
    msghdr message{};
    message.msg_iov = vectors.data();
    message.msg_iovlen = count;
    ssize_t written = 0;
    do {
        written = ::sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (written < 0 && errno == EINTR);
    if (written < 0 && errno != EAGAIN) {
        end(LinkEnd::Broken);
        return;
    }
    auto taken = static_cast<std::size_t>(std::max<ssize_t>(written, 0));
    const std::size_t whole = waiting + prefix_bytes.size() + head.size() + body.bytes();
    if (taken == whole) {
        out_.clear();
        out_sent_ = 0;
        look_for_room();
        return;
    }
    // The rest is copied, so that nothing here refers to guest memory when this returns.
    std::vector<std::byte> rest;
    rest.reserve(whole - taken);
    for (std::size_t i = 0; i < count; ++i) {
        const Bytes part(static_cast<const std::byte*>(vectors[i].iov_base), vectors[i].iov_len);
        const std::size_t skipped = std::min(taken, part.size());
        put(rest, part.subspan(skipped));
        taken -= skipped;
    }
    out_ = std::move(rest);
    out_sent_ = 0;
    block();
}

void TcpLink::flush() {
    if (is_dirty_) {
        std::erase(pool_.dirty, this);
        is_dirty_ = false;
    }
    if (blocked_ || !socket_ || queued() == 0) {
        return;
    }
    const std::size_t size = queued();
    while (queued() != 0) {
        const ssize_t written =
            ::send(socket_.get(), out_.data() + out_sent_, queued(), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (written >= 0) {
            out_sent_ += static_cast<std::size_t>(written);
        } else if (errno == EAGAIN) {
            block();
            return;
        } else if (errno != EINTR) {
            end(LinkEnd::Broken);
            return;
        }
    }
    out_.clear();
    out_sent_ = 0;
    if (size >= kBatch) {
        look_for_room();
    }
}

void TcpLink::look_for_room() {
    int waiting = 0;
    if (::ioctl(socket_.get(), SIOCOUTQNSD, &waiting) == 0 && waiting >= kNotSent / 2) {
        block();
    }
}

void TcpLink::block() {
    blocked_ = true;
    counters_.blocked.add();
    set_events();
}

}  // namespace ernic::mesh
