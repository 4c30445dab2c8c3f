// SPDX-License-Identifier: MIT
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "mesh/tcp_link.hpp"

namespace ernic::mesh {
namespace {

/// Small frames in a row after which more is read ahead.
constexpr int kSmallRun = 8;

std::size_t readable(int fd) {
    int size = 0;
    return ::ioctl(fd, FIONREAD, &size) == 0 && size > 0 ? static_cast<std::size_t>(size) : 0;
}

/// What `have` bytes at the front of `to` leave of it, for readv.
std::size_t vectors_behind(const mem::SpanList& to, std::size_t skip,
                           std::array<iovec, mem::SpanList::kCapacity>& out) {
    std::size_t count = 0;
    for (const mem::SpanList::Piece& piece : to) {
        const std::size_t skipped = std::min(skip, piece.size);
        skip -= skipped;
        if (skipped != piece.size) {
            out[count++] = {piece.data + skipped, piece.size - skipped};
        }
    }
    return count;
}

}  // namespace

/// The body of the frame at the front: a part is in the buffer, the rest in the socket, all of it is there.
class TcpLink::Body final : public net::PayloadStream {
  public:
    Body(TcpLink& link, Bytes in_buffer, std::size_t size)
        : link_(link), in_buffer_(in_buffer), size_(size) {}

    bool read(const mem::SpanList& to) override {
        if (used_ || to.bytes() > size_) {
            return false;
        }
        used_ = true;
        mem::SpanList front;
        // The target is written only.
        front.add(const_cast<std::byte*>(in_buffer_.data()), in_buffer_.size());  // NOLINT
        done_ = mem::copy(to, front);
        while (done_ != to.bytes()) {
            std::array<iovec, mem::SpanList::kCapacity> vectors;
            msghdr message{};
            message.msg_iov = vectors.data();
            message.msg_iovlen = vectors_behind(to, done_, vectors);
            const ssize_t got = ::recvmsg(link_.socket_.get(), &message, MSG_DONTWAIT);
            if (got <= 0 && !(got < 0 && errno == EINTR)) {
                failed_ = true;
                return false;
            }
            done_ += static_cast<std::size_t>(std::max<ssize_t>(got, 0));
        }
        return true;
    }

    [[nodiscard]] std::size_t done() const { return done_; }
    [[nodiscard]] bool failed() const { return failed_; }

