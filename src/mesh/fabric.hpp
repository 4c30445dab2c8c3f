// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/event_loop.hpp"
#include "base/log.hpp"
#include "base/result.hpp"
#include "mesh/acceptor.hpp"
#include "mesh/config.hpp"
#include "mesh/counters.hpp"
#include "mesh/frame_switch.hpp"
#include "mesh/introduction.hpp"
#include "mesh/numbers.hpp"
#include "mesh/peer.hpp"
#include "mesh/redial.hpp"
#include "net/bridge.hpp"
#include "net/segment.hpp"

namespace ernic::mesh {

/// One peer, for people.
struct PeerStatus {
    std::string name;
    std::string state;
    std::uint32_t number = kNoNumber;
    std::string address;
    bool is_manager = false;
    Nanoseconds round_trip = 0;
    Nanoseconds silent = 0;
    std::uint64_t queued = 0;
    std::uint64_t connects = 0;
    Peer::Traffic traffic;
    std::vector<wire::MacAddress> macs;
};

/// This node's part of the mesh: who else there is, a connection to each, and their ports on the segment.
///
/// The manager knows nodes because they join it; it tells each who else is there, and then two of them
/// connect directly: the one with the lower id dials. Without their manager nodes keep what they have, and
/// reach each other again at the addresses they know.
///
/// Thread: device. Owns: all connections and peers.
class Fabric final : public IntroductionOwner, public PeerOwner {
  public:
    /// All references must outlive this.
    Fabric(Config config, net::Segment& segment, net::FramePort& port, EventLoop& loop, Counters& counters,
           const log::Logger& log);
    ~Fabric() override;
    Fabric(const Fabric&) = delete;
    Fabric& operator=(const Fabric&) = delete;

    /// Listens, and dials the manager. Fails: Io with one sentence.
    [[nodiscard]] Status start();
    /// Where this node listens. Precondition: started.
    [[nodiscard]] const Endpoint& endpoint() const { return acceptor_.endpoint(); }

    /// Writes what has been collected and clears up; to be called in every round of the loop.
    void step();
    /// Looks for messages without being woken; true when there were some.
    bool poll();

    /// `listener` hears when the first connection stands, and when the last one has gone.
    void on_connected(std::function<void(bool any)> listener) { connected_listener_ = std::move(listener); }
    [[nodiscard]] bool connected() const { return open_ != 0; }
    [[nodiscard]] std::vector<PeerStatus> peers() const;
    /// The number a manager has given; kNoNumber: none yet.
    [[nodiscard]] std::uint32_t number() const { return number_; }

    // IntroductionOwner
    void introduced(Introduction& introduction) override;
    void not_introduced(Introduction& introduction, const std::string& why) override;
    // PeerOwner
    bool on_peer_control(Peer& peer, const Incoming& incoming) override;
    void on_peer_end(Peer& peer, LinkEnd why) override;

  private:
    struct Entry {
        std::unique_ptr<Peer> peer;
        std::unique_ptr<Redial> redial;
    };

    [[nodiscard]] Hello own_hello() const;
    void accept(UniqueFd socket, const Endpoint& from);
    /// `expected`: who should answer there; nullopt: whoever is the manager.
    void dial(Redial& redial, const Endpoint& to, std::optional<NodeId> expected);
    void dial_manager();
    void dial_peer(const NodeId& id);
    void evict_oldest_stranger();
    Redial* redial_of(const Introduction& introduction);

    /// Fails: null when the mesh is full.
    Peer* find_or_make(const NodeId& id);
    /// Fails: a sentence for the log.
    std::string why_unwelcome(const Introduction& introduction) const;
    void open(Peer& peer, Introduction& introduction);
    void disconnect(Peer& peer);
    /// Dials it, waits for it, or forgets it, as is right for a peer without connection.
    void follow_up(Peer& peer);
    void forget_lost();

    // What a manager does.
    void welcome(Peer& peer, std::uint32_t wanted);
    void tell_all(const Node& node, const Peer& about);
    static void send_list(Peer& to, const NodeList& list);
    // What a node does that has one.
    bool on_nodes(const Incoming& incoming);

    bool on_announce(Peer& peer, const Incoming& incoming);
    /// Gives the peer the addresses it has announced and nobody else has; `tell` of those it is refused.
    void claim(Peer& peer, bool tell);
    /// An address may have become free: those who were refused one try again.
    void claim_refused();
    void announce_to(Peer& peer);
    void count_open(int by);
    /// Keeps many nodes from doing the same at the same time.
    std::uint32_t next_random();
    void on_tick();

    Config config_;
    net::Segment& segment_;
    EventLoop& loop_;
    Counters& counters_;
    log::Logger log_;
    log::Limiter stranger_limiter_;
    log::Limiter mac_limiter_;
    log::Limiter dial_limiter_;
    log::Limiter connect_limiter_;
    log::Limiter lost_limiter_;
    LinkPool pool_;
    Surroundings around_;
    NodeId id_;
    std::uint32_t number_ = kNoNumber;
    Numbers numbers_;
    FrameSwitch switch_;
    std::unordered_map<NodeId, Entry> peers_;
    std::vector<bool> slots_;
    std::size_t open_ = 0;
    std::list<std::unique_ptr<Introduction>> introductions_;
    Redial manager_redial_;
    /// Ended, but perhaps still on the call stack until the next step.
    std::vector<std::unique_ptr<Link>> ended_links_;
    std::vector<NodeId> lost_;
    bool macs_changed_ = false;
    /// A peer has given up addresses.
    bool claims_changed_ = false;
    Timer tick_;
    Nanoseconds next_tick_ = 0;
    std::uint32_t random_ = 0;
    std::function<void(bool)> connected_listener_;
    Acceptor acceptor_;
};

}  // namespace ernic::mesh
