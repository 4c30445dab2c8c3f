// SPDX-License-Identifier: MIT
#include "fuzz/vfio_client.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "fuzz/input.hpp"
#include "vfio_user/limits.hpp"

namespace ernic::fuzz {

namespace w = wire::vfio_user;

void VfioClient::connect(const std::string& path) {
    disconnect();
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::copy_n(path.begin(), std::min(path.size(), sizeof(address.sun_path) - 1),
                std::begin(address.sun_path));
    socket_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
        socket_.reset();
    }
}

void VfioClient::disconnect() {
    socket_.reset();
    sent_.clear();
    received_.clear();
    owed_.clear();
    out_of_step_ = false;
}

bool VfioClient::send(Bytes data, const std::vector<UniqueFd>& fds) {
    constexpr std::size_t kMostFds = 20;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostFds * sizeof(int))> control{};
    iovec content{const_cast<std::byte*>(data.data()), data.size()};
    msghdr message{};
    message.msg_iov = &content;
    message.msg_iovlen = 1;
    if (!fds.empty()) {
        const std::size_t count = std::min(fds.size(), kMostFds);
        message.msg_control = control.data();
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        cmsghdr* part = CMSG_FIRSTHDR(&message);
        part->cmsg_level = SOL_SOCKET;
        part->cmsg_type = SCM_RIGHTS;
        part->cmsg_len = CMSG_LEN(count * sizeof(int));
        for (std::size_t i = 0; i < count; ++i) {
            const int fd = fds[i].get();
            std::memcpy(CMSG_DATA(part) + i * sizeof(int), &fd, sizeof(int));
        }
    }
    const ssize_t sent = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent <= 0) {
        return false;
    }
    remember(data.first(static_cast<std::size_t>(sent)));
    return static_cast<std::size_t>(sent) == data.size();
}

void VfioClient::remember(Bytes data) {
    sent_.insert(sent_.end(), data.begin(), data.end());
    std::size_t at = 0;
    while (!out_of_step_) {
        const auto header = read_value<w::Header>(Bytes(sent_).subspan(at));
        if (!header) {
            break;
        }
        const std::uint32_t size = header->size.get();
        out_of_step_ = size < sizeof(w::Header) || size > vfio_user::kMaxMessage;
        if (!out_of_step_ && sent_.size() - at < size) {
            break;
        }
        if (!header->no_reply() && (out_of_step_ || header->type() != w::Header::kTypeReply)) {
            owed_.push_back({header->id.get(), header->command.get()});
        }
        at += size;
    }
    sent_.erase(sent_.begin(), sent_.begin() + static_cast<std::ptrdiff_t>(std::min(at, sent_.size())));
}

void VfioClient::receive() {
    std::array<std::byte, 65536> buffer;
    while (open()) {
        const ssize_t size = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (size <= 0) {
            if (size == 0 || errno != EAGAIN) {
                disconnect();
            }
            return;
        }
        received_.insert(received_.end(), buffer.begin(), buffer.begin() + size);
        std::size_t at = 0;
        while (const auto header = read_value<w::Header>(Bytes(received_).subspan(at))) {
            const std::uint32_t length = header->size.get();
            require(length >= sizeof(w::Header) && length <= vfio_user::kMaxMessage,
                    "answers have a legal size");
            if (received_.size() - at < length) {
                break;
            }
            check(*header);
            at += length;
        }
        received_.erase(received_.begin(), received_.begin() + static_cast<std::ptrdiff_t>(at));
    }
}

void VfioClient::check(const w::Header& header) {
    if (header.type() == w::Header::kTypeCommand) {
        require(header.code() == w::Command::DmaRead, "the server asks for nothing but memory");
        server_command_ = header.id.get();
        return;
    }
    require(header.type() == w::Header::kTypeReply, "what is no command is an answer");
    require(!owed_.empty(), "every answer has its request");
    require(owed_.front().id == header.id.get() && owed_.front().command == header.command.get(),
            "answers come in the order of requests");
    require(header.failed() == (header.error.get() != 0), "a failure has a reason");
    owed_.pop_front();
}

UniqueFd make_fd(FdKind kind, std::uint64_t size) {
    const auto memory = [size](unsigned flags) {
        UniqueFd fd(::memfd_create("fuzz", MFD_CLOEXEC | flags));
        (void)::ftruncate(fd.get(), static_cast<off_t>(size));
        return fd;
    };
    switch (kind) {
        case FdKind::Memory:
            return memory(0);
        case FdKind::SealableMemory:
            return memory(MFD_ALLOW_SEALING);
        case FdKind::WriteSealedMemory: {
            UniqueFd fd = memory(MFD_ALLOW_SEALING);
            ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_WRITE);
            return fd;
        }
        case FdKind::ReadOnlyMemory: {
            const UniqueFd fd = memory(0);
            const std::string path = "/proc/self/fd/" + std::to_string(fd.get());
            return UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
        }
        case FdKind::EventFd:
            return UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
        case FdKind::BlockingEventFd:
            return UniqueFd(::eventfd(0, EFD_CLOEXEC));
        case FdKind::FullEventFd: {
            UniqueFd fd(::eventfd(0, EFD_CLOEXEC));
            ::eventfd_write(fd.get(), UINT64_MAX - 1);
            return fd;
        }
        case FdKind::DevNull:
            return UniqueFd(::open("/dev/null", O_RDWR | O_CLOEXEC));
        case FdKind::Pipe: {
            std::array<int, 2> ends{};
            if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
                return {};
            }
            ::close(ends[1]);
            return UniqueFd(ends[0]);
        }
        case FdKind::Socket:
            return UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    }
    return {};
}

}  // namespace ernic::fuzz
