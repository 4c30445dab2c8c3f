// SPDX-License-Identifier: MIT
/// LIF_SETATTR and LIF_GETATTR.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "ionic/lif.hpp"
#include "ionic/limits.hpp"

namespace ernic::ionic {
namespace {

using wire::ionic::LifAttribute;
using wire::ionic::LifState;
namespace lif_feature = wire::ionic::lif_feature;

/// What the card does. Tunnel offloads and time stamps come when they are implemented.
constexpr std::uint64_t kSupportedFeatures =
    lif_feature::kVlanTxTag | lif_feature::kVlanRxStrip | lif_feature::kVlanRxFilter | lif_feature::kRxHash |
    lif_feature::kRxChecksum | lif_feature::kTxScatterGather | lif_feature::kTxChecksum | lif_feature::kTso |
    lif_feature::kTsoIpv6 | lif_feature::kTsoEcn;

template <WireValue T>
T value_of(const wire::ionic::LifAttributeCommand& command) {
    static_assert(sizeof(T) <= sizeof command.value);
    return *read_value<T>(command.value);
}

template <WireValue T>
void put(MutableBytes value, const T& content) {
    std::copy_n(bytes_of(content).begin(), std::min(sizeof(T), value.size()), value.begin());
}

}  // namespace

Lif::Status Lif::set_attribute(const wire::ionic::LifAttributeCommand& command, std::uint64_t& features) {
    if (command.index.get() != 0) {
        return Status::Invalid;
    }
    switch (static_cast<LifAttribute>(command.attribute)) {
        case LifAttribute::State: {
            // Advisory: the driver quiesces after it has disabled the queues and never sets Enable again
            // (ionic 7.2, ionic_lif_quiesce).
            const auto state = value_of<std::uint8_t>(command);
            if (state > static_cast<std::uint8_t>(LifState::Disable)) {
                return Status::Invalid;
            }
            config_.state = state;
            break;
        }
        case LifAttribute::Name:
            config_.name = value_of<decltype(config_.name)>(command);
            break;
        case LifAttribute::Mtu: {
            const std::uint32_t mtu = value_of<le32>(command).get();
            if (mtu < kMinMtu || mtu > profile_.max_frame_size - kFrameOverhead) {
                return Status::OutOfRange;
            }
            config_.mtu.set(mtu);
            if (mtu_handler_) {
                mtu_handler_(mtu);
            }
            break;
        }
        case LifAttribute::Mac:
            return set_mac(value_of<wire::MacAddress>(command));
        case LifAttribute::Features:
            return set_features(value_of<le64>(command).get(), features);
        case LifAttribute::Rss:
            return rss_.configure(value_of<wire::ionic::RssAttribute>(command), memory_);
        case LifAttribute::TxTimestamp:
            return value_of<le16>(command).get() == 0 ? Status::Success : Status::NotSupported;
        case LifAttribute::StatsControl:
        default:
            return Status::NotSupported;
    }
    return Status::Success;
}

Lif::Status Lif::set_mac(const wire::MacAddress& mac) {
    if (mac.multicast() || mac.zero()) {
        return Status::Invalid;
    }
    config_.mac = mac;
    return Status::Success;
}

Lif::Status Lif::set_features(std::uint64_t wanted, std::uint64_t& granted) {
    granted = wanted & kSupportedFeatures;
    config_.features.set(granted);
    return Status::Success;
}

Lif::Status Lif::get_attribute(const wire::ionic::LifAttributeCommand& command, MutableBytes value) const {
    if (command.index.get() != 0) {
        return Status::Invalid;
    }
    switch (static_cast<LifAttribute>(command.attribute)) {
        case LifAttribute::State:
            put(value, config_.state);
            break;
        case LifAttribute::Name:
            put(value, config_.name);  // its first bytes; a completion has no room for more
            break;
        case LifAttribute::Mtu:
            put(value, config_.mtu);
            break;
        case LifAttribute::Mac:
            put(value, config_.mac);
            break;
        case LifAttribute::Features:
            put(value, config_.features);
            break;
        case LifAttribute::TxTimestamp:
            put(value, le16(0));
            break;
        case LifAttribute::Rss:
        case LifAttribute::StatsControl:
        default:
            return Status::NotSupported;
    }
    return Status::Success;
}

}  // namespace ernic::ionic
