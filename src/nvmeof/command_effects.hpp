// SPDX-License-Identifier: MIT
#pragma once

#include <array>

#include "wire/nvme_log.hpp"

namespace ernic::nvmeof {

/// Which commands there are, and which of them change what is stored (log page 05h). Thread: any.
wire::nvme::EffectsLog command_effects();
/// Which features there are (log page 12h). Thread: any.
std::array<le32, 256> feature_effects();

}  // namespace ernic::nvmeof
