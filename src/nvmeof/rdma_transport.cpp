// SPDX-License-Identifier: MIT
#include "nvmeof/rdma_transport.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "rdma/management_port.hpp"

namespace ernic::nvmeof {
namespace {

using wire::nvme_rdma::RejectStatus;

/// Commands that one step hands to their handlers before the event loop looks at other things.
constexpr std::uint32_t kCommandsPerStep = 256;
/// Reads that a queue may have under way: as many as the card serves.
constexpr std::uint8_t kMostReads = 16;
/// 10 us: receive buffers are short only until an acknowledgement that was lost has come again.
constexpr std::uint8_t kRnrTimer = 1;
constexpr std::uint32_t kPsnMask = 0xffffff;

/// A peer that takes no responses, or acknowledges nothing, holds staging memory: its connection ends after
/// some seconds, whatever it has asked for. The codes for "for ever" are 0 (time-out) and 7 (RNR retries); 20
/// is 4.3 s.
constexpr std::uint8_t kMostTimeout = 20;
constexpr std::uint8_t kMostRnrRetries = 6;
/// What one step may take before the event loop looks at other things: a command may touch fresh huge pages.
constexpr Nanoseconds kStepTime = 300'000;

/// Queues of less cannot be: one entry always stays free.
constexpr std::uint16_t kLeastEntries = 2;

}  // namespace

RdmaTransport::RdmaTransport(net::Segment& segment, EventLoop& loop, Config config, Acceptor& acceptor,
                             TransportCounters& counters, rdma::ConnectionCounters& connection_counters,
                             const log::Logger& log)
    : config_(std::move(config)),
      acceptor_(acceptor),
      counters_(counters),
      log_(log),
      endpoint_(segment, loop, config_.mac,
                {.queue_pairs = kMostConnections, .address_handles = rdma::ManagementPort::kDatagrams}),
      manager_(endpoint_, connection_counters, log) {
    for (const std::uint16_t port : config_.ports) {
        manager_.listen(port, *this);
    }
}

RdmaTransport::~RdmaTransport() {
    for (const auto& [channel, owned] : channels_) {
        channel->abandon();
    }
}

bool RdmaTransport::step() {
    manager_.step();
    std::uint32_t commands = kCommandsPerStep;
    step_end_ = endpoint_.engine().loop().clock().now() + kStepTime;
    running_.swap(ready_);
    for (RdmaChannel* const channel : running_) {
        channel->scheduled = false;
        if (channel->work(commands)) {
            wake(*channel);
        }
        if (channel->finished()) {
            log_.debug("queue {} disconnected", channel->queue_id());
            receive_bytes_ -= channel->receive_bytes();
            if (channel->scheduled) {
                std::erase(ready_, channel);
            }
            channels_.erase(channel);
        }
    }
    running_.clear();
    const bool more = endpoint_.step();
    return more || !ready_.empty() || manager_.has_work();
}

bool RdmaTransport::late() {
    return endpoint_.engine().loop().clock().now() >= step_end_;
}

void RdmaTransport::wake(RdmaChannel& channel) {
    if (!channel.scheduled) {
        channel.scheduled = true;
        ready_.push_back(&channel);
    }
}

rdma::ConnectionRefused RdmaTransport::refuse(RejectStatus status) {
    counters_.refused.add();
    log_.info_limited(log_limit_, "connection refused, status {}", static_cast<unsigned>(status));
    rdma::ConnectionRefused refused{.reason = wire::ib_cm::RejectReason::Consumer};
    const wire::nvme_rdma::ConnectReject reject{le16(wire::nvme_rdma::kRecordFormat),
                                                le16(static_cast<std::uint16_t>(status))};
    std::memcpy(refused.private_data.data(), &reject, sizeof reject);
    return refused;
}

rdma::ConnectionAnswer RdmaTransport::requested(const rdma::ConnectionRequest& request,
                                                rdma::ConnectionId id) {
    const auto& addresses = config_.addresses;
    if (std::find(addresses.begin(), addresses.end(), request.destination) == addresses.end()) {
        return rdma::ConnectionRefused{.reason = wire::ib_cm::RejectReason::InvalidServiceId};
    }
    const auto wish = read_value<wire::nvme_rdma::ConnectRequest>(request.private_data);
    if (!wish) {
        return refuse(RejectStatus::InvalidPrivateDataLength);
    }
    if (wish->record_format.get() != wire::nvme_rdma::kRecordFormat) {
        return refuse(RejectStatus::InvalidRecordFormat);
    }
    QueueRequest queue;
    queue.queue_id = wish->queue_id.get();
    queue.host_receive_entries = wish->host_receive_entries.get();
    queue.host_send_entries = static_cast<std::uint16_t>(std::min(wish->host_send_entries.get() + 1, 0xffff));
    queue.controller_id = wish->controller_id.get();
    queue.peer = request.route.destination;
    if (queue.host_send_entries < kLeastEntries) {
        return refuse(RejectStatus::InvalidHostSendEntries);
    }
    if (queue.host_receive_entries < kLeastEntries) {
        return refuse(RejectStatus::InvalidHostReceiveEntries);
    }
    if (request.responder_resources == 0) {
        return refuse(RejectStatus::InvalidInboundReads);
    }
    const auto grant = acceptor_.consider(queue);
    const auto qpn = endpoint_.free_qpn();
    if (!grant || grant->entries == 0 || !qpn) {
        return refuse(RejectStatus::NoResources);
    }
    // Never more responses under way than the host has receive buffers for.
    const std::uint16_t depth =
        std::min({grant->entries, queue.host_send_entries, queue.host_receive_entries});
    const std::size_t bytes = RdmaChannel::receive_bytes(depth, grant->in_capsule_bytes);
    if (bytes > kMostReceiveBytes - receive_bytes_) {
        return refuse(RejectStatus::NoResources);
    }
    receive_bytes_ += bytes;
    auto channel = std::make_unique<RdmaChannel>(
        endpoint_, manager_, static_cast<RdmaChannel::Runner&>(*this), acceptor_, counters_,
        RdmaChannel::Setup{.request = queue,
                           .depth = depth,
                           .in_capsule_bytes = grant->in_capsule_bytes,
                           .connection = id,
                           .qpn = *qpn});

    rdma::QpAttributes attributes;
    attributes.destination_qpn = request.peer_qpn;
    attributes.sq_psn = request.starting_psn;
    // Any number will do, as long as it is another one each time.
    attributes.rq_psn = (id * 0x9e3779b9U) & kPsnMask;
    attributes.path_mtu = request.path_mtu;
    attributes.timeout =
        request.acknowledge_timeout == 0 ? kMostTimeout : std::min(request.acknowledge_timeout, kMostTimeout);
    attributes.retry_count = request.retry_count;
    attributes.rnr_retry = std::min(request.rnr_retry_count, kMostRnrRetries);
    attributes.min_rnr_timer = kRnrTimer;
    attributes.max_rd_atomic = std::min(request.responder_resources, kMostReads);
    attributes.route = request.route;
    channel->bring_up(attributes);

    rdma::ConnectionAccepted accepted{.user = &channel->connection_user(),
                                      .qpn = *qpn,
                                      .starting_psn = attributes.rq_psn,
                                      .initiator_depth = static_cast<std::uint8_t>(attributes.max_rd_atomic)};
    wire::nvme_rdma::ConnectAccept answer{};
    answer.controller_receive_entries.set(depth);
    std::memcpy(accepted.private_data.data(), &answer, sizeof answer);
    counters_.connections.add();
    log_.debug("queue {} connected from {}, {} entries", queue.queue_id, request.source.to_string(), depth);
    if (queue.queue_id == 0) {
        log_.info_limited(log_limit_, "host {} connects", request.source.to_string());
    }
    channels_.emplace(channel.get(), std::move(channel));
    return accepted;
}

}  // namespace ernic::nvmeof
