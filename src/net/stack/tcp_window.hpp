// SPDX-License-Identifier: MIT
#pragma once

#include "net/stack/filter.hpp"

namespace ernic::net::stack {

/// True for a TCP segment that leaves a gap behind what its connection has received, and ends beyond the
/// window that it was told. No honest peer sends that (RFC 9293 3.8.6). lwIP 2.1 keeps the first such segment
/// uncut (tcp_receive), and ends the process by an assertion when the gap is filled.
///
/// `what` is a packet that is handed to lwIP next. Thread: device. Fails: never.
[[nodiscard]] bool overruns_window(const Classified& what);

}  // namespace ernic::net::stack
