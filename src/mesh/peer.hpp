// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "mesh/counters.hpp"
#include "mesh/link.hpp"
#include "mesh/message_codec.hpp"
#include "mesh/protocol.hpp"
#include "net/port.hpp"
#include "net/segment.hpp"

namespace ernic::mesh {

class Peer;

/// Who owns the peers. Thread: device. None may destroy the peer.
class PeerOwner {
  public:
    virtual ~PeerOwner() = default;
    /// Something that is neither an RDMA message nor a heartbeat. Fails: false when it makes no sense.
    virtual bool on_peer_control(Peer& peer, const Incoming& incoming) = 0;
    virtual void on_peer_end(Peer& peer, LinkEnd why) = 0;
};

/// Another node, as a port of the segment: messages to the MAC addresses of its guest go to it over a link,
/// and what it sends is handed to the segment. A peer is trusted with nothing: a message must come from one
/// of its own addresses and go to one that is here. Thread: device. Owns: the link.
class Peer final : public net::Port, public LinkUser {
  public:
    /// All references must outlive the peer. `slot` is its number in tables of this node.
    Peer(const NodeId& id, std::uint16_t slot, net::Segment& segment, const Clock& clock, Counters& counters,
         PeerOwner& owner);
    ~Peer() override;
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;

    [[nodiscard]] const NodeId& id() const { return id_; }
    [[nodiscard]] std::uint16_t slot() const { return slot_; }
    /// What is known of it, by itself and by the manager.
    Node node;
    /// It introduces nodes to this one.
    bool is_manager = false;
    /// The manager, which this node is, has given it a number.
    bool joined = false;
    /// A manager says that it is there.
    bool listed = false;
    /// It has announced an address that somebody else has.
    bool refused = false;

    [[nodiscard]] bool open() const { return link_ != nullptr; }
    /// Takes a link, in place of an older one. The link must have this as its user. Returns the older one.
    std::unique_ptr<Link> open(std::unique_ptr<Link> link);
    /// Ends the connection; returns what is left of it, to be destroyed later.
    std::unique_ptr<Link> close();

    /// Sends what is not lost as long as the link lives.
    void send_control(FrameType type, Bytes head, const mem::SpanList* body = nullptr);
    /// Sends an Ethernet frame; false when it was lost.
    bool send_frame(const HeadBuffer& head, const mem::SpanList& data);
    bool receive() { return link_ != nullptr && link_->receive(); }

    /// What it has announced, and which of these it was given.
    [[nodiscard]] const std::vector<wire::MacAddress>& announced() const { return announced_; }
    /// Replaces what it has announced, and gives up what it was given.
    void announce(std::vector<wire::MacAddress> macs);
    [[nodiscard]] bool has(const wire::MacAddress& mac) const;

    /// Once in a while: asks for a sign of life when `heartbeat` has passed, gives memory back.
    void tick(Nanoseconds now, Nanoseconds heartbeat);
    /// When something was last heard of it.
    [[nodiscard]] Nanoseconds heard() const { return heard_; }
    /// It shall count as heard of now: this process has slept.
    void excuse(Nanoseconds now) { heard_ = now; }

    // net::Port
    void deliver(const net::Message& message) override;
    [[nodiscard]] bool ready(bool may_lose) const override;
    bool settled(Nanoseconds since) override;
    [[nodiscard]] bool remote() const override { return true; }

    // LinkUser
    bool on_incoming(const Incoming& incoming) override;
    [[nodiscard]] bool takes_streams() const override { return !segment_.watched(); }
    void on_ready() override { segment_.made_room(*this); }
    void on_end(LinkEnd why) override { owner_.on_peer_end(*this, why); }

    struct Traffic {
        std::uint64_t messages_sent = 0;
        std::uint64_t messages_received = 0;
        std::uint64_t bytes_sent = 0;
        std::uint64_t bytes_received = 0;
        std::uint64_t dropped = 0;
    };
    [[nodiscard]] const Traffic& traffic() const { return traffic_; }
    [[nodiscard]] std::size_t queued() const { return link_ != nullptr ? link_->queued() : 0; }
    /// 0: not measured yet.
    [[nodiscard]] Nanoseconds round_trip() const { return round_trip_; }
    /// Times a connection was made.
    [[nodiscard]] std::uint64_t connects() const { return connects_; }

  private:
    bool on_message(const Incoming& incoming);
    bool on_pong(Bytes head);
    void ping(Nanoseconds now);

    NodeId id_;
    std::uint16_t slot_;
    net::Segment& segment_;
    const Clock& clock_;
    Counters& counters_;
    PeerOwner& owner_;
    std::unique_ptr<Link> link_;
    std::vector<wire::MacAddress> announced_;
    Traffic traffic_;
    Nanoseconds heard_ = 0;
    Nanoseconds pinged_ = 0;
    /// A ping sent at pinged_ has not been answered.
    bool ping_open_ = false;
    /// Everything sent before has been handled by the peer.
    Nanoseconds settled_ = 0;
    Nanoseconds round_trip_ = 0;
    std::uint64_t connects_ = 0;
    /// Since when the link has not been ready, as far as noticed.
    mutable Nanoseconds blocked_ = 0;
};

}  // namespace ernic::mesh
