// SPDX-License-Identifier: MIT
#pragma once

#include <array>

#include "base/log.hpp"
#include "vfio_user/counters.hpp"

namespace ernic::vfio_user {

/// When each kind of line about clients was last printed. Belongs to the server and not to a connection, so
/// that a client that comes again and again is limited like one that stays. Thread: device.
struct LogLimits {
    log::Limiter connected;
    log::Limiter disconnected;
    log::Limiter descriptors_lost;
    log::Limiter descriptors_stray;
    log::Limiter stream_lost;
    log::Limiter too_slow;
    log::Limiter memory_shrunk;
    log::Limiter memory_unreachable;
    log::Limiter memory_not_shared;
    std::array<log::Limiter, kRejectCount> rejects{};
};

}  // namespace ernic::vfio_user
