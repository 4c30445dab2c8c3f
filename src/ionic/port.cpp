// SPDX-License-Identifier: MIT
#include "ionic/port.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace ernic::ionic {
namespace {

using wire::ionic::PortAttribute;
using wire::ionic::PortConfig;
using wire::ionic::PortInfo;
using wire::ionic::PortState;
using wire::ionic::Status;

constexpr std::uint8_t kIdentityVersion = 1;
constexpr std::uint8_t kTypeEthernet = 1;
/// Mb/s that `ethtool -s speed` may ask for; an emulated wire runs at all of them.
constexpr std::array<std::uint32_t, 9> kSpeeds = {1'000,   10'000,  25'000,  40'000, 50'000,
                                                  100'000, 200'000, 400'000, 800'000};
constexpr std::uint8_t kFecNone = 0;
constexpr std::uint8_t kFecFirecode = 1;
constexpr std::uint8_t kFecReedSolomon = 2;
/// Low nibble: 0 none, 1 link, 2 priority flow control; 0x10 transmit, 0x20 receive.
constexpr std::uint8_t kPauseTypeMask = 0x0f;
constexpr std::uint8_t kPauseMask = 0x3f;
constexpr std::uint8_t kPauseMaxType = 2;

bool valid_pause(std::uint32_t value) {
    return (value & ~std::uint32_t{kPauseMask}) == 0 && (value & kPauseTypeMask) <= kPauseMaxType;
}

bool valid_state(std::uint32_t value) {
    return value == static_cast<std::uint32_t>(PortState::Down) ||
           value == static_cast<std::uint32_t>(PortState::Up);
}

bool valid_speed(std::uint32_t value) {
    return std::find(kSpeeds.begin(), kSpeeds.end(), value) != kSpeeds.end();
}

bool valid_config(const PortConfig& config, std::uint32_t max_mtu) {
    return valid_speed(config.speed.get()) && valid_state(config.state) && config.mtu.get() <= max_mtu &&
           config.fec_type <= kFecReedSolomon && valid_pause(config.pause_type) && config.autoneg <= 1 &&
           config.loopback_mode == 0;
}

}  // namespace

Port::Port(const Profile& profile, mem::GuestMemory& memory, TrafficStats& stats)
    : profile_(profile),
      memory_(memory),
      stats_(stats),
      transceiver_(make_transceiver_memory(profile.transceiver, profile.serial_number)),
      config_(default_config(profile)) {
    link_ = {.up = true, .speed = profile.link_speed, .down_count = 0};
}

PortConfig Port::default_config(const Profile& profile) {
    PortConfig config{};
    config.speed.set(profile.link_speed);
    config.mtu.set(profile.max_frame_size);
    config.state = static_cast<std::uint8_t>(PortState::Up);
    config.autoneg = 1;
    config.fec_type = kFecReedSolomon;
    return config;
}

Status Port::identify(std::uint8_t index, MutableBytes data) const {
    if (index != 0) {
        return Status::Invalid;
    }
    wire::ionic::PortIdentity identity{};
    identity.version = kIdentityVersion;
    identity.type = kTypeEthernet;
    identity.lane_count = profile_.lanes;
    identity.autoneg = 1;
    identity.min_frame_size.set(profile_.min_frame_size);
    identity.max_frame_size.set(profile_.max_frame_size);
    identity.fec_type = {kFecNone, kFecFirecode, kFecReedSolomon, 0};
    std::transform(kSpeeds.begin(), kSpeeds.end(), identity.speeds.begin(),
                   [](std::uint32_t v) { return le32(v); });
    identity.config = config_;
    std::copy_n(bytes_of(identity).begin(), std::min(sizeof identity, data.size()), data.begin());
    return Status::Success;
}

Status Port::init(const wire::ionic::PortInitCommand& command, Bytes data) {
    const auto config = read_value<PortConfig>(data);
    if (command.index != 0 || !config || !valid_config(*config, profile_.max_frame_size)) {
        return Status::Invalid;
    }
    const mem::Iova info{command.info_address.get()};
    if (memory_.at(info, sizeof(PortInfo), mem::Access::Write) == nullptr) {
        return Status::BadAddress;
    }
    info_ = info;
    config_ = *config;
    wire::ionic::TransceiverStatus transceiver{};
    transceiver.state = profile_.transceiver.phy != 0 ? wire::ionic::kTransceiverSpromRead : 0;
    transceiver.phy = profile_.transceiver.phy;
    transceiver.pid.set(profile_.transceiver.pid);
    transceiver.sprom = transceiver_;
    publish(offsetof(PortInfo, transceiver), transceiver);
    // extra_stats are left alone: the driver has filled them with "not provided".
    publish_stats();
    apply();
    return Status::Success;
}

Status Port::set_attribute(const wire::ionic::PortSetAttributeCommand& command) {
    if (command.index != 0) {
        return Status::Invalid;
    }
    PortConfig config = config_;
    const std::uint32_t value = command.value.get();
    const auto byte = static_cast<std::uint8_t>(value);
    switch (static_cast<PortAttribute>(command.attribute)) {
        case PortAttribute::State:
            config.state = byte;
            break;
        case PortAttribute::Speed:
            config.speed.set(value);
            break;
        case PortAttribute::Mtu:
            config.mtu.set(value);
            break;
        case PortAttribute::Autoneg:
            config.autoneg = byte;
            break;
        case PortAttribute::Fec:
            config.fec_type = byte;
            break;
        case PortAttribute::Pause:
            config.pause_type = byte;
            break;
        case PortAttribute::Loopback:
            if (byte != 0) {
                return Status::NotSupported;
            }
            break;
        case PortAttribute::StatsControl:
        default:
            return Status::NotSupported;
    }
    if (!valid_config(config, profile_.max_frame_size)) {
        return Status::Invalid;
    }
    config_ = config;
    apply();
    return Status::Success;
}

void Port::set_carrier(bool carrier) {
    carrier_ = carrier;
    apply();
}

void Port::apply() {
    LinkState now = link_;
    now.up = carrier_ && config_.state == static_cast<std::uint8_t>(PortState::Up);
    now.speed = config_.speed.get();
    if (link_.up && !now.up) {
        ++now.down_count;
    }
    const bool changed = now != link_;
    link_ = now;
    publish_config_and_status();
    if (changed && link_handler_) {
        link_handler_(link_);
    }
}

void Port::publish_config_and_status() {
    wire::ionic::PortStatus status{};
    status.speed.set(link_.up ? link_.speed : 0);
    status.status =
        static_cast<std::uint8_t>(link_.up ? wire::ionic::LinkStatus::Up : wire::ionic::LinkStatus::Down);
    status.link_down_count.set(link_.down_count);
    status.fec_type = config_.fec_type;
    publish(offsetof(PortInfo, config), config_);
    publish(offsetof(PortInfo, status), status);
}

void Port::publish_stats() {
    publish(offsetof(PortInfo, stats), stats_.port_block());
}

template <WireValue T>
bool Port::publish(std::size_t offset, const T& value) {
    const auto target = info_ ? info_->plus(offset) : std::nullopt;
    return target && memory_.write(*target, bytes_of(value));
}

void Port::reset() {
    info_.reset();
    config_ = default_config(profile_);
    stats_.reset_port();
    // Nobody is told: whoever resets the port has reset the LIF before, or does so next.
    link_ = {.up = carrier_, .speed = profile_.link_speed, .down_count = 0};
}

}  // namespace ernic::ionic
