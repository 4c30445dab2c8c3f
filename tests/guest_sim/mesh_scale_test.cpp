// SPDX-License-Identifier: MIT
// Many servers as one mesh, each a process, some with a guest. How many, and for how long, can be set by the
// environment: what is here by default is a short form.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "guest_sim/mesh_exchange.hpp"
#include "guest_sim/mesh_server.hpp"

namespace ernic::guest_sim {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::seconds;

unsigned from_environment(const char* name, unsigned otherwise) {
    const char* const text = std::getenv(name);
    return text == nullptr ? otherwise : static_cast<unsigned>(std::stoul(text));
}

double since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// The end of it: with many peers it is long.
std::string log_of(const ServerProcess& server) {
    constexpr std::size_t kEnd = 3000;
    const std::string text = server.log();
    return text.substr(text.size() - std::min(text.size(), kEnd));
}

/// Servers on loopback, the first one their manager. A place of one that has left is empty.
class MeshOfMany {
  public:
    struct Node {
        explicit Node(const MeshServer::Options& options) : server(options) {}
        MeshServer server;
        /// Destroyed first: it does not outlive its server.
        std::unique_ptr<MeshGuest> guest;
        Clock::time_point started = Clock::now();
        bool settled = false;
    };

    explicit MeshOfMany(unsigned places) : port_(std::to_string(manager_port())), nodes_(places) {
        // All share this host's processors, and there is a heartbeat on each of N * N connections. Nobody may
        // be taken for dead because the host is busy.
        const unsigned heartbeat = std::max(1000U, 40 * places);
        options_ = ",heartbeat=" + std::to_string(heartbeat) +
                   ",dead-after=" + std::to_string(std::min(30 * heartbeat, 600'000U));
    }

    /// A node with a guest.
    void start(unsigned place) {
        nodes_[place] = std::make_unique<Node>(options_of(place));
        nodes_[place]->guest = std::make_unique<MeshGuest>(nodes_[place]->server.process());
    }
    /// Nodes without guests, all at once.
    void start_all(unsigned first, unsigned end) {
        for (unsigned place = first; place < end; ++place) {
            MeshServer::Options options = options_of(place);
            options.wait = false;
            nodes_[place] = std::make_unique<Node>(options);
        }
        for (unsigned place = first; place < end; ++place) {
            nodes_[place]->server.process().wait_until_up();
        }
    }

    /// SIGKILL when `killed`; otherwise the server ends in good order, which is checked.
    void leave(unsigned place, bool killed) {
        if (killed) {
            nodes_[place]->server.process().kill();
        } else {
            EXPECT_EQ(nodes_[place]->server.process().stop(), 0) << log_of(nodes_[place]->server.process());
        }
        nodes_[place].reset();
    }

    /// Several at once, every other one killed.
    void leave_all(unsigned first, unsigned end) {
        for (unsigned place = first + 1; place < end; place += 2) {
            nodes_[place]->server.process().terminate();
        }
        for (unsigned place = first; place < end; ++place) {
            leave(place, (place - first) % 2 == 0);
        }
    }

    [[nodiscard]] unsigned present() const {
        return static_cast<unsigned>(
            std::count_if(nodes_.begin(), nodes_.end(), [](const auto& node) { return node != nullptr; }));
    }
    [[nodiscard]] bool sees_all(const Node& node) const { return node.server.connected() == present() - 1; }

    /// Waits until each node is connected to each other one. Returns how long it took.
    double wait_until_whole(seconds patience) {
        const auto begin = Clock::now();
        for (unsigned place = 0; place < nodes_.size(); ++place) {
            Node* const node = nodes_[place].get();
            if (node != nullptr) {
                const bool whole = wait_until([&] { return sees_all(*node); }, patience);
                EXPECT_TRUE(whole) << "node " << place << " sees " << node->server.connected() << " of "
                                   << present() - 1 << " others:\n"
                                   << log_of(node->server.process());
                if (!whole) {
                    break;
                }
            }
        }
        return since(begin);
    }

    /// Nobody has broken the protocol.
    void expect_peace() const {
        for (const auto& node : nodes_) {
            for (const char* const name : {"protocol_errors", "forged", "foreign_source", "dead"}) {
                if (node) {
                    EXPECT_EQ(node->server.statistic(name), 0U) << name << "\n"
                                                                << log_of(node->server.process());
                }
            }
        }
    }

    std::vector<std::unique_ptr<Node>>& nodes() { return nodes_; }
    Node& at(unsigned place) { return *nodes_[place]; }

  private:
    [[nodiscard]] MeshServer::Options options_of(unsigned place) const {
        const std::string role = place == 0 ? "tcp:manager:listen:" : "tcp:worker:127.0.0.1:";
        return {.number = place + 1, .backend = role + port_ + options_};
    }

    std::string port_;
    std::string options_;
    std::vector<std::unique_ptr<Node>> nodes_;
};

/// Random pairs exchange data while nodes come and go.
class Bustle {
  public:
    Bustle(MeshOfMany& mesh, unsigned places) : mesh_(mesh), places_(places) {}

    /// Until `until`, and one has left; a node leaves every `pace`.
    void run(Clock::time_point until, Clock::duration pace) {
        auto next_leave = Clock::now() + pace;
        while ((Clock::now() < until || left_ == 0) && !::testing::Test::HasFailure()) {
            come_back();
            settle();
            begin_exchanges();
            if (Clock::now() >= next_leave) {
                leave();
                next_leave = Clock::now() + pace;
            }
            finish_exchanges();
        }
    }

    /// Everybody is there and connected to everybody.
    void complete() {
        for (unsigned place = 0; place < places_; ++place) {
            if (!mesh_.nodes()[place]) {
                mesh_.start(place);
            }
        }
        mesh_.wait_until_whole(kPatienceToJoin);
        settle();
    }

    [[nodiscard]] std::string evidence() const {
        return std::to_string(exchanges_) + " exchanges, " + std::to_string(bytes_ >> 20U) +
               " MiB verified, " + std::to_string(left_) + " left (" + std::to_string(killed_) + " killed, " +
               std::to_string(cut_off_) + " exchanges cut off), slowest join " +
               std::to_string(slowest_join_) + " s";
    }
    [[nodiscard]] unsigned left() const { return left_; }
    [[nodiscard]] std::uint64_t exchanges() const { return exchanges_; }

    /// The places whose nodes stay for ever.
    [[nodiscard]] bool stays(unsigned place) const { return place != 0 && place <= places_ / 4; }

  private:
    static constexpr seconds kPatienceToJoin{60 * kInstrumentation};

    void come_back() {
        for (unsigned place = 0; place < places_; ++place) {
            // A manager at once, others after a while.
            if (!mesh_.nodes()[place] && (place == 0 || random_() % 4 == 0)) {
                mesh_.start(place);
            }
        }
    }

    void settle() {
        settled_.clear();
        for (unsigned place = 0; place < places_; ++place) {
            MeshOfMany::Node* const node = mesh_.nodes()[place].get();
            if (node == nullptr) {
                continue;
            }
            if (!node->settled && mesh_.sees_all(*node)) {
                node->settled = true;
                slowest_join_ = std::max(slowest_join_, since(node->started));
            }
            if (node->settled) {
                settled_.push_back(place);
            } else {
                EXPECT_LT(since(node->started), kPatienceToJoin.count()) << place << " does not get in:\n"
                                                                         << log_of(node->server.process());
            }
        }
    }

    void begin_exchanges() {
        for (std::size_t i = 0; settled_.size() > 1 && i < settled_.size(); ++i) {
            from_ = settled_[random_() % settled_.size()];
            to_ = settled_[random_() % settled_.size()];
            MeshGuest& from = *mesh_.at(from_).guest;
            MeshGuest& to = *mesh_.at(to_).guest;
            if (from_ != to_ && from.free_lane() != nullptr && to.free_lane() != nullptr) {
                running_.push_back(std::make_unique<Exchange>(from, to, random_));
            }
        }
    }

    /// One of the two that have begun last.
    void leave() {
        const unsigned victim = stays(from_) ? to_ : from_;
        if (stays(victim) || !mesh_.nodes()[victim]) {
            return;
        }
        for (const auto& exchange : running_) {
            exchange->lose(*mesh_.at(victim).guest);
        }
        const bool killed = random_() % 2 == 0;
        mesh_.leave(victim, killed);
        ++left_;
        killed_ += killed ? 1 : 0;
    }

    void finish_exchanges() {
        for (const auto& exchange : running_) {
            EXPECT_TRUE(wait_until([&] { return exchange->done(); }, kPatience * kInstrumentation))
                << "an exchange does not end";
            EXPECT_EQ(exchange->fault(), "");
            exchanges_ += 1;
            if (exchange->succeeded()) {
                bytes_ += exchange->bytes();
            } else {
                ++cut_off_;
            }
        }
        running_.clear();
    }

    MeshOfMany& mesh_;
    unsigned places_;
    Exchange::Random random_{4711};
    std::vector<unsigned> settled_;
    std::vector<std::unique_ptr<Exchange>> running_;
    unsigned from_ = 0;
    unsigned to_ = 0;
    std::uint64_t exchanges_ = 0;
    std::uint64_t bytes_ = 0;
    unsigned left_ = 0;
    unsigned killed_ = 0;
    unsigned cut_off_ = 0;
    double slowest_join_ = 0;
};

TEST(MeshScale, RandomPairsExchangeDataWhileNodesComeAndGo) {
    const unsigned places = from_environment("ERNIC_MESH_NODES", 8);
    const seconds length(from_environment("ERNIC_MESH_SECONDS", 10));
    MeshOfMany mesh(places);
    Bustle bustle(mesh, places);
    const auto begin = Clock::now();
    bustle.complete();
    // Caches and tables grow in the beginning.
    bustle.run(Clock::now() + length / 3, std::chrono::milliseconds(600));
    bustle.complete();
    std::vector<Footprint> before(places);
    for (unsigned place = 0; place < places; ++place) {
        before[place] = mesh.at(place).server.footprint();
    }
    bustle.run(Clock::now() + length * 2 / 3, std::chrono::milliseconds(1500));
    bustle.complete();
    ASSERT_FALSE(HasFailure());
    std::uint64_t grown = 0;
    for (unsigned place = 0; place < places; ++place) {
        const MeshServer& server = mesh.at(place).server;
        if (bustle.stays(place)) {
            EXPECT_TRUE(wait_until([&] { return server.footprint().fds <= before[place].fds; }))
                << place << " had " << before[place].fds << " descriptors and has " << server.footprint().fds;
            const std::uint64_t anon = server.footprint().anon_kib;
            grown = std::max(grown, anon - std::min(anon, before[place].anon_kib));
            EXPECT_LE(anon, before[place].anon_kib * kInstrumentation * 11 / 10 + 1024) << place;
        }
    }
    mesh.expect_peace();
    EXPECT_GE(bustle.left(), 1U);
    std::cout << "evidence: " << places << " nodes, " << since(begin) << " s: " << bustle.evidence()
              << "; own memory of a node " << before[1].anon_kib << " KiB, grown by at most " << grown
              << " KiB, descriptors " << before[1].fds << '\n';
}

TEST(MeshScale, TheManagerDiesAndComesBackUnderTrafficOfTwoWorkers) {
    const unsigned rounds = from_environment("ERNIC_MESH_ROUNDS", 3);
    constexpr unsigned kFirst = 1;
    constexpr unsigned kSecond = 2;
    constexpr unsigned kNewcomer = 3;
    const seconds patience(60 * kInstrumentation);
    MeshOfMany mesh(kNewcomer + 1);
    for (const unsigned place : {0U, kFirst, kSecond}) {
        mesh.start(place);
    }
    mesh.wait_until_whole(patience);
    Exchange::Random random{31};
    std::uint64_t bytes = 0;
    const auto begin = [&](unsigned from, unsigned to) {
        return std::make_unique<Exchange>(*mesh.at(from).guest, *mesh.at(to).guest, random);
    };
    const auto finish = [&](Exchange& exchange) {
        EXPECT_TRUE(wait_until([&] { return exchange.done(); }, kPatience * kInstrumentation));
        EXPECT_EQ(exchange.worst(), Status::Ok);
        EXPECT_EQ(exchange.fault(), "");
        bytes += exchange.bytes();
    };
    Footprint before;
    for (unsigned round = 0; round < rounds && !::testing::Test::HasFailure(); ++round) {
        auto as_it_dies = begin(kFirst, kSecond);
        mesh.leave(0, true);
        finish(*as_it_dies);
        for (int i = 0; i < 5; ++i) {
            auto there = begin(kFirst, kSecond);
            auto back = begin(kSecond, kFirst);
            finish(*there);
            finish(*back);
        }
        auto as_it_returns = begin(kSecond, kFirst);
        mesh.start(0);
        finish(*as_it_returns);
        mesh.wait_until_whole(patience);
        const MeshServer& worker = mesh.at(kFirst).server;
        if (round == 0) {
            before = worker.footprint();
        }
        EXPECT_TRUE(wait_until([&] { return worker.footprint().fds <= before.fds; }))
            << before.fds << " descriptors, now " << worker.footprint().fds;
        EXPECT_LE(worker.footprint().anon_kib, before.anon_kib * kInstrumentation + 512);
    }
    for (const unsigned place : {kFirst, kSecond}) {
        EXPECT_EQ(mesh.at(place).server.statistic("disconnects"), rounds) << "only from the manager";
    }
    mesh.start(kNewcomer);
    mesh.wait_until_whole(patience);
    finish(*begin(kNewcomer, kFirst));
    mesh.expect_peace();
    std::cout << "evidence: the manager died " << rounds << " times; " << (bytes >> 20U)
              << " MiB between two workers meanwhile, all verified\n";
}

TEST(MeshScale, ManyJoinAndTheirNumbersAreUsedAgain) {
    const unsigned places = from_environment("ERNIC_MESH_JOIN_NODES", 16);
    const seconds patience(60 + 2 * places);
    constexpr unsigned kStay = 4;
    MeshOfMany mesh(places);
    const auto begin = Clock::now();
    mesh.start_all(0, places);
    const double started = since(begin);
    mesh.wait_until_whole(patience);
    const double joined = since(begin);
    ASSERT_FALSE(HasFailure());
    Footprint sum;
    Footprint most;
    for (const auto& node : mesh.nodes()) {
        const Footprint one = node->server.footprint();
        sum.rss_kib += one.rss_kib;
        sum.anon_kib += one.anon_kib;
        most.rss_kib = std::max(most.rss_kib, one.rss_kib);
        most.anon_kib = std::max(most.anon_kib, one.anon_kib);
        most.fds = std::max(most.fds, one.fds);
    }
    std::cout << "evidence: " << places << " nodes started in " << started
              << " s, each connected to each after " << joined << " s; a node has " << sum.rss_kib / places
              << " KiB (at most " << most.rss_kib << "), " << sum.anon_kib / places << " of its own (at most "
              << most.anon_kib << "), " << most.fds << " descriptors\n";
    mesh.expect_peace();
    const auto leaving = Clock::now();
    mesh.leave_all(kStay, places);
    const double left = since(leaving);
    mesh.wait_until_whole(patience);
    for (unsigned place = 0; place < kStay; ++place) {
        EXPECT_TRUE(wait_until([&] {
            return mesh.at(place).server.footprint().fds <= most.fds - (places - kStay);
        })) << mesh.at(place).server.footprint().fds
            << " descriptors";
    }
    const Footprint small = mesh.at(1).server.footprint();
    const unsigned newcomers = std::max(2U, places / 8);
    const auto coming = Clock::now();
    mesh.start_all(kStay, kStay + newcomers);
    mesh.wait_until_whole(patience);
    const auto numbers = mesh.at(0).server.peer_numbers();
    ASSERT_EQ(numbers.size(), kStay - 1 + newcomers);
    for (const std::uint32_t number : numbers) {
        EXPECT_LT(number, places);
    }
    mesh.expect_peace();
    std::cout << "evidence: " << places - kStay << " left in " << left << " s; one of " << kStay << " has "
              << small.fds << " descriptors, " << small.anon_kib << " KiB of its own; " << newcomers
              << " newcomers were in after " << since(coming) << " s with numbers used before\n";
}

}  // namespace
}  // namespace ernic::guest_sim
