// SPDX-License-Identifier: MIT
#pragma once

#include "net/frame.hpp"
#include "net/message.hpp"

namespace ernic::net {

/// Watches everything that crosses the segment, before it is delivered: packet capture. Thread: device.
class Observer {
  public:
    virtual ~Observer() = default;
    /// A frame as its sender handed it over. Must copy what it keeps, and must not send.
    virtual void on_frame(const Frame& frame) = 0;
    /// A message fragment. Must copy what it keeps, and must not send.
    virtual void on_message(const Message& message) = 0;
};

}  // namespace ernic::net
