// SPDX-License-Identifier: MIT
#include "ionic/lif.hpp"

#include <bit>
#include <cassert>
#include <cstddef>

#include "ionic/limits.hpp"

namespace ernic::ionic {
namespace {

using wire::ionic::LifInfo;
using wire::ionic::LogicalQueue;
using wire::ionic::QueueOperation;

}  // namespace

Lif::Lif(const Profile& profile, const wire::MacAddress& mac, mem::GuestMemory& memory,
         Interrupts& interrupts, TrafficStats& stats, net::FrameSink& sink)
    : profile_(profile),
      permanent_mac_(mac),
      memory_(memory),
      interrupts_(interrupts),
      stats_(stats),
      sink_(sink),
      filters_(profile.max_mac_filters, profile.max_vlan_filters),
      rss_(profile.rss_table_size),
      tx_(profile.tx_queues),
      rx_(profile.rx_queues) {
    assert(profile.tx_queues <= kMaxTxQueues);
    reset();
}

Lif::Status Lif::init(mem::Iova info, const LinkState& link) {
    if (memory_.at(info, sizeof(LifInfo), mem::Access::Write) == nullptr) {
        return Status::BadAddress;
    }
    reset();
    info_ = info;
    link_ = link;
    publish(offsetof(LifInfo, config), config_);
    publish_status(0);
    publish_stats();
    return Status::Success;
}

void Lif::reset() {
    info_.reset();
    admin_.reset();
    notify_.reset();
    for (auto& queue : tx_) {
        queue.reset();
    }
    for (auto& queue : rx_) {
        queue.reset();
    }
    admin_pending_ = false;
    tx_pending_ = 0;
    filters_.reset();
    rss_.reset();
    stats_.reset_lif();
    config_ = {};
    config_.state = static_cast<std::uint8_t>(wire::ionic::LifState::Enable);
    config_.mac = permanent_mac_;
    config_.mtu.set(profile_.max_frame_size - kFrameOverhead);
}

Lif::Status Lif::init_queue(const wire::ionic::QueueInitCommand& command, QueueHandle& handle) {
    if (!initialized()) {
        return Status::NotPermitted;
    }
    const QueueLimits limits{.tx_queues = profile_.tx_queues,
                             .rx_queues = profile_.rx_queues,
                             .interrupts = interrupts_.count(),
                             .doorbell_pages = profile_.doorbell_pages};
    QueueConfig config;
    const Status status = parse_queue_init(command, limits, config);
    if (status == Status::Success) {
        build_queue(config);
        handle = handle_of(config);
    }
    return status;
}

void Lif::build_queue(const QueueConfig& config) {
    const EthContext context{memory_, interrupts_, stats_, profile_.max_frame_size};
    switch (config.type) {
        case LogicalQueue::Admin:
            admin_.emplace(config, memory_, interrupts_);
            break;
        case LogicalQueue::Notify:
            notify_.emplace(config, memory_, interrupts_);
            break;
        case LogicalQueue::Rx:
            rx_[config.index].emplace(config, context);
            break;
        case LogicalQueue::Tx:
            tx_[config.index].emplace(config, context);
            break;
        case LogicalQueue::Event:
            break;  // parse_queue_init refuses it
    }
}

Lif::QueueHandle Lif::handle_of(const QueueConfig& config) {
    switch (config.type) {
        case LogicalQueue::Notify:
            // It has no doorbell; index 1 keeps it apart from the admin queue in the driver's debug output.
            return {static_cast<std::uint8_t>(QueueType::Admin), 1};
        case LogicalQueue::Rx:
            return {static_cast<std::uint8_t>(QueueType::Rx), config.index};
        case LogicalQueue::Tx:
            return {static_cast<std::uint8_t>(QueueType::Tx), config.index};
        case LogicalQueue::Admin:
        case LogicalQueue::Event:
            break;
    }
    return {static_cast<std::uint8_t>(QueueType::Admin), 0};
}

Lif::Status Lif::control_queue(const wire::ionic::QueueControlCommand& command) {
    const std::uint32_t index = command.index.get();
    const auto operation = static_cast<QueueOperation>(command.operation);
    if (operation > QueueOperation::HangReset) {
        return Status::Invalid;
    }
    // A hang reset is followed by a new Q_INIT.
    const bool enable = operation == QueueOperation::Enable;
    switch (static_cast<LogicalQueue>(command.type)) {
        case LogicalQueue::Rx:
            if (index >= rx_.size() || !rx_[index]) {
                return Status::BadQueueId;
            }
            rx_[index]->set_enabled(enable);
            break;
        case LogicalQueue::Tx:
            if (index >= tx_.size() || !tx_[index]) {
                return Status::BadQueueId;
            }
            tx_[index]->set_enabled(enable);
            // What was rung while it was disabled starts now.
            tx_pending_ |= std::uint64_t{enable} << index;
            break;
        case LogicalQueue::Admin:
        case LogicalQueue::Notify:
            // Disabling the queue this command came by would leave the driver without an answer.
            return enable ? Status::Success : Status::NotSupported;
        case LogicalQueue::Event:
        default:
            return Status::BadQueueType;
    }
    return Status::Success;
}

bool Lif::doorbell(QueueType type, std::uint32_t page, wire::ionic::Doorbell value) {
    const std::uint32_t queue = value.queue();
    switch (type) {
        case QueueType::Tx:
            if (queue < tx_.size() && tx_[queue] && tx_[queue]->config().pid == page) {
                tx_[queue]->doorbell(value.index());
                tx_pending_ |= std::uint64_t{1} << queue;
                return true;
            }
            return false;
        case QueueType::Rx:
            if (queue < rx_.size() && rx_[queue] && rx_[queue]->config().pid == page) {
                rx_[queue]->doorbell(value.index());
                if (room_handler_) {
                    room_handler_();
                }
                return true;
            }
            return false;
        case QueueType::Admin:
            if (queue == 0 && admin_ && admin_->config().pid == page) {
                admin_->doorbell(value.index());
                admin_pending_ = true;
                return true;
            }
            return false;
        default:
            return false;
    }
}

bool Lif::step(AdminCommandHandler& admin) {
    bool more = false;
    if (admin_pending_ && memory_.enabled()) {
        admin_pending_ = admin_ && admin_->process(admin, kAdminCommandsPerStep);
        more = admin_pending_;
    }
    return step_transmit() || more;
}

bool Lif::step_transmit() {
    if (!memory_.enabled()) {
        return false;  // rung queues wait for bus mastering
    }
    TransmitBudget budget(kTxWorkPerStep);
    while (tx_pending_ != 0 && !budget.spent()) {
        // The next one with work, from the turn on and then from the beginning.
        const std::uint64_t behind = tx_pending_ & ~std::uint64_t{0} << tx_turn_;
        const auto index = static_cast<std::uint32_t>(std::countr_zero(behind != 0 ? behind : tx_pending_));
        tx_turn_ = (index + 1) % kMaxTxQueues;
        if (!tx_[index] || !tx_[index]->process(sink_, budget)) {
            tx_pending_ &= ~(std::uint64_t{1} << index);
        }
    }
    return tx_pending_ != 0;
}

void Lif::set_link(const LinkState& link) {
    link_ = link;
    if (!initialized()) {
        return;
    }
    // The driver reads the info block when the event arrives and ignores the event's own body
    // (ionic 7.2, ionic_link_status_check), so the block comes first.
    publish_status(notify_ ? notify_->next_id() : 0);
    if (notify_) {
        wire::ionic::NotifyEvent event{};
        event.code.set(static_cast<std::uint16_t>(wire::ionic::NotifyCode::LinkChange));
        event.link_status.set(static_cast<std::uint16_t>(link.up ? wire::ionic::LinkStatus::Up
                                                                 : wire::ionic::LinkStatus::Down));
        event.link_speed.set(link.speed);
        if (!notify_->post(event)) {
            notify_.reset();  // unreachable; the driver's 5 s watchdog looks at the info block as well
        }
    }
}

void Lif::publish_status(std::uint64_t event_id) {
    wire::ionic::LifStatus status{};
    status.event_id.set(event_id);
    status.link_status.set(
        static_cast<std::uint16_t>(link_.up ? wire::ionic::LinkStatus::Up : wire::ionic::LinkStatus::Down));
    status.link_speed.set(link_.speed);
    status.link_down_count.set(link_.down_count);
    publish(offsetof(LifInfo, status), status);
}

void Lif::publish_stats() {
    publish(offsetof(LifInfo, stats), stats_.lif_block());
}

template <WireValue T>
bool Lif::publish(std::size_t offset, const T& value) {
    const auto target = info_ ? info_->plus(offset) : std::nullopt;
    return target && memory_.write(*target, bytes_of(value));
}

}  // namespace ernic::ionic
