// SPDX-License-Identifier: MIT
#include "base/socket_path.hpp"

#include <fmt/format.h>
#include <grp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "base/number.hpp"

namespace ernic {
namespace {

Error system_error(const std::string& path, const char* what) {
    return {Errc::Io, fmt::format("cannot {} socket '{}': {}", what, path, std::strerror(errno))};
}

Result<sockaddr_un> address_of(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.empty() || path.size() >= sizeof(address.sun_path)) {
        return Error{Errc::InvalidArgument, fmt::format("socket path '{}' must have 1 to {} bytes", path,
                                                        sizeof(address.sun_path) - 1)};
    }
    std::memcpy(address.sun_path, path.data(), path.size());
    return address;
}

Result<gid_t> group_id(const std::string& group) {
    if (const auto id = parse_integer<gid_t>(group)) {
        return *id;
    }
    const struct group* entry = ::getgrnam(group.c_str());
    if (entry == nullptr) {
        return Error{Errc::InvalidArgument, fmt::format("there is no group '{}' for the socket", group)};
    }
    return entry->gr_gid;
}

/// Removes what a dead server left behind. A live one is recognised by answering: connect() to a socket
/// nobody listens on is refused by the kernel.
Status make_way_at(const std::string& path, const sockaddr_un& address) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0) {
        return errno == ENOENT ? Status(Done{}) : Status(system_error(path, "look at"));
    }
    if (!S_ISSOCK(status.st_mode)) {
        return Error{Errc::AlreadyExists,
                     fmt::format("'{}' exists and is not a socket; it is left alone", path)};
    }
    const UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const int result = ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
    if (result == 0 || errno == EAGAIN) {  // EAGAIN: somebody's backlog is full
        return Error{Errc::Busy, fmt::format("another server is listening on '{}'", path)};
    }
    if (errno != ECONNREFUSED) {
        return system_error(path, "probe");
    }
    if (::unlink(path.c_str()) != 0) {
        return system_error(path, "remove stale");
    }
    return Done{};
}

/// The name never exists with wider rights than asked for: the inode inherits the mode of the unbound socket.
Status bind_with_rights(int fd, const SocketOptions& options, const sockaddr_un& address,
                        std::optional<gid_t> group) {
    const mode_t mode = options.mode | (group ? S_IRGRP | S_IWGRP : 0U);
    ::fchmod(fd, group ? S_IRUSR | S_IWUSR : mode);
    if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
        return system_error(options.path, "create");
    }
    if (group && ::lchown(options.path.c_str(), static_cast<uid_t>(-1), *group) != 0) {
        return system_error(options.path, "give to its group the");
    }
    if (::chmod(options.path.c_str(), mode) != 0) {  // what the umask took away
        return system_error(options.path, "set the mode of");
    }
    return Done{};
}

}  // namespace

Status SocketPath::make_way(const std::string& path) {
    const auto address = address_of(path);
    return address ? make_way_at(path, address.value()) : Status(address.error());
}

Result<SocketPath> SocketPath::listen(const SocketOptions& options) {
    const auto address = address_of(options.path);
    if (!address) {
        return address.error();
    }
    std::optional<gid_t> group;
    if (!options.group.empty()) {
        const auto id = group_id(options.group);
        if (!id) {
            return id.error();
        }
        group = id.value();
    }
    if (const Status way = make_way_at(options.path, address.value()); !way) {
        return way.error();
    }
    SocketPath made;
    made.socket_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!made.socket_.valid()) {
        return system_error(options.path, "open");
    }
    const Status bound = bind_with_rights(made.socket_.get(), options, address.value(), group);
    struct stat status {};
    if (::lstat(options.path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode)) {
        made.path_ = options.path;
        made.device_ = status.st_dev;
        made.inode_ = status.st_ino;
    }
    if (!bound) {
        return bound.error();
    }
    if (::listen(made.socket_.get(), SocketPath::kBacklog) != 0) {
        return system_error(options.path, "listen on");
    }
    return made;
}

SocketPath::SocketPath(SocketPath&& other) noexcept
    : socket_(std::move(other.socket_)),
      path_(std::exchange(other.path_, {})),
      device_(other.device_),
      inode_(other.inode_) {
}

SocketPath& SocketPath::operator=(SocketPath&& other) noexcept {
    if (this != &other) {
        close();
        socket_ = std::move(other.socket_);
        path_ = std::exchange(other.path_, {});
        device_ = other.device_;
        inode_ = other.inode_;
    }
    return *this;
}

void SocketPath::close() {
    struct stat status {};
    if (!path_.empty() && ::lstat(path_.c_str(), &status) == 0 && status.st_dev == device_ &&
        status.st_ino == inode_) {
        ::unlink(path_.c_str());
    }
    path_.clear();
    socket_.reset();
}

}  // namespace ernic
