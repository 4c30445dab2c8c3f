// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/event_loop.hpp"
#include "base/fd.hpp"
#include "base/log.hpp"
#include "base/result.hpp"
#include "net/capture.hpp"
#include "net/observer.hpp"

namespace ernic::app {

/// Puts the one capture of a server on the segment and takes it off: at the start (--pcap), when an operator
/// wants it, and when its file fails. Thread: device. Owns: the watch of the capture's thread.
class CaptureControl {
  public:
    /// All references must outlive this.
    CaptureControl(EventLoop& loop, net::Capture& capture, log::Logger log);
    ~CaptureControl();
    CaptureControl(const CaptureControl&) = delete;
    CaptureControl& operator=(const CaptureControl&) = delete;

    /// How the segment is told who watches (null: nobody). Connects a capture that runs already.
    void connect(std::function<void(net::Observer* observer)> observe);

    /// Fails: Busy when a capture runs or the last one is still being written; else as Capture::start().
    [[nodiscard]] Status start(UniqueFd fd, const std::string& name, std::uint32_t snaplen);

    /// How a capture that was stopped has ended, once all of it is in its file.
    using Ended = std::function<void(const net::Capture::Counts& counts, const Status& outcome)>;
    /// Fails: InvalidArgument when none runs; `ended` is not called then.
    [[nodiscard]] Status stop(Ended ended);

    /// For the end of the program: nothing observes any more, and everything is written. Fails: with one
    /// sentence when the capture that ran at connect() could not be written; others are their operators'.
    [[nodiscard]] Status finish();

    [[nodiscard]] const net::Capture& capture() const { return capture_; }

  private:
    void on_event();
    /// Tells of the end of a capture, once.
    void settle();
    void detach();

    EventLoop& loop_;
    net::Capture& capture_;
    log::Logger log_;
    std::function<void(net::Observer* observer)> observe_;
    Ended ended_;
    /// The end of a capture that began has not been told.
    bool unsettled_ = false;
    /// The capture that ran at connect() has not ended; how it did.
    bool of_command_line_ = false;
    Status first_ = Done{};
};

}  // namespace ernic::app
