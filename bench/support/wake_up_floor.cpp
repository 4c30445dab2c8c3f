// SPDX-License-Identifier: MIT
#include "support/wake_up_floor.hpp"

#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <new>

#include "guest_sim/error.hpp"
#include "guest_sim/wait.hpp"
#include "support/cpu.hpp"
#include "support/samples.hpp"

namespace ernic::bench {
namespace {

/// vfio-user header, region access, 8 bytes.
constexpr std::array<std::size_t, 3> kParts = {16, 16, 8};
constexpr std::size_t kDoorbellMessage = 16 + 16 + 8;
/// Descriptors a vfio-user message may carry.
constexpr std::size_t kFdRoom = CMSG_SPACE(16 * sizeof(int));

ssize_t receive(int socket, std::array<char, 4096>& buffer) {
    alignas(cmsghdr) std::array<char, kFdRoom> control;
    iovec room{buffer.data(), buffer.size()};
    msghdr message{};
    message.msg_iov = &room;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    return ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
}

}  // namespace

WakeUpFloor::WakeUpFloor() {
    void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        guest_sim::throw_errno("mmap");
    }
    shared_ = new (memory) Shared{};
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) != 0) {
        guest_sim::throw_errno("socketpair");
    }
    socket_.reset(ends[0]);
    child_ = ::fork();
    if (child_ == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        const OnCpu where(server_cpu());
        serve(ends[1], *shared_);
    }
    ::close(ends[1]);
    // Not before it has moved to its CPU: with real-time priority it could not move while we spin on this
    // one.
    guest_sim::wait_until([this] { return shared_->ready.load(); });
}

WakeUpFloor::~WakeUpFloor() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    ::munmap(shared_, sizeof(Shared));
}

void WakeUpFloor::serve(int socket, Shared& shared) {
    const int epoll = ::epoll_create1(0);
    epoll_event wanted{};
    wanted.events = EPOLLIN;
    ::epoll_ctl(epoll, EPOLL_CTL_ADD, socket, &wanted);
    std::array<char, 4096> buffer{};
    shared.ready.store(true);
    std::uint64_t number = 0;
    for (;;) {
        if (!shared.spinning.load(std::memory_order_relaxed)) {
            std::array<epoll_event, 16> events{};
            ::epoll_wait(epoll, events.data(), events.size(), -1);
        }
        const bool exchanging = shared.exchanging.load(std::memory_order_relaxed);
        const ssize_t size =
            exchanging ? receive(socket, buffer) : ::recv(socket, buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (size == 0) {
            ::_exit(0);
        }
        if (size == static_cast<ssize_t>(kDoorbellMessage) && exchanging) {
            const Request request = shared.requests[number % kSlots];
            std::memcpy(&shared.data[1], &shared.data[0], sizeof(Request));
            Completion& completion = shared.completions[number % kSlots];
            completion.words = {request.words[0], request.words[1], request.words[7]};
            completion.number.store(++number, std::memory_order_release);
        } else if (size == static_cast<ssize_t>(kDoorbellMessage)) {
            shared.received.store(shared.received.load(std::memory_order_relaxed) + 1,
                                  std::memory_order_release);
        }
    }
}

double WakeUpFloor::round_trip() {
    const std::array<char, kDoorbellMessage> message{};
    ++sent_;
    const auto begin = Clock::now();
    ::send(socket_.get(), message.data(), message.size(), MSG_NOSIGNAL);
    while (shared_->received.load(std::memory_order_acquire) != sent_) {
    }
    return seconds_since(begin);
}

double WakeUpFloor::exchange() {
    std::array<char, kDoorbellMessage> bytes{};
    std::array<iovec, kParts.size()> parts{};
    char* next = bytes.data();
    for (std::size_t i = 0; i < parts.size(); ++i) {
        parts[i] = {next, kParts[i]};
        next += kParts[i];
    }
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    const std::size_t slot = exchanged_ % kSlots;
    shared_->requests[slot].words.fill(exchanged_);
    ++exchanged_;
    const auto begin = Clock::now();
    ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
    while (shared_->completions[slot].number.load(std::memory_order_acquire) != exchanged_) {
    }
    return seconds_since(begin);
}

void WakeUpFloor::set_exchanging(bool exchanging) {
    shared_->exchanging.store(exchanging);
}

void WakeUpFloor::set_spinning(bool spinning) {
    shared_->spinning.store(spinning);
    // Wakes a sleeper so that it notices.
    round_trip();
}

}  // namespace ernic::bench
