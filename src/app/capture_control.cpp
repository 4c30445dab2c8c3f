// SPDX-License-Identifier: MIT
#include "app/capture_control.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <utility>

namespace ernic::app {

using net::Capture;

CaptureControl::CaptureControl(EventLoop& loop, Capture& capture, log::Logger log)
    : loop_(loop), capture_(capture), log_(std::move(log)) {
    loop_.add(capture_.event_fd(), EPOLLIN, [this](std::uint32_t) { on_event(); });
}

CaptureControl::~CaptureControl() {
    loop_.remove(capture_.event_fd());
}

void CaptureControl::connect(std::function<void(net::Observer* observer)> observe) {
    observe_ = std::move(observe);
    of_command_line_ = unsettled_ = capture_.state() == Capture::State::Running;
    observe_(of_command_line_ ? &capture_ : nullptr);
}

Status CaptureControl::start(UniqueFd fd, const std::string& name, std::uint32_t snaplen) {
    settle();  // the thread may be done before the loop has heard of it
    if (capture_.state() == Capture::State::Running) {
        return Error{Errc::Busy, fmt::format("a capture to '{}' is running: stop it first", capture_.name())};
    }
    if (capture_.state() == Capture::State::Ending) {
        return Error{Errc::Busy, fmt::format("the capture to '{}' is still being written", capture_.name())};
    }
    Status started = capture_.start(std::move(fd), name, snaplen);
    if (started) {
        unsettled_ = true;
        log_.info("capture to '{}' begins", name);
        observe_(&capture_);
    }
    return started;
}

Status CaptureControl::stop(Ended ended) {
    if (capture_.state() != Capture::State::Running) {
        return Error{Errc::InvalidArgument, "no capture is running"};
    }
    detach();
    ended_ = std::move(ended);
    capture_.stop();
    return Done{};
}

void CaptureControl::detach() {
    if (observe_) {
        observe_(nullptr);
    }
}

void CaptureControl::on_event() {
    eventfd_t ignored = 0;
    (void)::eventfd_read(capture_.event_fd(), &ignored);
    if (capture_.state() == Capture::State::Running && capture_.error() != 0) {
        // The operator's doing, or the disk's; either way there is nothing to be written to.
        detach();
        capture_.stop();
    }
    settle();
}

void CaptureControl::settle() {
    if (!unsettled_ || capture_.state() != Capture::State::Idle) {
        return;
    }
    unsettled_ = false;
    const Status outcome = capture_.outcome();
    const Capture::Counts counts = capture_.counts();
    if (capture_.error() == EPIPE) {
        log_.info("capture to '{}' ends: nobody reads it any more", capture_.name());
    } else if (!outcome) {
        log_.error("{}; the capture ends here", outcome.error().message);
    } else {
        log_.info("capture to '{}' ends: packets={} dropped={}", capture_.name(), counts.packets,
                  counts.dropped);
    }
    if (const Ended ended = std::exchange(ended_, nullptr)) {
        ended(counts, outcome);
    }
    if (std::exchange(of_command_line_, false)) {
        first_ = outcome;
    }
}

Status CaptureControl::finish() {
    detach();
    const Status outcome = capture_.finish();
    return of_command_line_ ? outcome : first_;
}

}  // namespace ernic::app
