// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/clock.hpp"
#include "mesh/counters.hpp"
#include "mesh/limits.hpp"
#include "mesh/peer.hpp"
#include "net/bridge.hpp"
#include "net/frame.hpp"
#include "net/mac_table.hpp"

namespace ernic::mesh {

/// All peers together as one port of the bridge, so that what comes from one of them never goes to another:
/// every pair of nodes has its own connection, and there is no loop. Behind the port it learns which peer has
/// which MAC address; what is unknown goes once to each. Thread: device. Owns: nothing.
class FrameSwitch final : public net::FrameSink {
  public:
    /// All references must outlive this.
    FrameSwitch(net::FramePort& port, net::Segment& segment, const Clock& clock, Counters& counters);
    ~FrameSwitch() override;
    FrameSwitch(const FrameSwitch&) = delete;
    FrameSwitch& operator=(const FrameSwitch&) = delete;

    /// `peer` has a connection, or no longer.
    void add(Peer& peer);
    void remove(Peer& peer);

    /// From the segment to peers.
    void transmit(const net::Frame& frame) override;
    /// From a peer to the segment. Fails: false when it makes no sense.
    bool receive(Peer& peer, const Incoming& incoming);

  private:
    void send(Peer& peer, const HeadBuffer& head, const net::Frame& frame);

    net::FramePort& port_;
    net::Segment& segment_;
    const Clock& clock_;
    Counters& counters_;
    net::MacTable table_;
    std::array<Peer*, kMaxNodes> by_slot_{};
    std::vector<Peer*> open_;
};

}  // namespace ernic::mesh
