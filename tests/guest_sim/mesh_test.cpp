// SPDX-License-Identifier: MIT
#include <sys/stat.h>

#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "guest_sim/fixture.hpp"
#include "guest_sim/mesh_server.hpp"

/// Two real servers that are joined over TCP, with a guest each.
namespace ernic::guest_sim {
namespace {

constexpr std::size_t kSize = std::size_t{3} << 20U;

/// How the second server differs from the first.
struct Extra {
    const char* name;
    std::vector<std::string> arguments;
    std::string mesh_options;
};

class MeshGuests : public ::testing::TestWithParam<Extra> {
  protected:
    static ServerProcess::Options options(const std::string& role, const std::string& mac) {
        ServerProcess::Options options;
        options.arguments = {"--backend", role + GetParam().mesh_options, "--mac", mac};
        options.arguments.insert(options.arguments.end(), GetParam().arguments.begin(),
                                 GetParam().arguments.end());
        return options;
    }

    MeshGuests() {
        ConnectionOptions to_right;
        to_right.peer = right.card().mac();
        to_right.rnr_retry = 7;
        ConnectionOptions to_left;
        to_left.peer = left.card().mac();
        right.make_ready(*target, client->qpn(), to_left);
        left.make_ready(*client, target->qpn(), to_right);
        fill_pattern(from.memory, 1);
        fill_pattern(to.memory, 2);
    }
    void TearDown() override {
        for (ServerProcess* const server : {&left_server, &right_server}) {
            EXPECT_TRUE(server->running());
            if (HasFailure()) {
                ADD_FAILURE() << "log of a server:\n" << server->log();
            }
            EXPECT_EQ(server->stop(), 0);
        }
    }

    Status run(const SendRequest& request) {
        client->post_send(request);
        return cq->wait().status;
    }

    std::string port = std::to_string(manager_port());
    ServerProcess left_server{options("tcp:manager:listen:" + port, "02:00:00:00:00:01")};
    ServerProcess right_server{options("tcp:worker:localhost:" + port, "02:00:00:00:00:02")};
    Guest left{left_server};
    Guest right{right_server};
    CqPtr cq = left.create_cq();
    CqPtr target_cq = right.create_cq();
    QpPtr client = left.create_qp(*cq);
    QpPtr target = right.create_qp(*target_cq);
    Region from = left.register_memory(kSize);
    Region to = right.register_memory(kSize);
};

TEST_P(MeshGuests, EveryOperationArrivesVerified) {
    EXPECT_EQ(
        run({.wr_id = 1, .op = Op::Write, .sges = {from.sge(0, kSize)}, .remote_va = to.va, .rkey = to.key}),
        Status::Ok);
    EXPECT_EQ(first_mismatch(to.memory, 1), kNoMismatch);

    fill_pattern(to.memory, 5);
    EXPECT_EQ(
        run({.wr_id = 2, .op = Op::Read, .sges = {from.sge(0, kSize)}, .remote_va = to.va, .rkey = to.key}),
        Status::Ok);
    EXPECT_EQ(first_mismatch(from.memory, 5), kNoMismatch);

    fill_pattern(from.memory, 6);
    client->post_send({.wr_id = 3, .op = Op::Send, .sges = {from.sge(0, kSize)}});
    target->post_receive({.wr_id = 4, .sges = {to.sge(0, kSize)}});  // late: receiver not ready at first
    EXPECT_EQ(cq->wait().status, Status::Ok);
    EXPECT_EQ(target_cq->wait().wr_id, 4U);
    EXPECT_EQ(first_mismatch(to.memory, 6), kNoMismatch);

    std::uint64_t value = 40;
    std::memcpy(to.memory.host, &value, sizeof value);
    EXPECT_EQ(run({.wr_id = 5,
                   .op = Op::FetchAdd,
                   .sges = {from.sge(0, 8)},
                   .remote_va = to.va,
                   .rkey = to.key,
                   .swap_add = 2}),
              Status::Ok);
    std::memcpy(&value, to.memory.host, sizeof value);
    EXPECT_EQ(value, 42U);
    std::memcpy(&value, from.memory.host, sizeof value);
    EXPECT_EQ(value, 40U);
}

TEST_P(MeshGuests, ManyRequestsBothWaysAtOnceAllSucceed) {
    constexpr std::uint64_t kRounds = 200;
    constexpr std::uint32_t kPiece = 100'000;
    std::uint64_t done = 0;
    for (std::uint64_t posted = 0; done < 2 * kRounds;) {
        if (posted < kRounds && posted < done / 2 + 16) {
            client->post_send({.wr_id = posted,
                               .op = Op::Write,
                               .sges = {from.sge(0, kPiece)},
                               .remote_va = to.va,
                               .rkey = to.key});
            target->post_send({.wr_id = posted,
                               .op = Op::Read,
                               .sges = {to.sge(kPiece, kPiece)},
                               .remote_va = from.va + kPiece,
                               .rkey = from.key});
            ++posted;
        }
        for (CompletionQueue* const queue : {cq.get(), target_cq.get()}) {
            std::array<WorkCompletion, 16> completions;
            const std::size_t got = queue->poll(completions);
            for (std::size_t i = 0; i < got; ++i) {
                ASSERT_EQ(completions[i].status, Status::Ok);
            }
            done += got;
        }
    }
}

TEST_P(MeshGuests, ARefusalComesBackWithItsReason) {
    EXPECT_EQ(run({.wr_id = 1,
                   .op = Op::Write,
                   .sges = {from.sge(0, kSize)},
                   .remote_va = to.va + 1,
                   .rkey = to.key}),
              Status::RemoteAccess);
}

INSTANTIATE_TEST_SUITE_P(Ways, MeshGuests,
                         ::testing::Values(Extra{"plain", {}, ""},
                                           Extra{"captured", {"--pcap", "/dev/null"}, ""},
                                           Extra{"without_sandbox", {"--sandbox", "off"}, ""}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace ernic::guest_sim