  private:
    TcpLink& link_;
    Bytes in_buffer_;
    std::size_t size_;
    std::size_t done_ = 0;
    bool used_ = false;
    bool failed_ = false;
};

bool TcpLink::receive() {
    if (!socket_ || receiving_) {
        return false;
    }
    receiving_ = true;
    take_buffer();
    const std::uint64_t bytes = counters_.bytes_received.value();
    const Nanoseconds begin = loop_.clock().now();
    bool any = false;
    bool emptied = false;
    while (true) {
        // Everything in the buffer is handled before the socket is left alone: nothing else would wake us.
        while (handle_one()) {
            any = true;
        }
        const bool enough = counters_.bytes_received.value() - bytes > kBytesPerRound ||
                            loop_.clock().now() - begin > kLongestRound;
        // After less than was asked for the socket is empty, and tells when it is not any more.
        if (!socket_ || waiting_ || (any && enough) || emptied || read_ahead(read_size_) != Read::Some) {
            break;
        }
        emptied = read_short_;
    }
    receiving_ = false;
    if (in_size_ == 0) {
        give_buffer_back();
    }
    return any;
}

void TcpLink::take_buffer() {
    if (!in_.empty()) {
        return;
    }
    if (pool_.buffers.empty()) {
        in_.resize(kReadAhead + kMaxHead);
        return;
    }
    in_ = std::move(pool_.buffers.back());
    pool_.buffers.pop_back();
}

void TcpLink::give_buffer_back() {
    if (pool_.buffers.size() < kSpareBuffers) {
        pool_.buffers.push_back(std::move(in_));
    }
    in_ = {};
}

TcpLink::Read TcpLink::read_ahead(std::size_t wanted) {
    if (in_first_ + in_size_ + wanted > in_.size()) {
        std::memmove(in_.data(), in_.data() + in_first_, in_size_);
        in_first_ = 0;
    }
    wanted = std::min(wanted, in_.size() - in_size_);
    const ssize_t got = ::recv(socket_.get(), in_.data() + in_first_ + in_size_, wanted, MSG_DONTWAIT);
    if (got > 0) {
        in_size_ += static_cast<std::size_t>(got);
        read_short_ = static_cast<std::size_t>(got) < wanted;
        return Read::Some;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return Read::Nothing;
    }
    end(got == 0 ? LinkEnd::Closed : LinkEnd::Broken);
    return Read::Ended;
}

bool TcpLink::handle_one() {
    if (!socket_) {
        return false;
    }
    const auto prefix = read_value<Prefix>(buffered());
    if (!prefix) {
        return false;
    }
    if (!size_allowed(*prefix)) {
        end(LinkEnd::Protocol);
        return false;
    }
    const std::size_t tag = received_seal_ ? kTagSize : 0;
    const std::size_t body = prefix->body_size.get();
    const Place place{.prefix = *prefix,
                      .head_size = sizeof(Prefix) + prefix->head_size.get() + tag,
                      .body_size = body,
                      .whole_body = body + (body != 0 ? tag : 0)};
    if (in_size_ < place.head_size) {
        return false;
    }
    if (!head_open_ && !open_head(place)) {
        end(LinkEnd::Forged);
        return false;
    }
    head_open_ = true;
    const std::size_t whole = place.head_size + place.whole_body;
    if (whole > kReadAhead) {
        return handle_large(place);
    }
    if (in_size_ < whole) {
        return false;
    }
    if (++small_run_ == kSmallRun) {
        read_size_ = kReadAhead;
    }
    const MutableBytes data = MutableBytes(in_).subspan(in_first_ + place.head_size, place.body_size);
    if (received_seal_ && body != 0 &&
        !same(received_seal_->body(data), buffered().subspan(place.head_size + body, kTagSize))) {
        end(LinkEnd::Forged);
        return false;
    }
    mem::SpanList list;
    list.add(data.data(), data.size());
    const bool goes_on = hand_over(place, &list, nullptr);
    consume(whole);
    return goes_on;
}

bool TcpLink::open_head(const Place& place) {
    if (!received_seal_) {
        return true;
    }
    const std::size_t size = place.head_size - kTagSize;
    return same(received_seal_->head(buffered().first(size)), buffered().subspan(size, kTagSize));
}

bool TcpLink::handle_large(const Place& place) {
    waiting_ = true;
    read_size_ = kReadAheadLarge;
    small_run_ = 0;
    const bool may_stream =
        !received_seal_ && place.prefix.type == static_cast<std::uint8_t>(FrameType::Message);
    if (staging_ || !may_stream || !user_->takes_streams()) {
        return stage(place);
    }
    const std::size_t here = std::min(in_size_ - place.head_size, place.body_size);
    const std::size_t missing = place.body_size - here;
    if (readable(socket_.get()) < missing) {
        if (woken_ && low_water_ == missing) {
            return stage(place);  // the kernel says that it can hold no more
        }
        wait_for(missing);
        return false;
    }
    wait_for(1);
    Body body(*this, buffered().subspan(place.head_size, here), place.body_size);
    counters_.streamed.add();
    const bool goes_on = hand_over(place, nullptr, &body);
    if (body.failed()) {
        end(LinkEnd::Broken);
        return false;
    }
    const std::size_t from_buffer = std::min(body.done(), here);
    consume(place.head_size + from_buffer);
    return skip(place.body_size - body.done()) && goes_on;
}

bool TcpLink::stage(const Place& place) {
    if (!staging_) {
        staging_ = true;
        counters_.staged.add();
        staged_.resize(place.whole_body);
        staged_size_ = std::min(in_size_ - place.head_size, place.whole_body);
        std::memcpy(staged_.data(), buffered().data() + place.head_size, staged_size_);
        // The head stays where it is; the part of the body behind it has been taken.
        const std::size_t behind = in_size_ - place.head_size - staged_size_;
        std::memmove(in_.data() + in_first_ + place.head_size,
                     in_.data() + in_first_ + place.head_size + staged_size_, behind);
        in_size_ -= staged_size_;
    }
    while (staged_size_ != place.whole_body) {
        const ssize_t got = ::recv(socket_.get(), staged_.data() + staged_size_,
                                   place.whole_body - staged_size_, MSG_DONTWAIT);
        if (got > 0) {
            staged_size_ += static_cast<std::size_t>(got);
        } else if (got < 0 && errno == EAGAIN) {
            wait_for(place.whole_body - staged_size_);
            return false;
        } else if (got == 0 || errno != EINTR) {
            end(got == 0 ? LinkEnd::Closed : LinkEnd::Broken);
            return false;
        }
    }
    wait_for(1);
    staging_ = false;
    const MutableBytes data = MutableBytes(staged_).first(place.body_size);
    if (received_seal_ && !same(received_seal_->body(data), Bytes(staged_).subspan(place.body_size))) {
        end(LinkEnd::Forged);
        return false;
    }
    mem::SpanList list;
    list.add(data.data(), data.size());
    const bool goes_on = hand_over(place, &list, nullptr);
    consume(place.head_size);
    return goes_on;
}

bool TcpLink::hand_over(const Place& place, const mem::SpanList* body, net::PayloadStream* stream) {
    waiting_ = false;
    head_open_ = false;
    counters_.frames_received.add();
    counters_.bytes_received.add(place.head_size + place.whole_body);
    const bool good =
        user_->on_incoming({.type = static_cast<FrameType>(place.prefix.type),
                            .head = buffered().subspan(sizeof(Prefix), place.prefix.head_size.get()),
                            .body_size = place.body_size,
                            .body = body,
                            .stream = stream});
    if (!good) {
        end(LinkEnd::Protocol);
    }
    return socket_.valid();
}

void TcpLink::consume(std::size_t size) {
    in_first_ += size;
    in_size_ -= size;
    if (in_size_ == 0) {
        in_first_ = 0;
    }
}

bool TcpLink::skip(std::size_t size) {
    const std::size_t in_buffer = std::min(size, in_size_);
    consume(in_buffer);
    size -= in_buffer;
    while (size != 0 && socket_) {
        // With MSG_TRUNC TCP throws bytes away without copying them (tcp(7)).
        const ssize_t got = ::recv(socket_.get(), nullptr, size, MSG_TRUNC | MSG_DONTWAIT);
        if (got <= 0 && !(got < 0 && errno == EINTR)) {
            end(LinkEnd::Broken);
            return false;
        }
        size -= static_cast<std::size_t>(std::max<ssize_t>(got, 0));
    }
    return true;
}

void TcpLink::wait_for(std::size_t bytes) {
    if (bytes != low_water_) {
        const int value = static_cast<int>(bytes);
        (void)::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVLOWAT, &value, sizeof value);
        low_water_ = bytes;
    }
}

}  // namespace ernic::mesh
