// SPDX-License-Identifier: MIT
#include "support/tcp_pair.hpp"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include "guest_sim/error.hpp"

namespace ernic::bench {

UniqueFd listening(in_addr_t ip, sockaddr_in& address) {
    UniqueFd listener(::socket(AF_INET, SOCK_STREAM, 0));
    address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = ip;
    socklen_t size = sizeof address;
    auto* const raw = reinterpret_cast<sockaddr*>(&address);
    guest_sim::require(::bind(listener.get(), raw, size) == 0 && ::listen(listener.get(), 1) == 0 &&
                           ::getsockname(listener.get(), raw, &size) == 0,
                       "a listening socket");
    return listener;
}

TcpPair connected(const UniqueFd& listener, const sockaddr_in& address) {
    TcpPair pair{.client = UniqueFd(::socket(AF_INET, SOCK_STREAM, 0)), .server = {}};
    guest_sim::require(
        ::connect(pair.client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0,
        "a connection");
    pair.server = UniqueFd(::accept(listener.get(), nullptr, nullptr));
    const int on = 1;
    for (const int fd : {pair.client.get(), pair.server.get()}) {
        (void)::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    return pair;
}

TcpPair loopback_pair() {
    sockaddr_in address{};
    const UniqueFd listener = listening(htonl(INADDR_LOOPBACK), address);
    return connected(listener, address);
}

}  // namespace ernic::bench
