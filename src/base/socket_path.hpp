// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <string>

#include "base/fd.hpp"
#include "base/result.hpp"

namespace ernic {

/// Where the server listens and who may connect.
struct SocketOptions {
    std::string path{};
    mode_t mode = 0600;
    /// Name or number of the group that may connect too (mode gets read and write for the group); empty:
    /// none.
    std::string group{};
};

/// A listening UNIX socket and its name in the file system. Owns both; destroying it removes the name, if it
/// is still ours. Thread: device.
class SocketPath {
  public:
    SocketPath() = default;
    SocketPath(SocketPath&& other) noexcept;
    SocketPath& operator=(SocketPath&& other) noexcept;
    ~SocketPath() { close(); }

    /// Binds and listens, non-blocking. A socket file no server answers on is replaced.
    /// Fails: Busy (a server answers there), AlreadyExists (the path is something else than a socket),
    /// InvalidArgument (path empty or too long, unknown group), Io; each with one sentence for the user.
    static Result<SocketPath> listen(const SocketOptions& options);

    /// Makes sure that nobody answers at `path`, and removes what a dead server has left there, so that
    /// listen() will succeed unless somebody else is faster. For a server that replaces files before it
    /// listens: they may be another one's. Fails: as listen().
    static Status make_way(const std::string& path);

    /// Clients waiting to be accepted; servers here accept at once, so few are enough.
    static constexpr int kBacklog = 16;

    [[nodiscard]] int fd() const { return socket_.get(); }
    [[nodiscard]] const std::string& path() const { return path_; }
    void close();

  private:
    UniqueFd socket_;
    std::string path_;
    dev_t device_ = 0;
    ino_t inode_ = 0;
};

}  // namespace ernic
