// SPDX-License-Identifier: MIT
#pragma once

#include <stdexcept>
#include <string>

namespace ernic::guest_sim {

/// The simulated guest met something a driver would call a bug of the device (or of the test).
class GuestError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// GuestError with the reason of the last system call.
[[noreturn]] void throw_errno(const std::string& what);

/// Throws GuestError unless `condition` holds.
inline void require(bool condition, const char* what) {
    if (!condition) {
        throw GuestError(what);
    }
}

}  // namespace ernic::guest_sim
