// SPDX-License-Identifier: MIT
// The mesh as a whole: connections, peers, addresses. fabric_membership.cpp has who introduces whom.
#include "mesh/fabric.hpp"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "net/mac_text.hpp"

namespace ernic::mesh {
namespace {

/// Peers are looked after this often at most, and at least.
constexpr Nanoseconds kShortestTick = 5'000'000;
constexpr Nanoseconds kLongestTick = 250'000'000;
/// So many sockets are asked in a busy-poll round; with more peers only waking tells.
constexpr std::size_t kPolledPeers = 4;

const char* text_of(LinkEnd why) {
    switch (why) {
        case LinkEnd::Closed:
            return "closed by the peer";
        case LinkEnd::Broken:
            return "broken";
        case LinkEnd::Protocol:
            return "the peer sent something that makes no sense";
        case LinkEnd::Forged:
            return "something was changed on its way";
        case LinkEnd::Congested:
            return "the peer takes nothing";
    }
    return "";
}

}  // namespace

Fabric::Fabric(Config config, net::Segment& segment, net::FramePort& port, EventLoop& loop,
               Counters& counters, const log::Logger& log)
    : config_(std::move(config)),
      segment_(segment),
      loop_(loop),
      counters_(counters),
      log_(log),
      around_{.loop = loop_, .config = config_, .counters = counters_, .pool = pool_},
      switch_(port, segment, loop.clock(), counters),
      slots_(kMaxNodes, false),
      manager_redial_(loop, [this] { dial_manager(); }),
      tick_(loop, [this] { on_tick(); }),
      acceptor_(loop, counters, log,
                [this](UniqueFd socket, const Endpoint& from) { accept(std::move(socket), from); }) {
    fill_random(mutable_bytes_of(id_));
    fill_random(mutable_bytes_of(random_));
    segment_.on_local_change([this] { macs_changed_ = true; });
    if (config_.is_manager) {
        number_ = 0;
    }
}

Fabric::~Fabric() {
    segment_.on_local_change(nullptr);
}

Status Fabric::start() {
    if (const Status listening = acceptor_.listen(config_.listen); !listening) {
        return listening.error();
    }
    log_.info("{} name={} listening on {}", config_.is_manager ? "manager" : "worker", config_.name,
              endpoint().to_string());
    if (!config_.is_manager) {
        manager_redial_.soon();
    }
    return Done{};
}

void Fabric::step() {
    if (macs_changed_) {
        macs_changed_ = false;
        for (auto& [id, entry] : peers_) {
            announce_to(*entry.peer);
        }
        for (auto& [id, entry] : peers_) {
            claim(*entry.peer, true);
        }
    }
    if (claims_changed_) {
        claim_refused();
    }
    while (!pool_.dirty.empty()) {
        pool_.dirty.back()->flush();  // takes itself out of the list
    }
    ended_links_.clear();
    introductions_.remove_if([](const auto& one) { return one->over(); });
    forget_lost();
}

bool Fabric::poll() {
    if (open_ > kPolledPeers) {
        return false;
    }
    // What arrives may make further peers known.
    std::array<Peer*, kPolledPeers> polled{};
    std::size_t count = 0;
    for (auto& [id, entry] : peers_) {
        if (entry.peer->open() && count < polled.size()) {
            polled[count++] = entry.peer.get();
        }
    }
    bool any = false;
    for (std::size_t i = 0; i < count; ++i) {
        any = polled[i]->receive() || any;
    }
    return any;
}

// Connections.

Hello Fabric::own_hello() const {
    Hello hello;
    hello.capabilities = (config_.key ? kCapabilityKey : 0U) | (config_.is_manager ? kCapabilityManager : 0U);
    hello.number = number_;
    hello.id = id_;
    hello.endpoint = endpoint();
    hello.name = config_.name;
    return hello;
}

std::uint32_t Fabric::next_random() {
    random_ = random_ * 1664525U + 1013904223U;  // Numerical Recipes; nothing secret depends on it
    return random_;
}

void Fabric::accept(UniqueFd socket, const Endpoint& from) {
    const auto strangers = std::count_if(introductions_.begin(), introductions_.end(),
                                         [](const auto& one) { return !one->over() && !one->dialed(); });
    if (static_cast<std::size_t>(strangers) >= kMaxStrangers) {
        evict_oldest_stranger();
    }
    introductions_.push_back(Introduction::accept(std::move(socket), from, own_hello(), around_, *this));
}

void Fabric::evict_oldest_stranger() {
    for (const auto& one : introductions_) {
        if (!one->over() && !one->dialed()) {
            counters_.strangers_evicted.add();
            one->abandon();
            return;
        }
    }
}

void Fabric::not_introduced(Introduction& introduction, const std::string& why) {
    if (introduction.dialed()) {
        counters_.dials_failed.add();
        if (!why.empty()) {
            log_.warn_limited(dial_limiter_, "node at {}: {}", introduction.remote().to_string(), why);
        }
        if (Redial* const redial = redial_of(introduction)) {
            redial->set(nullptr);
            redial->later(next_random());
        }
    } else if (!why.empty()) {
        log_.warn_limited(stranger_limiter_, "connection from {} closed: {}",
                          introduction.remote().to_string(), why);
    }
}

void Fabric::introduced(Introduction& introduction) {
    Redial* const redial = redial_of(introduction);
    if (const std::string why = why_unwelcome(introduction); !why.empty()) {
        introduction.abandon();
        not_introduced(introduction, why);
        return;
    }
    Peer* const peer = find_or_make(introduction.hello().id);
    if (peer == nullptr) {
        counters_.refused_nodes.add();
        introduction.abandon();
        not_introduced(introduction, "the mesh is full");
        return;
    }
    if (redial != nullptr) {
        redial->stop();
    }
    peer->is_manager = redial == &manager_redial_;
    open(*peer, introduction);
}

void Fabric::open(Peer& peer, Introduction& introduction) {
    std::unique_ptr<TcpLink> link = introduction.take_link();
    link->set_user(peer);
    const Hello& hello = introduction.hello();
    peer.node.name = hello.name;
    peer.node.endpoint = hello.endpoint;
    // Without a key everybody is on this host, and nobody may send the others elsewhere.
    if (hello.endpoint.address.unspecified() || (!config_.key && !hello.endpoint.loopback())) {
        peer.node.endpoint.address = introduction.remote().address;
    }
    if (peer.open()) {
        disconnect(peer);
    }
    (void)peer.open(std::move(link));
    switch_.add(peer);
    counters_.connects.add();
    count_open(1);
    log_.info_limited(connect_limiter_, "peer {} connected ({} {})", peer.node.name,
                      introduction.dialed() ? "to" : "from", introduction.remote().to_string());
    announce_to(peer);
    if (config_.is_manager) {
        welcome(peer, hello.number);
    } else if (hello.number != kNoNumber) {
        peer.node.number = hello.number;
    }
    if (!tick_.armed()) {
        on_tick();
    }
}

void Fabric::disconnect(Peer& peer) {
    switch_.remove(peer);
    if (auto link = peer.close()) {
        ended_links_.push_back(std::move(link));
        counters_.disconnects.add();
        count_open(-1);
    }
    claims_changed_ = true;
}

void Fabric::on_peer_end(Peer& peer, LinkEnd why) {
    switch (why) {
        case LinkEnd::Protocol:
            counters_.protocol_errors.add();
            break;
        case LinkEnd::Forged:
            counters_.forged.add();
            break;
        case LinkEnd::Congested:
            counters_.congested.add();
            break;
        case LinkEnd::Closed:
        case LinkEnd::Broken:
            break;
    }
    log_.info_limited(lost_limiter_, "peer {} lost: {}", peer.node.name, text_of(why));
    disconnect(peer);
    follow_up(peer);
}

void Fabric::count_open(int by) {
    const bool before = open_ != 0;
    open_ = by > 0 ? open_ + 1 : open_ - 1;
    counters_.peers_connected = open_;
    if (connected_listener_ && before != (open_ != 0)) {
        connected_listener_(open_ != 0);
    }
}

void Fabric::on_tick() {
    const Nanoseconds now = loop_.clock().now();
    // Who slept cannot blame others for not having heard of them.
    const bool overslept = next_tick_ != 0 && now - next_tick_ > config_.dead_after / 2;
    std::vector<Peer*> dead;
    bool any = false;
    for (auto& [id, entry] : peers_) {
        Peer& peer = *entry.peer;
        if (!peer.open()) {
            continue;
        }
        any = true;
        if (overslept) {
            peer.excuse(now);
        }
        if (now - peer.heard() > config_.dead_after) {
            dead.push_back(&peer);
        }
    }
    for (Peer* const peer : dead) {
        // A sign of life may wait in the socket.
        const Nanoseconds heard = peer->heard();
        (void)peer->receive();
        if (!peer->open() || peer->heard() != heard) {
            continue;
        }
        counters_.dead.add();
        log_.warn("peer {} lost: nothing heard for {} ms", peer->node.name,
                  (now - peer->heard()) / 1'000'000U);
        disconnect(*peer);
        follow_up(*peer);
    }
    for (auto& [id, entry] : peers_) {
        entry.peer->tick(now, config_.heartbeat);
    }
    if (any) {
        next_tick_ = now + std::clamp(config_.heartbeat / 2, kShortestTick, kLongestTick);
        tick_.arm(next_tick_);
    } else {
        next_tick_ = 0;
    }
}

// Addresses.

void Fabric::announce_to(Peer& peer) {
    const std::vector<std::byte> macs = encode_macs(segment_.local_macs());
    peer.send_control(FrameType::Announce, macs);
}

bool Fabric::on_announce(Peer& peer, const Incoming& incoming) {
    auto macs = decode_macs(incoming.head);
    if (!macs) {
        return false;
    }
    peer.announce(std::move(*macs));
    claim(peer, true);
    claims_changed_ = true;
    return true;
}

void Fabric::claim(Peer& peer, bool tell) {
    peer.refused = false;
    for (const wire::MacAddress& mac : peer.announced()) {
        const net::Port* const owner = segment_.owner(mac);
        if (owner == nullptr) {
            segment_.attach(peer, mac);
        } else if (owner != &peer) {
            peer.refused = true;
            if (!tell) {
                continue;
            }
            counters_.macs_refused.add();
            log_.warn_limited(mac_limiter_,
                              "peer {} announces MAC address {}, which somebody else has: ignored",
                              peer.node.name, net::to_string(mac));
        }
    }
}

void Fabric::claim_refused() {
    claims_changed_ = false;
    for (auto& [id, entry] : peers_) {
        if (entry.peer->refused) {
            claim(*entry.peer, false);
        }
    }
}

// For people.

std::vector<PeerStatus> Fabric::peers() const {
    const Nanoseconds now = loop_.clock().now();
    std::vector<PeerStatus> all;
    for (const auto& [id, entry] : peers_) {
        const Peer& peer = *entry.peer;
        const bool dialing = entry.redial && entry.redial->current() != nullptr;
        all.push_back({.name = peer.node.name,
                       .state = peer.open() ? "connected"
                                : dialing   ? "connecting"
                                            : "waiting",
                       .number = peer.node.number,
                       .address = peer.node.endpoint.to_string(),
                       .is_manager = peer.is_manager,
                       .round_trip = peer.round_trip(),
                       .silent = peer.open() ? now - peer.heard() : 0,
                       .queued = peer.queued(),
                       .connects = peer.connects(),
                       .traffic = peer.traffic(),
                       .macs = peer.announced()});
    }
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
        return std::tie(a.number, a.name) < std::tie(b.number, b.name);
    });
    return all;
}

}  // namespace ernic::mesh
