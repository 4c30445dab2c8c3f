// SPDX-License-Identifier: MIT
#pragma once

#include "net/frame.hpp"
#include "net/mac_table.hpp"
#include "net/message.hpp"

namespace ernic::net {

/// Which way something crosses the segment, seen from the guest. What a guest sends to itself goes both ways;
/// what others say to each other goes neither.
struct Path {
    bool from_guest = false;
    bool to_guest = false;
};

/// Decides what becomes of everything that crosses the segment: fault injection. Thread: device.
class Filter {
  public:
    virtual ~Filter() = default;
    /// True: it goes on as it is. False: the filter has taken it, and gives it to Segment::deliver() or
    /// Bridge::deliver() itself, now or later, as often as it likes. May do so from inside.
    virtual bool pass(const Message& message, Path path) = 0;
    /// The same for a frame that came from the bridge port `from`.
    virtual bool pass(const Frame& frame, MacTable::Port from, Path path) = 0;
};

}  // namespace ernic::net
