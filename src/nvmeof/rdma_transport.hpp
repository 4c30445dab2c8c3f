// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/event_loop.hpp"
#include "base/log.hpp"
#include "net/ip_address.hpp"
#include "net/segment.hpp"
#include "nvmeof/rdma_channel.hpp"
#include "nvmeof/transport.hpp"
#include "rdma/connection_manager.hpp"
#include "rdma/endpoint.hpp"
#include "wire/ethernet.hpp"
#include "wire/nvme_rdma.hpp"

namespace ernic::nvmeof {

/// The RDMA transport of one target: its RDMA port on the segment, its connections, and what must be agreed
/// upon before there is one (NVMe RDMA transport 1.0, 3.1). Thread: device.
class RdmaTransport final : private rdma::ConnectionListener, private RdmaChannel::Runner {
  public:
    struct Config {
        wire::MacAddress mac;
        /// Those it is asked for by.
        std::vector<net::IpAddress> addresses;
        std::vector<std::uint16_t> ports;
    };
    /// Connections at a time, and receive memory of all together: hosts can make the process use so much.
    static constexpr std::uint32_t kMostConnections = 512;
    static constexpr std::size_t kMostReceiveBytes = std::size_t{256} << 20U;

    /// All references must outlive this.
    RdmaTransport(net::Segment& segment, EventLoop& loop, Config config, Acceptor& acceptor,
                  TransportCounters& counters, rdma::ConnectionCounters& connection_counters,
                  const log::Logger& log);
    /// Ends all connections without a word to their hosts; each handler hears gone().
    ~RdmaTransport() override;
    RdmaTransport(const RdmaTransport&) = delete;
    RdmaTransport& operator=(const RdmaTransport&) = delete;

    /// One budgeted piece of work; true while there is more.
    bool step();

    [[nodiscard]] std::size_t connections() const { return channels_.size(); }
    [[nodiscard]] rdma::Endpoint& endpoint() { return endpoint_; }
    /// Something of the connections' management is waited for.
    [[nodiscard]] bool timer_armed() const { return manager_.timer_armed(); }

  private:
    rdma::ConnectionAnswer requested(const rdma::ConnectionRequest& request, rdma::ConnectionId id) override;
    void wake(RdmaChannel& channel) override;
    bool late() override;
    rdma::ConnectionRefused refuse(wire::nvme_rdma::RejectStatus status);

    Config config_;
    Acceptor& acceptor_;
    TransportCounters& counters_;
    log::Logger log_;
    log::Limiter log_limit_;
    rdma::Endpoint endpoint_;
    rdma::ConnectionManager manager_;
    std::unordered_map<RdmaChannel*, std::unique_ptr<RdmaChannel>> channels_;
    std::size_t receive_bytes_ = 0;
    Nanoseconds step_end_ = 0;
    /// Those with something to do, in the order in which they said so; and a list to swap it with.
    std::vector<RdmaChannel*> ready_;
    std::vector<RdmaChannel*> running_;
};

}  // namespace ernic::nvmeof
