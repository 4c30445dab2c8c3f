// SPDX-License-Identifier: MIT
#include "net/fault_rule.hpp"

#include <algorithm>

namespace ernic::net {
namespace {

/// A rate limit that has more than this in front of it drops what comes (the queue of a slow link is finite).
constexpr Nanoseconds kLongestBacklog = 1'000'000'000;
constexpr std::uint64_t kNanosecondsPerSecond = 1'000'000'000;

template <typename T>
bool agrees(const std::optional<T>& wanted, const std::optional<T>& got) {
    return !wanted || wanted == got;
}

}  // namespace

bool FaultRule::matches(const Crossing& crossing) const {
    const bool is_frame = crossing.frame != nullptr;
    if (is_frame ? !spec_.frames : !spec_.messages) {
        return false;
    }
    if ((spec_.direction == Direction::FromGuest && !crossing.path.from_guest) ||
        (spec_.direction == Direction::ToGuest && !crossing.path.to_guest)) {
        return false;
    }
    if (!agrees(spec_.from, std::optional(crossing.source)) ||
        !agrees(spec_.to, std::optional(crossing.destination))) {
        return false;
    }
    if (spec_.kind == FaultKind::Corrupt && !crossing.has_data()) {
        return false;
    }
    if (is_frame) {
        const bool tagged = spec_.ether_type == wire::kEtherTypeVlan && crossing.tagged;
        return (tagged || agrees(spec_.ether_type, std::optional(crossing.ether_type))) &&
               agrees(spec_.protocol, crossing.protocol);
    }
    const Message& message = *crossing.message;
    return spec_.opcodes.has(message) &&
           (!spec_.qp || spec_.qp == message.destination_qpn || spec_.qp == message.source_qpn);
}

bool FaultRule::hit() {
    ++seen_;
    if (exhausted() || seen_ <= spec_.after || (seen_ - spec_.after) % spec_.every != 0) {
        return false;
    }
    if (spec_.probability < 1 && random_.fraction() >= spec_.probability) {
        return false;
    }
    ++hits_;
    return true;
}

Nanoseconds FaultRule::delayed(Nanoseconds from) {
    return from + spec_.delay + (spec_.jitter == 0 ? 0 : random_.next() % spec_.jitter);
}

std::optional<Nanoseconds> FaultRule::paced(Nanoseconds from, std::uint64_t bytes) {
    const Nanoseconds start = std::max(from, free_at_);
    if (start - from > kLongestBacklog) {
        return std::nullopt;
    }
    // It has arrived when its last bit is through.
    free_at_ = start + bytes * 8 * kNanosecondsPerSecond / spec_.bits_per_second;
    return free_at_;
}

}  // namespace ernic::net
