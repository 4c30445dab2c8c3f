// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "metrics/registry.hpp"
#include "net/bridge.hpp"
#include "net/stack/host.hpp"
#include "net/stack/tcp.hpp"
#include "net/stack/udp_socket.hpp"

/// Small services that stand on net/stack, each as a host of its own on the segment.
namespace ernic::services {

/// Numbers of all echo services, which are there (and zero) without one too.
struct EchoCounters {
    metrics::Counter connections;
    metrics::Counter stream_bytes;
    metrics::Counter datagrams;
    metrics::Counter refused_datagrams;

    void register_metrics(metrics::Registry& registry) const;
};

/// What a chargen stream looks like (RFC 864): lines of 72 printable characters, each line starting one
/// character further, so that it repeats after 95 lines. Thread: any.
[[nodiscard]] const std::vector<std::byte>& chargen_pattern();

/// A peer for tests, reachable without a TAP: ICMP echo, and on TCP and UDP echo (port 7, RFC 862) and
/// discard (port 9, RFC 863), on TCP also a source that sends chargen_pattern() until the connection is
/// closed (port 19). Thread: device.
class Echo {
  public:
    /// All references must outlive this.
    Echo(net::stack::Stack& stack, net::FramePort& port, const net::stack::HostConfig& config,
         EchoCounters& counters);
    ~Echo();
    Echo(const Echo&) = delete;
    Echo& operator=(const Echo&) = delete;

  private:
    class Session;
    class EchoSession;
    class DiscardSession;
    class SourceSession;

    template <typename Kind>
    void accept(std::unique_ptr<net::stack::TcpConnection> connection);
    void answer(const net::stack::Datagram& datagram);

    EchoCounters& counters_;
    net::stack::Host host_;
    net::stack::UdpSocket udp_echo_;
    net::stack::UdpSocket udp_discard_;
    /// Before the listeners, which add to it.
    std::list<std::unique_ptr<Session>> sessions_;
    net::stack::TcpListener tcp_echo_;
    net::stack::TcpListener tcp_discard_;
    net::stack::TcpListener tcp_source_;
};

}  // namespace ernic::services
