// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "device.hpp"

/// Checks transfers with another machine that runs this program too: `host` is its IPv4 address, or "listen"
/// to wait for it. Throws Failure; returns a line that tells what was done.
std::string run_across(const Device& device, const std::string& host);
