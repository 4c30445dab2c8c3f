// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/bytes.hpp"
#include "base/log.hpp"
#include "wire/vfio_user.hpp"

namespace ernic::vfio_user {

enum class Direction : std::uint8_t { Received, Sent };

/// Name of a command as in the protocol text, "?" for an unknown number.
std::string_view name(wire::vfio_user::Command command);

/// One debug line for one message. The caller asks logger.on(Debug) first, so that nothing is formatted
/// otherwise.
void trace(const log::Logger& logger, Direction direction, const wire::vfio_user::Header& header,
           Bytes payload, std::size_t fds);

}  // namespace ernic::vfio_user
