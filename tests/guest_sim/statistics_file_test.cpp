// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "guest_sim/fixture.hpp"

namespace ernic::guest_sim {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// A server that rewrites its statistics ten times a second.
class StatisticsFile : public ::testing::Test {
  protected:
    StatisticsFile() : directory(make_directory()), server(options(directory + "/stats.json")) {}
    ~StatisticsFile() override { std::filesystem::remove_all(directory); }

    static std::string make_directory() {
        std::string path = (std::filesystem::temp_directory_path() / "ernic-stats-XXXXXX").string();
        EXPECT_NE(::mkdtemp(path.data()), nullptr);
        return path;
    }
    static ServerProcess::Options options(const std::string& file) {
        return {.arguments = {"--stats-file", file, "--stats-interval", "0.1"}};
    }
    [[nodiscard]] nlohmann::json read() const {
        return nlohmann::json::parse(std::ifstream(directory + "/stats.json"));
    }

    std::string directory;
    ServerProcess server;
};

TEST_F(StatisticsFile, ShowsTheQueuePairsThatExist) {
    Guest guest(server);
    const CqPtr cq = guest.create_cq();
    const auto pair = guest.create_pair(*cq);
    auto datagram_qp = guest.create_datagram_qp(*cq, 1);
    const Region memory = guest.register_memory(4096);
    pair.first->post_send({.wr_id = 1,
                           .op = Op::Write,
                           .sges = {memory.sge(0, 100)},
                           .remote_va = memory.va + 1024,
                           .rkey = memory.key});
    EXPECT_EQ(cq->wait().status, Status::Ok);
    pair.second->to(QpState::Error);
    ASSERT_EQ(server.stop(), 0);

    const nlohmann::json all = read();
    std::map<std::uint32_t, nlohmann::json> rows;
    for (const auto& row : all["queue_pairs"]) {
        rows[row["qpn"].get<std::uint32_t>()] = row;
    }
    ASSERT_EQ(rows.size(), 3U);
    const auto& first = rows[pair.first->qpn()];
    EXPECT_EQ(first["type"], "RC");
    EXPECT_EQ(first["state"], "RTS");
    EXPECT_EQ(first["write"], 1);
    EXPECT_EQ(first["write_bytes"], 100);
    EXPECT_EQ(first["completed"], 1);
    EXPECT_EQ(first["dropped"], 0);
    EXPECT_EQ(first.size(), 3U + 2 * 11 + 8);
    EXPECT_EQ(rows[pair.second->qpn()]["received_bytes"], 100);
    EXPECT_EQ(rows[pair.second->qpn()]["state"], "ERR");
    EXPECT_EQ(rows[datagram_qp->qpn()]["type"], "UD");
}

TEST_F(StatisticsFile, ThousandsOfQueuePairsHoldUpNeitherTheCardNorTheEnd) {
    constexpr std::size_t kQueuePairs = 4000;
    Guest guest(server);
    const CqPtr cq = guest.create_cq();
    std::vector<QpPtr> qps;
    for (std::uint32_t i = 0; i < kQueuePairs; ++i) {
        qps.push_back(guest.create_qp(*cq, {.max_send = 15, .max_receive = 15, .udma = i % 2}));
    }
    const auto until = Clock::now() + milliseconds(1500);
    int stalls = 0;
    for (auto begin = Clock::now(); begin < until; begin = Clock::now()) {
        (void)guest.client().region_size(0);  // changes a number, so that the file is always out of date
        stalls += Clock::now() - begin > milliseconds(50) ? 1 : 0;
    }
    EXPECT_LE(stalls, 3) << "register accesses waited for the statistics";
    for (std::size_t i = 0; i < 1000; ++i) {
        qps.back()->destroy();
        qps.pop_back();
    }
    const auto begin = Clock::now();
    ASSERT_EQ(server.stop(), 0);
    EXPECT_LT(Clock::now() - begin, kInstrumentation * milliseconds(500));
    EXPECT_EQ(read()["queue_pairs"].size(), kQueuePairs - 1000);
    EXPECT_EQ(read()["rdma"]["queue_pairs"], kQueuePairs - 1000);
}

}  // namespace
}  // namespace ernic::guest_sim
