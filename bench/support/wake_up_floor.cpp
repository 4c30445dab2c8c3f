// SPDX-License-Identifier: MIT
#include "support/wake_up_floor.hpp"

#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <new>

#include "guest_sim/error.hpp"
#include "guest_sim/wait.hpp"
#include "support/cpu.hpp"
#include "support/samples.hpp"

namespace ernic::bench {
namespace {

/// vfio-user header, region access, 8 bytes.
constexpr std::size_t kDoorbellMessage = 16 + 16 + 8;

}  // namespace

WakeUpFloor::WakeUpFloor() {
    void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        guest_sim::throw_errno("mmap");
    }
    shared_ = new (memory) Shared{0, false, false};
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
    for (;;) {
        if (!shared.spinning.load(std::memory_order_relaxed)) {
            std::array<epoll_event, 16> events{};
            ::epoll_wait(epoll, events.data(), events.size(), -1);
        }
        const ssize_t size = ::recv(socket, buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (size == 0) {
            ::_exit(0);
        }
        if (size == static_cast<ssize_t>(kDoorbellMessage)) {
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

void WakeUpFloor::set_spinning(bool spinning) {
    shared_->spinning.store(spinning);
    // Wakes a sleeper so that it notices.
    round_trip();
}

}  // namespace ernic::bench
