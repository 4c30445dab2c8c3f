// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <string>

#include "base/event_loop.hpp"
#include "base/fd.hpp"
#include "base/log.hpp"
#include "base/result.hpp"
#include "base/socket_path.hpp"

namespace ernic {

/// A UNIX socket on an EventLoop that accepts whoever comes. Owns: the socket and its name in the file
/// system. Thread: the loop's.
class Listener {
  public:
    /// `on_client` gets each connection, non-blocking. `loop` must outlive the listener.
    Listener(EventLoop& loop, log::Logger logger, std::function<void(UniqueFd socket)> on_client);
    ~Listener() { close(); }
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

    /// Fails: as SocketPath::listen().
    [[nodiscard]] Status listen(const SocketOptions& options);
    /// Removes the socket. Nothing happens when not listening.
    void close();
    [[nodiscard]] bool listening() const { return socket_.fd() >= 0; }

  private:
    void accept_all();

    /// Pause after accept() failed for want of file descriptors or memory.
    static constexpr Nanoseconds kPause = 100'000'000;

    EventLoop& loop_;
    log::Logger logger_;
    log::Limiter limiter_;
    std::function<void(UniqueFd socket)> on_client_;
    SocketPath socket_;
    Timer pause_;
};

}  // namespace ernic
