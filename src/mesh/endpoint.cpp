// SPDX-License-Identifier: MIT
#include "mesh/endpoint.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <cstring>
#include <memory>

#include "mesh/limits.hpp"

namespace ernic::mesh {
namespace {

std::optional<Endpoint> from_sockaddr(const sockaddr_storage& storage) {
    Endpoint endpoint;
    if (storage.ss_family == AF_INET) {
        sockaddr_in address{};
        std::memcpy(&address, &storage, sizeof address);
        endpoint.address = net::IpAddress::v4(ntohl(address.sin_addr.s_addr));
        endpoint.port = ntohs(address.sin_port);
        return endpoint;
    }
    if (storage.ss_family == AF_INET6) {
        sockaddr_in6 address{};
        std::memcpy(&address, &storage, sizeof address);
        std::array<std::uint8_t, 16> bytes{};
        std::memcpy(bytes.data(), &address.sin6_addr, bytes.size());
        endpoint.address = net::IpAddress::v6(bytes);
        endpoint.port = ntohs(address.sin6_port);
        return endpoint;
    }
    return std::nullopt;
}

std::optional<Endpoint> ask(int (*name_of)(int, sockaddr*, socklen_t*), int fd) {
    sockaddr_storage storage{};
    socklen_t size = sizeof storage;
    if (name_of(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) {
        return std::nullopt;
    }
    return from_sockaddr(storage);
}

UniqueFd new_socket(const Endpoint& endpoint, int type) {
    return UniqueFd(
        ::socket(endpoint.address.is_v4() ? AF_INET : AF_INET6, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

void set(int fd, int level, int option, int value) {
    (void)::setsockopt(fd, level, option, &value, sizeof value);
}

}  // namespace

bool Endpoint::loopback() const {
    if (address.is_v4()) {
        return address.value_v4() >> 24U == 127;
    }
    std::array<std::uint8_t, 16> one{};
    one.back() = 1;
    return address.bytes_v6() == one;
}

std::string Endpoint::to_string() const {
    return address.is_v4() ? fmt::format("{}:{}", address.to_string(), port)
                           : fmt::format("[{}]:{}", address.to_string(), port);
}

SocketAddress::SocketAddress(const Endpoint& endpoint) {
    if (endpoint.address.is_v4()) {
        sockaddr_in in{};
        in.sin_family = AF_INET;
        in.sin_port = htons(endpoint.port);
        in.sin_addr.s_addr = htonl(endpoint.address.value_v4());
        std::memcpy(&storage, &in, sizeof in);
        size = sizeof in;
    } else {
        sockaddr_in6 in{};
        in.sin6_family = AF_INET6;
        in.sin6_port = htons(endpoint.port);
        std::memcpy(&in.sin6_addr, endpoint.address.bytes_v6().data(), sizeof in.sin6_addr);
        std::memcpy(&storage, &in, sizeof in);
        size = sizeof in;
    }
}

std::optional<Endpoint> remote_endpoint(int fd) {
    return ask(&::getpeername, fd);
}

std::optional<Endpoint> local_endpoint(int fd) {
    return ask(&::getsockname, fd);
}

Result<Endpoint> resolve(const std::string& host, std::uint16_t port) {
    if (const auto literal = net::IpAddress::parse(host)) {
        return Endpoint{*literal, port};
    }
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* raw = nullptr;
    const int problem = ::getaddrinfo(host.c_str(), nullptr, &hints, &raw);
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> found(raw, &freeaddrinfo);
    if (problem != 0) {
        return Error{Errc::Io, fmt::format("cannot find host '{}': {}", host, gai_strerror(problem))};
    }
    for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
        sockaddr_storage storage{};
        std::memcpy(&storage, one->ai_addr, one->ai_addrlen);
        if (auto endpoint = from_sockaddr(storage)) {
            endpoint->port = port;
            return *endpoint;
        }
    }
    return Error{Errc::Io, fmt::format("host '{}' has no IPv4 or IPv6 address", host)};
}

Result<net::IpAddress> source_towards(const Endpoint& to) {
    const UniqueFd fd = new_socket(to, SOCK_DGRAM);
    const SocketAddress address(to);
    if (fd && ::connect(fd.get(), address.get(), address.size) == 0) {
        if (const auto local = local_endpoint(fd.get())) {
            return local->address;
        }
    }
    return Error{Errc::Io, fmt::format("cannot tell which address of this host leads to {}: add bind=ADDRESS",
                                       to.to_string())};
}

Result<UniqueFd> listen_on(const Endpoint& endpoint) {
    UniqueFd fd = new_socket(endpoint, SOCK_STREAM);
    if (fd) {
        set(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
        if (!endpoint.address.is_v4()) {
            set(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 1);
        }
        const SocketAddress address(endpoint);
        if (::bind(fd.get(), address.get(), address.size) == 0 && ::listen(fd.get(), kBacklog) == 0) {
            return fd;
        }
    }
    return Error{Errc::Io,
                 fmt::format("cannot listen on {}: {}", endpoint.to_string(), std::strerror(errno))};
}

UniqueFd begin_connect(const Endpoint& to) {
    UniqueFd fd = new_socket(to, SOCK_STREAM);
    if (fd) {
        const SocketAddress address(to);
        if (::connect(fd.get(), address.get(), address.size) != 0 && errno != EINPROGRESS) {
            const int problem = errno;
            fd.reset();
            errno = problem;
        }
    }
    return fd;
}

void tune_connection(int fd, unsigned dead_after) {
    set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, kNotSent);
    set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(dead_after));
    // The kernel makes room for as much as is asked for here, without any sysctl. It keeps that room.
    set(fd, SOL_SOCKET, SO_RCVLOWAT, static_cast<int>(2 * kMaxBody));
    set(fd, SOL_SOCKET, SO_RCVLOWAT, 1);
}

}  // namespace ernic::mesh
