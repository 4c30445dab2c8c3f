// SPDX-License-Identifier: MIT
// Whole nodes of a mesh in one process: a verbs world each, joined by real TCP connections over loopback, in
// a time that stands still until a test advances it.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

#include "mesh/fabric.hpp"
#include "net/loop_ports.hpp"
#include "rdma/test_support.hpp"

namespace ernic::app {
namespace {

using rdma::CompletionStatus;
using rdma::Opcode;
using rdma::QpState;
using rdma::QpType;
using rdma::test::Peer;
using rdma::test::World;

constexpr std::uint64_t kSource = 0;
constexpr std::uint64_t kTarget = 2 * 1024 * 1024;
constexpr std::uint32_t kRegion = 4 * 1024 * 1024;
constexpr Nanoseconds kMillisecond = 1'000'000;

mesh::Key key_of(std::string_view text) {
    return mesh::Key::of(std::as_bytes(std::span(text)));
}

/// A server: its card's verbs, its segment, its part of the mesh.
class Node {
  public:
    Node(std::uint8_t number, const mesh::Endpoint& manager, std::optional<mesh::Key> key = std::nullopt) {
        mac = World::make_mac(number);
        world.engine.set_mac(mac);
        lkey = world.region(1, 0, kRegion, World::all_rights());
        mesh::Config config;
        config.is_manager = manager.port == 0;
        config.manager = manager;
        config.listen = {net::IpAddress::v4(0x7f000001), 0};
        config.key = std::move(key);
        config.name = "node" + std::to_string(number);
        fabric = std::make_unique<mesh::Fabric>(std::move(config), world.segment, port, world.loop, counters,
                                                log::Logger(log::null_sink(), "mesh"));
        EXPECT_TRUE(fabric->start());
    }

    void turn() {
        world.loop.run_once(false);
        world.engine.step();
        if (fabric) {
            fabric->step();
        }
    }

    /// A connected queue pair towards number `remote` of `other`.
    std::unique_ptr<Peer> connect(std::uint32_t qpn, const Node& other, std::uint32_t remote) {
        auto peer = world.make(qpn);
        world.bring_up(*peer, remote);
        peer->qp->attributes().route = World::route_to(other.mac, mac);
        peer->qp->attributes().route.ip4.protocol = wire::kIpProtocolUdp;
        return peer;
    }

    World world;
    net::FramePort port{world.segment.bridge(), "mesh"};
    mesh::Counters counters;
    std::unique_ptr<mesh::Fabric> fabric;
    wire::MacAddress mac;
    std::uint32_t lkey = 0;
};

class MeshRdma : public ::testing::Test {
  protected:
    Node& manager(std::optional<mesh::Key> key = std::nullopt) {
        nodes_.push_back(std::make_unique<Node>(std::uint8_t{1}, mesh::Endpoint{}, std::move(key)));
        return *nodes_.back();
    }
    Node& worker(const Node& manager, std::optional<mesh::Key> key = std::nullopt) {
        nodes_.push_back(std::make_unique<Node>(static_cast<std::uint8_t>(nodes_.size() + 1),
                                                manager.fabric->endpoint(), std::move(key)));
        return *nodes_.back();
    }

    /// Lets all nodes work until `done`; time stands still.
    void until(const std::function<bool()>& done, const char* what = "") {
        for (int i = 0; i < 200'000; ++i) {
            if (done()) {
                return;
            }
            for (const auto& node : nodes_) {
                if (node.get() != stopped_) {
                    node->turn();
                }
            }
        }
        FAIL() << "it never came about: " << what;
    }
    void turns(int count) {
        for (int i = 0; i < count; ++i) {
            for (const auto& node : nodes_) {
                if (node.get() != stopped_) {
                    node->turn();
                }
            }
        }
    }
    void advance(Nanoseconds time) {
        for (const auto& node : nodes_) {
            node->world.clock.advance(time);
        }
        turns(20);
    }
    void until_joined(std::size_t others) {
        until(
            [&] {
                for (const auto& node : nodes_) {
                    std::size_t ready = 0;
                    for (const mesh::PeerStatus& peer :
                         node->fabric ? node->fabric->peers() : std::vector<mesh::PeerStatus>()) {
                        ready += peer.state == "connected" && !peer.macs.empty() ? 1 : 0;
                    }
                    if (node->fabric && ready != others) {
                        return false;
                    }
                }
                return true;
            },
            "all connected");
    }

