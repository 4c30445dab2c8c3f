// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "ionic/profile.hpp"

namespace ernic::ionic {

/// The 256 bytes of a module's management memory (SFF-8636: lower page and upper page 00h) that `ethtool -m`
/// decodes.
using TransceiverMemory = std::array<std::uint8_t, 256>;

/// Memory of a healthy QSFP28 module as the profile names it.
TransceiverMemory make_transceiver_memory(const TransceiverProfile& profile, std::string_view serial_number);

}  // namespace ernic::ionic
