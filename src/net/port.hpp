// SPDX-License-Identifier: MIT
#pragma once

#include "base/clock.hpp"
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

    /// False: a message would have to queue here, so a sender that can wait should, and listen
    /// (Segment::listen()) to hear when to go on. A port that is not ready must call Segment::made_room()
    /// once it is. For a sender that `may_lose` messages, a port that
    /// has not been ready for long is so again: it drops what it cannot queue. Thread: device. Fails: never.
    [[nodiscard]] virtual bool ready(bool may_lose) const {
        (void)may_lose;
        return true;
    }

    /// True when everything delivered before `since` has been handled at the far end, or is lost: an answer
    /// that has not come by now will not come. While false a sender need not think of repeating.
    /// Thread: device. Fails: never.
    virtual bool settled(Nanoseconds since) {
        (void)since;
        return true;
    }

    /// `port`, which was not ready, may be. To those who listen. Thread: device.
    virtual void on_room(Port& port) { (void)port; }
    /// `port` has been detached: it owns no address, and may cease to exist. To those who listen.
    virtual void on_gone(Port& port) { (void)port; }
    /// Who sits at `port` has forgotten all its queue pairs (its device was reset). To those who listen.
    virtual void on_reset(Port& port) { (void)port; }

    /// It stands for somebody in another process, to whom nothing of a third is passed on.
    [[nodiscard]] virtual bool remote() const { return false; }
};

}  // namespace ernic::net
