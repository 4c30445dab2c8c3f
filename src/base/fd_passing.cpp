// SPDX-License-Identifier: MIT
#include "base/fd_passing.hpp"

#include <array>
#include <cstring>

namespace ernic {

std::vector<UniqueFd> received_fds(msghdr& message) {
    std::vector<UniqueFd> fds;
    for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
            fds.emplace_back(fd);
        }
    }
    return fds;
}

ssize_t send_with_fd(int socket, Bytes data, int fd) {
    iovec vector{const_cast<std::byte*>(data.data()), data.size()};  // NOLINT: sendmsg does not write to it
    msghdr message{};
    message.msg_iov = &vector;
    message.msg_iovlen = 1;
    alignas(cmsghdr) std::array<char, fd_control_size(1)> control{};
    if (fd >= 0) {
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        cmsghdr* const part = CMSG_FIRSTHDR(&message);
        part->cmsg_level = SOL_SOCKET;
        part->cmsg_type = SCM_RIGHTS;
        part->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(part), &fd, sizeof(int));
    }
    return ::sendmsg(socket, &message, MSG_NOSIGNAL);
}

}  // namespace ernic
