// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/event_loop.hpp"
#include "base/fd.hpp"
#include "mesh/config.hpp"
#include "mesh/counters.hpp"
#include "mesh/protocol.hpp"
#include "mesh/tcp_link.hpp"

namespace ernic::mesh {

class Introduction;

/// What all connections of one node have in common. All must outlive them.
struct Surroundings {
    EventLoop& loop;
    const Config& config;
    Counters& counters;
    LinkPool& pool;
};

/// Who waits for the end of an introduction. Called once, by no constructor; the introduction must not be
/// destroyed from inside.
class IntroductionOwner {
  public:
    virtual ~IntroductionOwner() = default;
    /// The other side has said who it is, and proven it where there is a key. The link is to be taken.
    virtual void introduced(Introduction& introduction) = 0;
    /// `why` is a sentence for people; empty when the connection simply did not come about.
    virtual void not_introduced(Introduction& introduction, const std::string& why) = 0;
};

/// A connection from its beginning until both sides know each other:
///
///     dialer                        acceptor
///       Connecting                     Greeting        (accepted)
///       Greeting     -- Hello -->      Greeting
///       Greeting     <-- Hello --      Proving         (without a key: done)
///       Proving      -- Proof -->      done            (without a key: nothing is sent, done)
///       done         <-- Proof --
///
/// The acceptor proves itself second, so that a stranger learns nothing that depends on the key. Each state
/// has its own deadline (kIntroduction): the whole takes three of them at most, and does not fail because one
/// host is slow in all of them. Thread: device. Owns: the socket, until take_link().
class Introduction final : public LinkUser {
  public:
    /// For a socket that begin_connect() made. `expected` is who should answer there; nullopt: not known.
    static std::unique_ptr<Introduction> dial(UniqueFd socket, const Endpoint& to, const Hello& own,
                                              const Surroundings& around, IntroductionOwner& owner,
                                              std::optional<NodeId> expected);
    /// For a socket that was accepted.
    static std::unique_ptr<Introduction> accept(UniqueFd socket, const Endpoint& from, const Hello& own,
                                                const Surroundings& around, IntroductionOwner& owner);
    ~Introduction() override;
    Introduction(const Introduction&) = delete;
    Introduction& operator=(const Introduction&) = delete;

    [[nodiscard]] bool dialed() const { return dialed_; }
    [[nodiscard]] const std::optional<NodeId>& expected() const { return expected_; }
    /// It has ended, one way or the other.
    [[nodiscard]] bool over() const { return over_; }
    /// Where the connection goes, or comes from.
    [[nodiscard]] const Endpoint& remote() const { return remote_; }
    /// Precondition: introduced.
    [[nodiscard]] const Hello& hello() const { return *hello_; }
    std::unique_ptr<TcpLink> take_link() { return std::move(link_); }
    /// Ends it without a word to the owner.
    void abandon();

    bool on_incoming(const Incoming& incoming) override;
    [[nodiscard]] bool takes_streams() const override { return false; }
    void on_ready() override {}
    void on_end(LinkEnd why) override;

  private:
    enum class State : std::uint8_t {
        Connecting,  ///< TCP has not answered yet
        Greeting,    ///< the other side's Hello is missing
        Proving,     ///< its Proof is missing
    };

    Introduction(UniqueFd socket, const Endpoint& remote, const Hello& own, const Surroundings& around,
                 IntroductionOwner& owner, std::optional<NodeId> expected, bool dialed);
    /// Begins a state and its deadline.
    void enter(State state);
    void on_deadline();
    /// Handles what the socket has to tell.
    void look();
    void on_connected();
    void begin(UniqueFd socket);
    bool on_hello(Bytes head);
    bool on_proof(Bytes head);
    bool send(FrameType type, Bytes head);
    void send_proof();
    void done();
    void fail(const std::string& why);

    Surroundings around_;
    IntroductionOwner& owner_;
    bool dialed_;
    bool over_ = false;
    State state_ = State::Greeting;
    std::optional<NodeId> expected_;
    UniqueFd connecting_;
    Endpoint remote_;
    std::array<std::byte, kHelloSize> own_hello_;
    std::optional<Hello> hello_;
    std::optional<SessionKeys> keys_;
    std::unique_ptr<TcpLink> link_;
    Timer deadline_;
};

}  // namespace ernic::mesh
