// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "net/bridge.hpp"
#include "net/frame.hpp"
#include "net/ip_address.hpp"
#include "net/stack/filter.hpp"
#include "net/stack/stack.hpp"
#include "wire/ethernet.hpp"

namespace ernic::net::stack {

/// The interface of one host.
struct HostConfig {
    /// lwIP has place for so many IPv6 addresses besides the link-local one.
    static constexpr std::size_t kMaxIpv6 = 5;
    static constexpr std::uint16_t kMinMtu = 1280;
    static constexpr std::uint16_t kMaxMtu = 9194;

    wire::MacAddress mac;
    std::optional<IpPrefix> ipv4;
    /// Router for IPv4 addresses outside the subnet. IPv6 hosts are reached on the link only.
    std::optional<IpAddress> ipv4_gateway;
    std::vector<IpPrefix> ipv6;
    std::uint16_t mtu = 1500;
};

/// A host on a segment, with a MAC address and IP addresses of its own, for one service. Answers ARP,
/// neighbour solicitations and ICMP echo requests for its own addresses, and nothing else by itself; sockets
/// and listeners (udp_socket.hpp, tcp.hpp) do the rest. Never forwards. Thread: device.
class Host final : public FrameSink {
  public:
    struct Impl;

    /// Plugs itself into `port`. Precondition: the configuration makes sense (unicast addresses, an MTU in
    /// its limits). `stack` and `port` must outlive this.
    Host(Stack& stack, FramePort& port, const HostConfig& config);
    ~Host() override;
    Host(const Host&) = delete;
    Host& operator=(const Host&) = delete;

    /// Keeps a copy of the frame for the next step of the stack when it is for this host, else drops it.
    void transmit(const Frame& frame) override;
    /// Frames that the stack's queue still takes.
    [[nodiscard]] std::size_t room() const override;

    [[nodiscard]] const HostAddresses& addresses() const;
    /// For the sockets of this folder.
    [[nodiscard]] Impl& impl() { return *impl_; }

  private:
    std::unique_ptr<Impl> impl_;
};

}  // namespace ernic::net::stack
