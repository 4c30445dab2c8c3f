// SPDX-License-Identifier: MIT
#pragma once

#include "net/message.hpp"

namespace ernic::net {

/// Somebody on the segment who can be sent RDMA messages: the guest's card, an in-process service, a mesh
/// peer.
class Port {
  public:
    virtual ~Port() = default;

    /// Takes one message fragment. May send messages from inside. Payload must be used before it returns.
    /// Thread: device. Fails: never; a message the port cannot use is dropped and counted.
    virtual void deliver(const Message& message) = 0;
};

}  // namespace ernic::net
