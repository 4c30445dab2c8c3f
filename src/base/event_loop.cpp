// SPDX-License-Identifier: MIT
#include "base/event_loop.hpp"

#include <sys/epoll.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <string>

namespace ernic {

namespace {

constexpr Nanoseconds kLongestSpin = 1'000'000;
/// How long work that never ends may keep the loop from its descriptors and timers, give or take one step.
constexpr Nanoseconds kLongestWork = 100'000;
constexpr int kStepsPerRound = 64;
/// Timers of one round: each may fail a queue pair, which takes a microsecond or two, and thousands may be
/// due at once.
constexpr int kTimersPerRound = 64;

}  // namespace

void Timer::arm(Nanoseconds deadline) {
    cancel();
    deadline_ = deadline;
    place_ = loop_.timers_.emplace(deadline, this);
    armed_ = true;
}

void Timer::cancel() {
    if (armed_) {
        loop_.timers_.erase(place_);
        armed_ = false;
    }
}

EventLoop::EventLoop(const Clock& clock) : clock_(clock), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
}
EventLoop::~EventLoop() = default;

Status EventLoop::usable() const {
    if (!epoll_) {
        return Error{Errc::Io, "cannot make an epoll descriptor"};
    }
    epoll_event event{};
    const timespec at_once{0, 0};
    if (epoll_pwait2(epoll_.get(), &event, 1, &at_once, nullptr) >= 0) {
        return Done{};
    }
    if (errno == ENOSYS) {
        return Error{Errc::Unsupported,
                     "this kernel lacks the system call epoll_pwait2: Linux 5.11 or newer is needed"};
    }
    return Error{Errc::Io, std::string("cannot wait for events: ") + std::strerror(errno)};
}

void EventLoop::add(int fd, std::uint32_t events, FdHandler handler) {
    handlers_[fd] = std::make_shared<FdHandler>(std::move(handler));
    epoll_event event{};
    event.events = events;
    event.data.fd = fd;
    epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
}

void EventLoop::modify(int fd, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.fd = fd;
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void EventLoop::remove(int fd) {
    handlers_.erase(fd);
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

std::int64_t EventLoop::wait_time() const {
    if (work_left_ || stopped_) {
        return 0;
    }
    if (timers_.empty()) {
        return -1;
    }
    const Nanoseconds deadline = timers_.begin()->first;
    const Nanoseconds now = clock_.now();
    return deadline <= now ? 0 : static_cast<std::int64_t>(deadline - now);
}

int EventLoop::wait(std::int64_t nanoseconds) {
    std::array<epoll_event, 16> events;
    int count = 0;
    if (nanoseconds < 0) {
        count = epoll_pwait2(epoll_.get(), events.data(), events.size(), nullptr, nullptr);
    } else {
        const timespec timeout{nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
        count = epoll_pwait2(epoll_.get(), events.data(), events.size(), &timeout, nullptr);
    }
    for (int i = 0; i < count; ++i) {
        const epoll_event& event = events[static_cast<std::size_t>(i)];
        // A handler may remove itself or others: look it up freshly and keep it alive while it runs.
        const auto found = handlers_.find(event.data.fd);
        if (found != handlers_.end()) {
            const std::shared_ptr<FdHandler> handler = found->second;
            (*handler)(event.events);
        }
    }
    return count;
}

void EventLoop::run_timers() {
    if (timers_.empty()) {
        return;
    }
    const Nanoseconds now = clock_.now();
    // Those beyond the limit have not become less due: the next round does not sleep.
    for (int left = kTimersPerRound; left != 0 && !timers_.empty() && timers_.begin()->first <= now; --left) {
        Timer& timer = *timers_.begin()->second;
        timer.cancel();
        timer.handler_();
    }
}

bool EventLoop::work() {
    if (!worker_ || !worker_()) {
        return false;
    }
    // A look at the descriptors is a system call, which costs as much as copying tens of kilobytes.
    const Nanoseconds begin = clock_.now();
    for (int left = kStepsPerRound; left != 0; --left) {
        if (!worker_()) {
            return false;
        }
        if (clock_.now() - begin >= kLongestWork) {
            break;
        }
    }
    return true;
}

void EventLoop::spin() {
    const Nanoseconds begin = clock_.now();
    while (!stopped_) {
        const bool progress = poller_();
        // Without progress there is nothing new for the worker, and each round is latency for the next
        // message.
        work_left_ = progress && work();
        const Nanoseconds now = clock_.now();
        if (progress) {
            last_progress_ = now;
        }
        window_open_ = now - last_progress_ <= busy_poll_;
        const bool timer_due = !timers_.empty() && timers_.begin()->first <= now;
        // However busy the polled descriptor is, the others get their turn within a millisecond.
        if (work_left_ || !window_open_ || timer_due || now - begin > kLongestSpin) {
            return;
        }
    }
}

void EventLoop::run_once(bool may_block) {
    const int events = wait(may_block && !window_open_ ? wait_time() : 0);
    run_timers();
    work_left_ = work();
    if (events > 0 && busy_poll_ != 0 && poller_) {
        window_open_ = true;
        last_progress_ = clock_.now();
    }
    if (window_open_ && !work_left_ && may_block) {
        spin();
    }
}

void EventLoop::run() {
    stopped_ = false;
    while (!stopped_) {
        run_once(true);
    }
}

}  // namespace ernic
