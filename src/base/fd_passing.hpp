// SPDX-License-Identifier: MIT
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <cstddef>
#include <vector>

#include "base/bytes.hpp"
#include "base/fd.hpp"

/// File descriptors over UNIX sockets (SCM_RIGHTS, unix(7)).
namespace ernic {

/// Room for the control message that carries `count` descriptors, for msghdr::msg_control. Must be aligned as
/// a cmsghdr.
constexpr std::size_t fd_control_size(std::size_t count) {
    return CMSG_SPACE(count * sizeof(int));
}

/// The descriptors of one recvmsg(). All are taken, whatever happens next, so that none leaks. Thread: any.
[[nodiscard]] std::vector<UniqueFd> received_fds(msghdr& message);

/// Sends `data` and, unless it is negative, a copy of `fd` in one sendmsg(), without SIGPIPE. Thread: any.
/// Fails: as sendmsg(); may send a part, with the descriptor.
[[nodiscard]] ssize_t send_with_fd(int socket, Bytes data, int fd);

}  // namespace ernic
