// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "base/event_loop.hpp"
#include "base/log.hpp"
#include "metrics/registry.hpp"
#include "net/bridge.hpp"
#include "net/frame.hpp"
#include "net/stack/host.hpp"
#include "services/dhcp_leases.hpp"
#include "services/dhcp_message.hpp"

namespace ernic::services {

/// Numbers of the DHCP service, which are there (and zero) without it too.
struct DhcpCounters {
    metrics::Counter offers;
    metrics::Counter acks;
    metrics::Counter naks;
    metrics::Counter exhausted;
    metrics::Counter malformed;
    metrics::Counter ignored;
    std::uint64_t leases = 0;

    void register_metrics(metrics::Registry& registry) const;
};

struct DhcpConfig {
    wire::MacAddress mac;
    /// Of the server itself; `parameters.subnet` is its subnet.
    net::IpAddress address;
    net::IpAddress first;
    net::IpAddress last;
    std::uint32_t lease_seconds = 3600;
    DhcpParameters parameters;
};

/// A DHCPv4 server (RFC 2131) for a segment without one, as a host of its own. It looks at frames before its
/// IP stack does, because lwIP drops what comes from 0.0.0.0, as the first words of every client do. The
/// table of leases is in memory: after a restart a client may keep what it asks for when that is free.
/// Thread: device.
class Dhcp final : public net::FrameSink {
  public:
    /// All references must outlive this.
    Dhcp(EventLoop& loop, net::stack::Stack& stack, net::FramePort& port, const DhcpConfig& config,
         DhcpCounters& counters, const log::Logger& log);
    ~Dhcp() override;
    Dhcp(const Dhcp&) = delete;
    Dhcp& operator=(const Dhcp&) = delete;

    void transmit(const net::Frame& frame) override;
    [[nodiscard]] std::size_t room() const override { return host_.room(); }

    /// Never gives out `address`.
    void reserve(const net::IpAddress& address) { leases_.reserve(address); }

  private:
    /// Handles what is a datagram to the server's port; false for everything else.
    bool take(Bytes frame, bool checksum_known);
    void handle(const DhcpRequest& request);
    void discover(const DhcpRequest& request);
    void request_lease(const DhcpRequest& request);
    void acknowledge(const DhcpRequest& request, const net::IpAddress& address);
    void refuse(const DhcpRequest& request);
    void send(const DhcpRequest& request, const DhcpReply& reply);
    void flush();

    EventLoop& loop_;
    net::FramePort& port_;
    DhcpConfig config_;
    DhcpCounters& counters_;
    log::Logger log_;
    net::stack::Host host_;
    DhcpLeases leases_;
    /// Answers leave from the loop, not from within the question.
    std::deque<std::vector<std::byte>> answers_;
    Timer answering_;
};

}  // namespace ernic::services
