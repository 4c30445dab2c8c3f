// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "base/bytes.hpp"
#include "ionic/profile.hpp"
#include "ionic/traffic_stats.hpp"
#include "ionic/transceiver.hpp"
#include "mem/guest_memory.hpp"
#include "wire/ionic_identity.hpp"

namespace ernic::ionic {

/// The link as the LIF reports it.
struct LinkState {
    bool up = false;
    /// Mb/s.
    std::uint32_t speed = 0;
    std::uint16_t down_count = 0;
    friend bool operator==(const LinkState&, const LinkState&) = default;
};

/// The card's network port: configuration, link state, module, and the port info block in guest memory (from
/// PORT_INIT to PORT_RESET). The link is up when there is a carrier and the driver has not switched the port
/// off. Thread: device.
class Port {
  public:
    /// Everything passed must outlive this.
    Port(const Profile& profile, mem::GuestMemory& memory, TrafficStats& stats);

    /// Called with every new state of the link, after guest memory has been updated.
    void on_link_change(std::function<void(const LinkState&)> handler) { link_handler_ = std::move(handler); }

    /// PORT_IDENTIFY, PORT_INIT (with the configuration in `data`), PORT_SETATTR; PORT_RESET and resets.
    wire::ionic::Status identify(std::uint8_t index, MutableBytes data) const;
    wire::ionic::Status init(const wire::ionic::PortInitCommand& command, Bytes data);
    wire::ionic::Status set_attribute(const wire::ionic::PortSetAttributeCommand& command);
    void reset();

    /// The cable is plugged in or pulled out.
    void set_carrier(bool carrier);
    [[nodiscard]] const LinkState& link() const { return link_; }

    /// Copies the statistics to guest memory, if it has been told where.
    void publish_stats();

  private:
    void apply();
    void publish_config_and_status();
    template <WireValue T>
    bool publish(std::size_t offset, const T& value);
    [[nodiscard]] static wire::ionic::PortConfig default_config(const Profile& profile);

    const Profile& profile_;
    mem::GuestMemory& memory_;
    TrafficStats& stats_;
    TransceiverMemory transceiver_;
    std::function<void(const LinkState&)> link_handler_;
    wire::ionic::PortConfig config_;
    std::optional<mem::Iova> info_;
    bool carrier_ = true;
    LinkState link_;
};

}  // namespace ernic::ionic
