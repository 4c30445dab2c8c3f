// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/bytes.hpp"
#include "net/stack/endpoint.hpp"
#include "net/stack/host.hpp"

namespace ernic::net::stack {

/// A datagram as it came; valid only while it is being handed over.
struct Datagram {
    Endpoint from;
    /// Which address of the host it was sent to: answers must come from there.
    IpAddress to;
    Bytes data;
};

/// A UDP port on all addresses of a host. Thread: device.
class UdpSocket {
  public:
    /// lwIP puts together a datagram from at most so many fragments.
    static constexpr std::size_t kMaxFragments = 10;

    /// `handler` hears every datagram; it must not destroy the socket. Precondition: nobody else has this
    /// port of the host. `host` must outlive this.
    UdpSocket(Host& host, std::uint16_t port, std::function<void(const Datagram&)> handler);
    ~UdpSocket();
    UdpSocket(const UdpSocket&) = delete;
    UdpSocket& operator=(const UdpSocket&) = delete;

    /// Sends from address `from` of the host. Fails: false when it cannot be sent (no such own address, too
    /// long, no memory, no way there).
    bool send(const IpAddress& from, const Endpoint& to, Bytes data);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace ernic::net::stack
