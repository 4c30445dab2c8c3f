// SPDX-License-Identifier: MIT
// Three servers with an address each, in network namespaces: what loopback does not show.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "guest_sim/mesh_exchange.hpp"
#include "guest_sim/mesh_server.hpp"
#include "guest_sim/network_namespaces.hpp"

namespace ernic::guest_sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Exchanges = std::vector<std::unique_ptr<Exchange>>;

constexpr unsigned kNodes = 3;
constexpr seconds kPatienceToJoin{20 * kInstrumentation};

class MeshOfHosts : public ::testing::Test {
  protected:
    struct Node {
        explicit Node(const MeshServer::Options& options) : server(options), guest(server.process()) {}
        MeshServer server;
        MeshGuest guest;
    };

    void SetUp() override {
        if (!NetworkNamespaces::possible()) {
            GTEST_SKIP() << "making network namespaces needs root";
        }
    }

    void start(int dead_after_ms) {
        hosts_ = std::make_unique<NetworkNamespaces>(kNodes);
        const std::string options = ",key=" + key_file() +
                                    ",heartbeat=" + std::to_string(100 * kInstrumentation) +
                                    ",dead-after=" + std::to_string(dead_after_ms * kInstrumentation);
        const std::string manager = NetworkNamespaces::address(0) + ":7000";
        // One says where it listens, the other finds out.
        const std::array<std::string, kNodes> backends = {
            "tcp:manager:" + manager + options,
            "tcp:worker:" + manager + options + ",bind=" + NetworkNamespaces::address(1),
            "tcp:worker:" + manager + options};
        for (unsigned i = 0; i < kNodes; ++i) {
            nodes_[i] = std::make_unique<Node>(MeshServer::Options{
                .number = i + 1, .backend = backends[i], .network_namespace = hosts_->name(i)});
        }
        wait_until_whole();
    }

    void TearDown() override {
        for (const auto& node : nodes_) {
            if (node) {
                EXPECT_EQ(node->server.statistic("protocol_errors"), 0U);
                EXPECT_EQ(node->server.statistic("forged"), 0U);
                if (HasFailure()) {
                    ADD_FAILURE() << node->server.process().log();
                }
                EXPECT_EQ(node->server.process().stop(), 0);
            }
        }
        std::error_code ignored;
        std::filesystem::remove(key_file(), ignored);
    }

    void wait_connected(unsigned number, std::uint64_t others) {
        EXPECT_TRUE(wait_until([&] { return nodes_[number]->server.connected() == others; }, kPatienceToJoin))
            << number << " is connected to " << nodes_[number]->server.connected() << " and not to "
            << others;
    }
    void wait_until_whole() {
        for (unsigned i = 0; i < kNodes; ++i) {
            wait_connected(i, kNodes - 1);
        }
    }

    std::unique_ptr<Exchange> begin(unsigned from, unsigned to) {
        return std::make_unique<Exchange>(nodes_[from]->guest, nodes_[to]->guest, random_);
    }
    void end(const Exchange& exchange, Status status = Status::Ok) {
        EXPECT_EQ(exchange.worst(), status);
        EXPECT_EQ(exchange.fault(), "");
    }
    static void wait(Exchange& exchange) {
        EXPECT_TRUE(wait_until([&] { return exchange.done(); }, kPatience * kInstrumentation))
            << "an exchange does not end";
    }
    void finish(Exchanges& exchanges) {
        for (const auto& exchange : exchanges) {
            wait(*exchange);
            end(*exchange);
        }
        exchanges.clear();
    }

    std::unique_ptr<NetworkNamespaces> hosts_;
    std::array<std::unique_ptr<Node>, kNodes> nodes_;
    Exchange::Random random_{99};

  private:
    static std::string key_file() {
        const auto path =
            std::filesystem::temp_directory_path() / ("ernic-mesh-key-" + std::to_string(::getpid()));
        if (!std::filesystem::exists(path)) {
            std::ofstream(path) << "three hosts and one secret between them\n";
            std::filesystem::permissions(path, std::filesystem::perms::owner_read);
        }
        return path.string();
    }
};

TEST_F(MeshOfHosts, TwoSendToOneAndAllThreeToEachOther) {
    start(10000);
    for (int round = 0; round < 5 && !HasFailure(); ++round) {
        Exchanges incast;
        for (int i = 0; i < 2; ++i) {
            incast.push_back(begin(1, 0));
            incast.push_back(begin(2, 0));
        }
        finish(incast);
        Exchanges all;
        for (unsigned from = 0; from < kNodes; ++from) {
            all.push_back(begin(from, (from + 1) % kNodes));
            all.push_back(begin(from, (from + 2) % kNodes));
        }
        finish(all);
    }
}

TEST_F(MeshOfHosts, AShortCutOnlyDelays) {
    start(20000);
    hosts_->cut(2);
    auto across = begin(0, 2);
    auto beside = begin(0, 1);
    wait(*beside);
    end(*beside);
    // Longer than all time-outs of the queue pair together, shorter than dead-after.
    std::this_thread::sleep_for(milliseconds(800));
    EXPECT_FALSE(across->done());
    hosts_->heal(2);
    wait(*across);
    end(*across);
    EXPECT_EQ(nodes_[0]->server.statistic("disconnects"), 0U);
}

TEST_F(MeshOfHosts, APartitionEndsTransfersAcrossItAndHeals) {
    start(2000);
    for (const unsigned lost : {2U, 1U, 0U}) {
        const unsigned one = (lost + 1) % kNodes;
        const unsigned other = (lost + 2) % kNodes;
        hosts_->cut(lost);
        auto across = begin(one, lost);
        auto back = begin(lost, other);
        across->may_fail();
        back->may_fail();
        wait_connected(lost, 0);
        wait_connected(one, 1);
        wait_connected(other, 1);
        wait(*across);
        wait(*back);
        end(*across, Status::RetryExceeded);
        end(*back, Status::RetryExceeded);
        Exchanges beside;
        beside.push_back(begin(one, other));
        beside.push_back(begin(other, one));
        finish(beside);
        hosts_->heal(lost);
        wait_until_whole();
        across.reset();
        back.reset();
        Exchanges healed;
        for (unsigned from = 0; from < kNodes; ++from) {
            healed.push_back(begin(from, (from + 1) % kNodes));
            healed.push_back(begin(from, (from + 2) % kNodes));
        }
        finish(healed);
    }
}

}  // namespace
}  // namespace ernic::guest_sim
