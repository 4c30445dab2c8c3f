// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "net/tap.hpp"

namespace ernic::net {
namespace {

constexpr unsigned kOffloads = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;

Error failed(Errc code, const std::string& interface, const char* what, int error) {
    return {code, fmt::format("TAP interface '{}': {} ({})", interface, what, std::strerror(error))};
}

ifreq request_for(const std::string& interface) {
    ifreq request{};
    interface.copy(static_cast<char*>(request.ifr_name), IFNAMSIZ - 1);
    return request;
}

/// What to tell somebody whose interface could not be attached to.
Error attach_error(const std::string& interface, int error) {
    switch (error) {
        case EINVAL:
            return failed(Errc::InvalidArgument, interface, "it exists but is not a TAP interface", error);
        case EBUSY:
            return failed(Errc::Busy, interface, "another program has it open", error);
        case EPERM:
        case EACCES:
            return failed(Errc::PermissionDenied, interface,
                          "it belongs to another user; make it with 'ip tuntap add .. user NAME'", error);
        default:
            return failed(Errc::Io, interface, "cannot attach to it", error);
    }
}

}  // namespace

Result<TapDevice> TapDevice::open(const std::string& interface) {
    if (interface.empty() || interface.size() >= IFNAMSIZ) {
        return Error{
            Errc::InvalidArgument,
            fmt::format("'{}' is no interface name: those have 1 to {} characters", interface, IFNAMSIZ - 1)};
    }
    UniqueFd changes(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
    sockaddr_nl address{};
    address.nl_family = AF_NETLINK;
    address.nl_groups = RTMGRP_LINK;
    // The address structures of the socket interface are made to be cast.
    if (!changes || bind(changes.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        return failed(Errc::Io, interface, "cannot watch interfaces", errno);
    }
    Tuns tuns;
    for (UniqueFd& tun : tuns) {
        tun = UniqueFd(::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
        if (!tun) {
            return failed(errno == EACCES || errno == EPERM ? Errc::PermissionDenied : Errc::Io, interface,
                          "cannot open /dev/net/tun", errno);
        }
    }
    TapDevice device(interface, std::move(tuns), std::move(changes));
    if (const Status attached = device.attach(); !attached) {
        return attached.error();
    }
    return device;
}

Status TapDevice::reattach() {
    return attach();
}

Status TapDevice::attach() {
    // TUNSETIFF would make an interface of that name, which would vanish with us and surprise everybody.
    ifreq request = request_for(interface_);
    if (ioctl(changes_.get(), SIOCGIFINDEX, &request) != 0) {
        return failed(Errc::InvalidArgument, interface_,
                      "there is no such interface; make it with 'ip tuntap add dev NAME mode tap'", errno);
    }
    request = request_for(interface_);
    request.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
    queues_ = 1;
    int result = ioctl(fd(0), TUNSETIFF, &request);
    if (result != 0 && errno == EINVAL) {
        // An interface made with `multi_queue` wants to be told so.
        request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_MULTI_QUEUE);
        result = ioctl(fd(0), TUNSETIFF, &request);
        while (result == 0 && queues_ < kMaxQueues && ioctl(tuns_[queues_].get(), TUNSETIFF, &request) == 0) {
            ++queues_;
        }
    }
    if (result != 0) {
        return attach_error(interface_, errno);
    }
    for (std::size_t queue = 0; queue < queues_; ++queue) {
        if (const Status configured = configure(fd(queue)); !configured) {
            return configured;
        }
    }
    return Done{};
}

Status TapDevice::configure(int tun) const {
    int header_size = sizeof(wire::VirtioNetHeader);
    int little_endian = 1;
    if (ioctl(tun, TUNSETVNETHDRSZ, &header_size) != 0 || ioctl(tun, TUNSETVNETLE, &little_endian) != 0 ||
        ioctl(tun, TUNSETOFFLOAD, kOffloads) != 0) {
        return failed(Errc::Unsupported, interface_, "the kernel refuses checksum and segmentation offload",
                      errno);
    }
    return Done{};
}

TapDevice::State TapDevice::state() const {
    // Linux tun_chr_poll: an error when the interface is gone; writable only while it is up.
    pollfd query{fd(0), POLLOUT, 0};
    if (::poll(&query, 1, 0) < 0 || (query.revents & POLLERR) != 0) {
        return State::Gone;
    }
    return (query.revents & POLLOUT) != 0 ? State::Up : State::Down;
}

void TapDevice::drain_changes() const {
    std::array<std::byte, 4096> ignored;
    // ENOBUFS says that some were lost, which is as good as a message.
    while (recv(changes_.get(), ignored.data(), ignored.size(), 0) >= 0 || errno == ENOBUFS) {
    }
}

}  // namespace ernic::net