    std::vector<std::unique_ptr<Node>> nodes_;
    const Node* stopped_ = nullptr;
};

/// Two nodes that have joined, with queue pair 2 of the first connected to 3 of the second.
class MeshPair : public MeshRdma {
  protected:
    MeshPair() {
        until_joined(1);
        a = one.connect(2, two, 3);
        b = two.connect(3, one, 2);
    }

    Node& one = manager();
    Node& two = worker(one);
    std::unique_ptr<Peer> a;
    std::unique_ptr<Peer> b;
};

rdma::WorkRequest to_peer(Opcode opcode, std::uint32_t length, const Node& from, const Node& to) {
    rdma::WorkRequest request = World::request(opcode, kSource, length, from.lkey);
    request.rkey = to.lkey;
    request.remote_va = kTarget;
    return request;
}

bool equal(const Node& a, std::uint64_t at, const Node& b, std::uint64_t there, std::size_t size) {
    return std::memcmp(&a.world.bytes[at], &b.world.bytes[there], size) == 0;
}

TEST_F(MeshPair, AWriteOfManyFragmentsArrivesWholeWithoutACopyInBetween) {
    one.world.fill(kSource, 1'300'000, 7);
    one.world.post(*a, to_peer(Opcode::Write, 1'300'000, one, two));
    until([&] { return !a->owner.sent.empty(); });
    EXPECT_EQ(a->owner.sent[0].status, CompletionStatus::Success);
    EXPECT_TRUE(equal(one, kSource, two, kTarget, 1'300'000));
    EXPECT_GE(two.counters.streamed.value(), 4U);
    EXPECT_EQ(two.counters.staged.value(), 0U);
    EXPECT_EQ(one.world.engine.counters().req_sequence_errors.value(), 0U);
}

TEST_F(MeshPair, ReadsSendsAndAtomicsWork) {
    two.world.fill(kTarget, 600'000, 3);
    two.world.post_receive(*b, 512, 1024, two.lkey);
    one.world.post(*a, to_peer(Opcode::Read, 600'000, one, two));
    one.world.post(*a, to_peer(Opcode::Send, 1000, one, two));
    rdma::WorkRequest add = to_peer(Opcode::FetchAdd, 8, one, two);
    add.remote_va = 4096;
    add.swap_add = 5;
    one.world.post(*a, add);
    until([&] { return a->owner.sent.size() == 3; });
    for (const auto& completion : a->owner.sent) {
        EXPECT_EQ(completion.status, CompletionStatus::Success);
    }
    ASSERT_EQ(b->owner.received.size(), 1U);
    EXPECT_EQ(b->owner.received[0].length, 1000U);
    EXPECT_EQ(two.world.bytes[4096], std::byte{5});
    EXPECT_TRUE(equal(one, 8, two, kTarget + 8, 599'992))
        << "the atomic's answer lies in the first eight bytes";
}

TEST_F(MeshPair, ARefusalKeepsItsReason) {
    rdma::WorkRequest request = to_peer(Opcode::Write, 300'000, one, two);
    request.remote_va = kRegion - 1000;
    one.world.post(*a, request);
    until([&] { return !a->owner.sent.empty(); });
    EXPECT_EQ(a->owner.sent[0].status, CompletionStatus::RemoteAccess);
    EXPECT_TRUE(one.fabric->connected()) << "the payload nobody wanted was thrown away";
    const auto c = one.connect(4, two, 5);
    const auto d = two.connect(5, one, 4);
    one.world.post(*c, to_peer(Opcode::Write, 300'000, one, two));
    until([&] { return !c->owner.sent.empty(); });
    EXPECT_EQ(c->owner.sent[0].status, CompletionStatus::Success);
}

TEST_F(MeshPair, APeerThatTakesNothingIsWaitedForWithinBoundsAndNothingIsSentTwice) {
    stopped_ = &two;
    for (int i = 0; i < 40; ++i) {
        one.world.post(*a, to_peer(Opcode::Write, 1'000'000, one, two));
    }
    turns(2000);
    EXPECT_GE(one.counters.blocked.value(), 1U);
    EXPECT_LE(one.fabric->peers()[0].queued, mesh::kMaxQueued);
    // The acknowledgement time passes many times over, and less than makes a peer dead.
    for (int i = 0; i < 50; ++i) {
        one.world.clock.advance(100 * kMillisecond);
        turns(3);
    }
    two.world.clock.advance(5000 * kMillisecond);
    EXPECT_TRUE(a->owner.sent.empty());
    stopped_ = nullptr;
    until([&] { return a->owner.sent.size() == 40; });
    for (const auto& completion : a->owner.sent) {
        EXPECT_EQ(completion.status, CompletionStatus::Success);
    }
    EXPECT_EQ(a->qp->counters().timeouts, 0U);
    EXPECT_EQ(two.world.engine.counters().resp_duplicate_requests.value(), 0U);
}

TEST_F(MeshRdma, AReaderThatTakesNothingMakesTheAnswersWaitInOrder) {
    Node& one = manager();
    Node& two = worker(one);
    until_joined(1);
    std::vector<std::unique_ptr<Peer>> readers;
    std::vector<std::unique_ptr<Peer>> sources;
    for (std::uint32_t i = 0; i < 30; ++i) {
        readers.push_back(one.connect(2 + i, two, 2 + i));
        sources.push_back(two.connect(2 + i, one, 2 + i));
        one.world.post(*readers.back(), to_peer(Opcode::Read, 1'000'000, one, two));
        one.world.post(*readers.back(), to_peer(Opcode::Write, 64, one, two));
    }
    for (int i = 0; i < 50; ++i) {
        one.turn();
    }
    stopped_ = &one;
    turns(500);
    EXPECT_LE(two.fabric->peers()[0].queued, mesh::kMaxQueued);
    stopped_ = nullptr;
    until([&] {
        return std::all_of(readers.begin(), readers.end(),
                           [](const auto& reader) { return reader->owner.sent.size() == 2; });
    });
    for (const auto& reader : readers) {
        EXPECT_EQ(reader->owner.sent[0].status, CompletionStatus::Success);
        EXPECT_EQ(reader->owner.sent[1].status, CompletionStatus::Success);
    }
    EXPECT_EQ(two.counters.messages_dropped.value(), 0U);
    EXPECT_EQ(one.world.engine.counters().req_sequence_errors.value(), 0U);
}

TEST_F(MeshRdma, ASmallMessageIsNotStarvedByLargeOnes) {
    Node& one = manager();
    Node& two = worker(one);
    until_joined(1);
    const auto big = one.connect(2, two, 3);
    const auto big_peer = two.connect(3, one, 2);
    const auto small = one.connect(4, two, 5);
    const auto small_peer = two.connect(5, one, 4);
    for (int i = 0; i < 200; ++i) {
        one.world.post(*big, to_peer(Opcode::Write, 1'000'000, one, two));
    }
    turns(20);
    one.world.post(*small, to_peer(Opcode::Write, 64, one, two));
    until([&] { return small->owner.sent.size() == 1; });
    EXPECT_LT(big->owner.sent.size(), 100U);
}

TEST_F(MeshRdma, APeerThatDiesEndsItsTransfersAndNothingElse) {
    Node& one = manager();
    Node& two = worker(one);
    Node& three = worker(one);
    until_joined(2);
    const auto a = one.connect(2, two, 3);
    const auto c = one.connect(4, three, 5);
    const auto b = two.connect(3, one, 2);
    const auto d = three.connect(5, one, 4);
    one.world.post(*a, to_peer(Opcode::Write, 1'000'000, one, two));
    stopped_ = &two;
    turns(2);
    two.fabric.reset();
    stopped_ = nullptr;
    for (int i = 0; i < 20; ++i) {
        advance(100 * kMillisecond);
    }
    ASSERT_EQ(a->owner.sent.size(), 1U);
    EXPECT_EQ(a->owner.sent[0].status, CompletionStatus::RetryExceeded);
    one.world.post(*c, to_peer(Opcode::Write, 1'000'000, one, three));
    until([&] { return !c->owner.sent.empty(); });
    EXPECT_EQ(c->owner.sent[0].status, CompletionStatus::Success);
    until([&] { return one.fabric->peers().size() == 1; }, "the dead one is forgotten");
}

TEST_F(MeshRdma, WorkersMeetDirectlyAndDoNotNeedTheirManagerAnyMore) {
    Node& one = manager();
    Node& two = worker(one);
    Node& three = worker(one);
    until_joined(2);
    one.fabric.reset();
    const auto a = two.connect(2, three, 3);
    const auto b = three.connect(3, two, 2);
    two.world.post(*a, to_peer(Opcode::Write, 400'000, two, three));
    until([&] { return !a->owner.sent.empty(); });
    EXPECT_EQ(a->owner.sent[0].status, CompletionStatus::Success);
}

TEST_F(MeshRdma, ManyNodesMeetAndEachHasItsOwnNumber) {
    Node& one = manager();
    for (int i = 0; i < 11; ++i) {
        worker(one);
    }
    until_joined(11);
    std::vector<std::uint32_t> numbers;
    for (const auto& node : nodes_) {
        numbers.push_back(node->fabric->number());
    }
    std::sort(numbers.begin(), numbers.end());
    for (std::uint32_t i = 0; i < numbers.size(); ++i) {
        EXPECT_EQ(numbers[i], i);
    }
    nodes_[5]->fabric.reset();
    until([&] { return one.counters.peers_known == 10; });
    until([&] { return nodes_[7]->counters.peers_known == 10; });
}

TEST_F(MeshRdma, WithAKeyEverythingWorksAndIsStaged) {
    Node& one = manager(key_of("a key of some length"));
    Node& two = worker(one, key_of("a key of some length"));
    until_joined(1);
    const auto a = one.connect(2, two, 3);
    const auto b = two.connect(3, one, 2);
    one.world.fill(kSource, 1'000'000, 9);
    one.world.post(*a, to_peer(Opcode::Write, 1'000'000, one, two));
    one.world.post(*a, to_peer(Opcode::Write, 64, one, two));
    until([&] { return a->owner.sent.size() == 2; });
    EXPECT_EQ(a->owner.sent[0].status, CompletionStatus::Success);
    EXPECT_TRUE(equal(one, kSource, two, kTarget, 1'000'000));
    EXPECT_EQ(two.counters.streamed.value(), 0U);
}

TEST_F(MeshRdma, AWrongKeyOrNoneCostsTheConnection) {
    Node& one = manager(key_of("a key of some length"));
    Node& two = worker(one, key_of("another key of some length"));
    Node& three = worker(one);
    until([&] {
        return one.counters.wrong_key.value() >= 2 && two.counters.dials_failed.value() != 0 &&
               three.counters.dials_failed.value() != 0;
    });
    EXPECT_FALSE(one.fabric->connected());
    EXPECT_TRUE(one.fabric->peers().empty());
    EXPECT_EQ(three.counters.wrong_key.value(), 0U) << "the manager says nothing to one without a key";
}

TEST_F(MeshRdma, TwoGuestsWithTheSameAddressAreNoticed) {
    Node& one = manager();
    Node& two = worker(one);
    until_joined(1);
    two.world.engine.set_mac(one.mac);
    until([&] { return one.counters.macs_refused.value() != 0; });
    two.world.engine.set_mac(two.mac);
    until([&] { return one.world.segment.owner(two.mac) != nullptr; });
    EXPECT_FALSE(one.world.segment.owner(one.mac)->remote());
}

TEST_F(MeshRdma, AnAddressThatBecomesFreeGoesToWhoWasRefusedIt) {
    Node& one = manager();
    Node& two = worker(one);
    Node& three = worker(one);
    until_joined(2);
    three.world.engine.set_mac(two.mac);
    until([&] { return one.counters.macs_refused.value() != 0; });
    const net::Port* const first = one.world.segment.owner(two.mac);
    ASSERT_NE(first, nullptr);
    two.fabric.reset();
    until([&] {
        const net::Port* const owner = one.world.segment.owner(two.mac);
        return owner != nullptr && owner != first;
    });
}

TEST_F(MeshRdma, AStoppedPeerIsGivenUpAndFoundAgain) {
    Node& one = manager();
    Node& two = worker(one);
    until_joined(1);
    stopped_ = &two;
    for (int i = 0; i < 120; ++i) {
        one.world.clock.advance(100 * kMillisecond);
        turns(2);
    }
    EXPECT_EQ(one.counters.dead.value(), 1U);
    EXPECT_FALSE(one.fabric->connected());
    stopped_ = nullptr;
    for (int i = 0; i < 20; ++i) {
        advance(100 * kMillisecond);
    }
    until_joined(1);
}

TEST_F(MeshRdma, FramesReachEveryNodeOnceAndKnownOnesOnlyTheirs) {
    Node& one = manager();
    worker(one);
    Node& three = worker(one);
    until_joined(2);
    struct Sink final : net::FrameSink {
        void transmit(const net::Frame& frame) override { sizes.push_back(frame.data.bytes()); }
        std::vector<std::size_t> sizes;
    };
    std::array<Sink, 3> sinks;
    std::vector<std::unique_ptr<net::FramePort>> ports;
    for (std::size_t i = 0; i < 3; ++i) {
        ports.push_back(std::make_unique<net::FramePort>(nodes_[i]->world.segment.bridge(), "guest"));
        ports.back()->connect(&sinks[i]);
    }
    const auto send = [&](std::size_t from, const wire::MacAddress& to, std::size_t size) {
        std::vector<std::byte> bytes(size);
        const wire::EthernetHeader header{to, nodes_[from]->mac, be16(0x88b5)};
        std::memcpy(bytes.data(), &header, sizeof header);
        mem::SpanList data;
        data.add(bytes.data(), bytes.size());
        ports[from]->transmit({.data = data, .insert_vlan = {}, .checksum = {}, .segmentation = {}});
    };
    send(0, {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}, 60);
    until([&] { return sinks[1].sizes.size() == 1 && sinks[2].sizes.size() == 1; });
    send(1, three.mac, 30'000);
    send(1, one.mac, 61);
    until([&] { return sinks[0].sizes.size() == 1 && sinks[2].sizes.size() == 2; });
    turns(50);
    EXPECT_EQ(sinks[0].sizes, std::vector<std::size_t>({61}));
    EXPECT_EQ(sinks[1].sizes, std::vector<std::size_t>({60}));
    EXPECT_EQ(sinks[2].sizes, std::vector<std::size_t>({60, 30'000}));
}

TEST_F(MeshRdma, GarbageAndSilenceCostTheConnectionOnly) {
    Node& one = manager();
    UniqueFd rude = mesh::begin_connect(one.fabric->endpoint());
    UniqueFd mute = mesh::begin_connect(one.fabric->endpoint());
    turns(20);
    ASSERT_GT(::write(rude.get(), "GET / HTTP/1.1\r\n\r\n", 18), 0);
    until([&] { return one.counters.protocol_errors.value() == 1; });
    advance(mesh::kIntroduction + kMillisecond);
    EXPECT_EQ(one.counters.silent.value(), 1U);
    std::vector<UniqueFd> many;
    for (std::size_t i = 0; i < mesh::kMaxStrangers + 10; ++i) {
        many.push_back(mesh::begin_connect(one.fabric->endpoint()));
        turns(2);
    }
    turns(50);
    EXPECT_GE(one.counters.strangers_evicted.value(), 10U);
    worker(one);
    until_joined(1);
}

}  // namespace
}  // namespace ernic::app
