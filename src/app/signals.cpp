// SPDX-License-Identifier: MIT
#include "app/signals.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace ernic::app {

Result<Signals> Signals::watch(EventLoop& loop, std::function<void(int signal)> handler) {
    std::signal(SIGPIPE, SIG_IGN);
    // A file that reaches its limit (ulimit -f) is a write error like any other.
    std::signal(SIGXFSZ, SIG_IGN);
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGHUP);
    if (sigprocmask(SIG_BLOCK, &ends, nullptr) != 0) {
        return Error{Errc::Io, fmt::format("cannot block signals: {}", std::strerror(errno))};
    }
    UniqueFd fd(signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!fd) {
        return Error{Errc::Io, fmt::format("cannot create a signalfd: {}", std::strerror(errno))};
    }
    loop.add(fd.get(), EPOLLIN, [number = fd.get(), handler = std::move(handler)](std::uint32_t) {
        signalfd_siginfo info{};
        while (::read(number, &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
            handler(static_cast<int>(info.ssi_signo));
        }
    });
    return Signals(loop, std::move(fd));
}

Signals::~Signals() {
    if (fd_) {
        loop_->remove(fd_.get());
    }
}

}  // namespace ernic::app
