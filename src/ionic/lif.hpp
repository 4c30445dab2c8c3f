// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "ionic/admin_queue.hpp"
#include "ionic/eth_context.hpp"
#include "ionic/eth_rx_queue.hpp"
#include "ionic/eth_tx_queue.hpp"
#include "ionic/frame_sink.hpp"
#include "ionic/notify_queue.hpp"
#include "ionic/port.hpp"
#include "ionic/profile.hpp"
#include "ionic/rss.hpp"
#include "ionic/rx_filters.hpp"
#include "net/segmentation.hpp"
#include "wire/ethernet.hpp"
#include "wire/ionic_identity.hpp"

namespace ernic::ionic {

/// The card's only logical interface: its queues, filters, features, and the LIF info block in guest memory
/// (from LIF_INIT to LIF_RESET). Commands reach it already decoded. Thread: device. Fails: by command status.
class Lif {
  public:
    using Status = wire::ionic::Status;

    /// Everything passed must outlive this; `profile.tx_queues` is at most kMaxTxQueues.
    Lif(const Profile& profile, const wire::MacAddress& mac, mem::GuestMemory& memory, Interrupts& interrupts,
        TrafficStats& stats, net::FrameSink& sink);

    // Life cycle.
    Status init(mem::Iova info, const LinkState& link);
    /// Destroys queues, filters, RSS and attributes and stops all DMA. Also before init() ever ran.
    void reset();
    [[nodiscard]] const wire::MacAddress& permanent_mac() const { return permanent_mac_; }
    [[nodiscard]] bool initialized() const { return info_.has_value(); }

    // Queues. `hw_type` and `hw_index` are what the driver puts into doorbells.
    struct QueueHandle {
        std::uint8_t hw_type = 0;
        std::uint32_t hw_index = 0;
    };
    Status init_queue(const wire::ionic::QueueInitCommand& command, QueueHandle& handle);
    Status control_queue(const wire::ionic::QueueControlCommand& command);

    // Attributes.
    /// `handler` hears the interface's MTU whenever the driver sets it.
    void on_mtu(std::function<void(std::uint32_t mtu)> handler) { mtu_handler_ = std::move(handler); }
    /// Where the admin queue's commands are, once it exists.
    [[nodiscard]] std::optional<mem::Iova> admin_ring() const {
        return admin_ ? std::optional(admin_->config().ring) : std::nullopt;
    }
    Status set_attribute(const wire::ionic::LifAttributeCommand& command, std::uint64_t& features);
    /// `value` is the 11 bytes of the completion.
    Status get_attribute(const wire::ionic::LifAttributeCommand& command, MutableBytes value) const;
    [[nodiscard]] std::uint64_t features() const { return config_.features.get(); }
    [[nodiscard]] RxFilters& filters() { return filters_; }

    /// Updates the info block, then tells the driver through the notify queue.
    void set_link(const LinkState& link);
    void publish_stats();

    /// A doorbell on page `page` in an Ethernet slot. False when no such queue is there.
    bool doorbell(QueueType type, std::uint32_t page, wire::ionic::Doorbell value);
    /// One budgeted step of the admin queue and of the transmit queues; true while there is more.
    bool step(AdminCommandHandler& admin);

    /// A frame for the guest. False when it was dropped (filtered, no queue, no buffer).
    bool receive(const net::WireFrame& frame);
    /// Frames the receive queue with the fewest buffers can take; without limit while nothing is delivered.
    [[nodiscard]] std::size_t receive_room() const;
    /// `handler` hears whenever the guest has posted receive buffers.
    void on_receive_room(std::function<void()> handler) { room_handler_ = std::move(handler); }
    /// `handler` hears of every frame that the guest wanted and had no buffer for.
    void on_receive_drop(std::function<void()> handler) { drop_handler_ = std::move(handler); }

  private:
    Status set_features(std::uint64_t wanted, std::uint64_t& granted);
    Status set_mac(const wire::MacAddress& mac);
    void build_queue(const QueueConfig& config);
    [[nodiscard]] static QueueHandle handle_of(const QueueConfig& config);
    bool step_transmit();
    [[nodiscard]] RxMetadata describe(const PacketInfo& packet, const net::WireFrame& frame, bool strip,
                                      const Rss::Choice& choice) const;
    template <WireValue T>
    bool publish(std::size_t offset, const T& value);
    void publish_status(std::uint64_t event_id);
    [[nodiscard]] bool has_feature(std::uint64_t bit) const { return (features() & bit) != 0; }

    const Profile& profile_;
    const wire::MacAddress permanent_mac_;
    mem::GuestMemory& memory_;
    Interrupts& interrupts_;
    TrafficStats& stats_;
    net::FrameSink& sink_;

    std::optional<mem::Iova> info_;
    LinkState link_;
    /// State, name, MTU, MAC and features as the driver has set them.
    wire::ionic::LifConfig config_{};
    RxFilters filters_;
    Rss rss_;

    std::optional<AdminQueue> admin_;
    std::function<void(std::uint32_t mtu)> mtu_handler_;
    std::function<void()> room_handler_;
    std::function<void()> drop_handler_;
    std::optional<NotifyQueue> notify_;
    std::vector<std::optional<TxQueue>> tx_;
    std::vector<std::optional<RxQueue>> rx_;
    bool admin_pending_ = false;
    /// Bit i: transmit queue i may have work.
    std::uint64_t tx_pending_ = 0;
    /// The transmit queue whose turn it is.
    std::uint32_t tx_turn_ = 0;
};

}  // namespace ernic::ionic
