// SPDX-License-Identifier: MIT
#include "mesh/introduction.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cstring>
#include <utility>

namespace ernic::mesh {

Introduction::Introduction(UniqueFd socket, const Endpoint& remote, const Hello& own,
                           const Surroundings& around, IntroductionOwner& owner,
                           std::optional<NodeId> expected, bool dialed)
    : around_(around),
      owner_(owner),
      dialed_(dialed),
      expected_(expected),
      remote_(remote),
      deadline_(around.loop, [this] { on_deadline(); }) {
    Hello hello = own;
    fill_random(std::as_writable_bytes(std::span(hello.nonce)));
    own_hello_ = encode(hello);
    enter(dialed ? State::Connecting : State::Greeting);
    if (dialed) {
        connecting_ = std::move(socket);
        around.loop.add(connecting_.get(), EPOLLOUT, [this](std::uint32_t) { on_connected(); });
    } else {
        begin(std::move(socket));
    }
}

Introduction::~Introduction() {
    abandon();
}

std::unique_ptr<Introduction> Introduction::dial(UniqueFd socket, const Endpoint& to, const Hello& own,
                                                 const Surroundings& around, IntroductionOwner& owner,
                                                 std::optional<NodeId> expected) {
    return std::unique_ptr<Introduction>(
        new Introduction(std::move(socket), to, own, around, owner, expected, true));
}

std::unique_ptr<Introduction> Introduction::accept(UniqueFd socket, const Endpoint& from, const Hello& own,
                                                   const Surroundings& around, IntroductionOwner& owner) {
    return std::unique_ptr<Introduction>(
        new Introduction(std::move(socket), from, own, around, owner, std::nullopt, false));
}

void Introduction::abandon() {
    over_ = true;
    deadline_.cancel();
    if (connecting_) {
        around_.loop.remove(connecting_.get());
        connecting_.reset();
    }
    if (link_) {
        link_->close();
    }
}

void Introduction::enter(State state) {
    state_ = state;
    deadline_.arm(around_.loop.clock().now() + kIntroduction);
}

void Introduction::look() {
    if (link_) {
        (void)link_->receive();
        return;
    }
    pollfd connecting{.fd = connecting_.get(), .events = POLLOUT, .revents = 0};
    if (::poll(&connecting, 1, 0) > 0) {
        on_connected();
    }
}

void Introduction::on_deadline() {
    // On a busy host the timer may have its turn before a socket in which the answer has waited for long.
    const State before = state_;
    look();
    if (over_ || state_ != before) {
        return;
    }
    // Who comes so late to its own deadline has not given the other side the time it promised.
    const Nanoseconds now = around_.loop.clock().now();
    if (now - deadline_.deadline() > kIntroduction) {
        deadline_.arm(now + kIntroduction);
        return;
    }
    const bool reached = state_ != State::Connecting;
    around_.counters.silent.add(reached ? 1 : 0);
    fail(reached ? "it did not say who it is in time" : "");
}

void Introduction::on_connected() {
    int problem = 0;
    socklen_t size = sizeof problem;
    if (::getsockopt(connecting_.get(), SOL_SOCKET, SO_ERROR, &problem, &size) != 0 || problem != 0) {
        fail("");
        return;
    }
    around_.loop.remove(connecting_.get());
    enter(State::Greeting);
    begin(std::move(connecting_));
    send(FrameType::Hello, own_hello_);
}

void Introduction::begin(UniqueFd socket) {
    tune_connection(socket.get(), around_.config.dead_after_ms());
    link_ = std::make_unique<TcpLink>(std::move(socket), around_.loop, *this, around_.counters, around_.pool);
}

bool Introduction::send(FrameType type, Bytes head) {
    link_->send(type, head, nullptr, Importance::Control);
    link_->flush();
    return !over_;
}

bool Introduction::on_incoming(const Incoming& incoming) {
    switch (incoming.type) {
        case FrameType::Hello:
            return state_ == State::Greeting && on_hello(incoming.head);
        case FrameType::Proof:
            return state_ == State::Proving && on_proof(incoming.head);
        default:
            return false;
    }
}

bool Introduction::on_hello(Bytes head) {
    HelloFault fault = HelloFault::None;
    hello_ = decode_hello(head, fault);
    if (!hello_) {
        if (fault == HelloFault::Version) {
            around_.counters.wrong_version.add();
            fail("it speaks another version of the protocol");
            return true;
        }
        return false;
    }
    const bool keyed = around_.config.key.has_value();
    if (hello_->has(kCapabilityKey) != keyed) {
        around_.counters.wrong_key.add();
        fail(keyed ? "it has no key" : "it wants a key, and there is none here");
        return true;
    }
    if (keyed) {
        keys_ = dialed_ ? derive(*around_.config.key, own_hello_, head)
                        : derive(*around_.config.key, head, own_hello_);
    }
    enter(State::Proving);
    if (!dialed_ && !send(FrameType::Hello, own_hello_)) {
        return true;
    }
    if (!keyed) {
        done();
    } else if (dialed_) {
        send_proof();
    }
    return true;
}

void Introduction::send_proof() {
    if (send(FrameType::Proof, dialed_ ? keys_->dialer_proof : keys_->acceptor_proof)) {
        link_->seal_sent(dialed_ ? keys_->from_dialer : keys_->from_acceptor);
    }
}

bool Introduction::on_proof(Bytes head) {
    if (!same(head, dialed_ ? keys_->acceptor_proof : keys_->dialer_proof)) {
        around_.counters.wrong_key.add();
        fail("it has another key");
        return true;
    }
    link_->seal_received(dialed_ ? keys_->from_acceptor : keys_->from_dialer);
    if (!dialed_) {
        send_proof();
    }
    if (!over_) {
        done();
    }
    return true;
}

void Introduction::done() {
    over_ = true;
    deadline_.cancel();
    owner_.introduced(*this);
}

void Introduction::on_end(LinkEnd why) {
    switch (why) {
        case LinkEnd::Protocol:
            around_.counters.protocol_errors.add();
            fail("what it says makes no sense");
            break;
        case LinkEnd::Closed:
        case LinkEnd::Broken:
            // Of one that was reached: it does not want us, and knows why.
            fail(dialed_ ? "it closed the connection" : "");
            break;
        case LinkEnd::Forged:
        case LinkEnd::Congested:
            fail("");
            break;
    }
}

void Introduction::fail(const std::string& why) {
    if (!over_) {
        abandon();
        owner_.not_introduced(*this, why);
    }
}

}  // namespace ernic::mesh
