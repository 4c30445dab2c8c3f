// SPDX-License-Identifier: MIT
#include "guest_sim/error.hpp"

#include <cerrno>
#include <cstring>

namespace ernic::guest_sim {

void throw_errno(const std::string& what) {
    throw GuestError(what + ": " + std::strerror(errno));
}

}  // namespace ernic::guest_sim
