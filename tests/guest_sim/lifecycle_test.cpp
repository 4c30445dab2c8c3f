// SPDX-License-Identifier: MIT
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <memory>
#include <thread>

#include "guest_sim/error.hpp"
#include "guest_sim/fixture.hpp"

namespace ernic::guest_sim {
namespace {

constexpr std::size_t kChunk = std::size_t{4} << 20U;

/// Things that end while data is moving. The guest is made and lost within each test.
class Lifecycle : public ::testing::Test {
  protected:
    struct Traffic {
        explicit Traffic(Guest& guest)
            : cq(guest.create_cq()), from(guest.register_memory(kChunk)), to(guest.register_memory(kChunk)) {
            std::tie(client, peer) = guest.create_pair(*cq);
        }
        /// A quarter of a gigabyte on its way.
        void start() {
            for (int i = 0; i < 60; ++i) {
                client->stage(SendRequest{
                    .wr_id = 1, .op = Op::Write, .sges = from.list(), .remote_va = to.va, .rkey = to.key});
            }
            client->ring_send();
        }
        CqPtr cq;
        Region from;
        Region to;
        QpPtr client;
        QpPtr peer;
    };

    void TearDown() override {
        EXPECT_TRUE(ended || server.running()) << server.log();
        EXPECT_EQ(server.stop(), 0);
    }

    [[nodiscard]] std::ptrdiff_t open_files() {
        const std::filesystem::directory_iterator files("/proc/" + std::to_string(server.pid()) + "/fd");
        return std::distance(begin(files), end(files));
    }
    /// A whole small program on a new guest.
    void expect_works() {
        Guest guest(server);
        Traffic traffic(guest);
        fill_pattern(traffic.from.memory.part(0, 1000), 1);
        traffic.client->post_send({.wr_id = 1,
                                   .op = Op::Write,
                                   .sges = {traffic.from.sge(0, 1000)},
                                   .remote_va = traffic.to.va,
                                   .rkey = traffic.to.key});
        EXPECT_EQ(traffic.cq->wait().status, Status::Ok);
        EXPECT_EQ(first_mismatch(traffic.to.memory.part(0, 1000), 1), kNoMismatch);
    }

    ServerProcess server;
    /// The test has ended the server itself.
    bool ended = false;
};

TEST_F(Lifecycle, DestroyUnderTraffic) {
    Guest guest(server);
    for (int round = 0; round < 10; ++round) {
        Traffic traffic(guest);
        traffic.start();
        if (round % 2 == 0) {
            traffic.client->destroy();
            traffic.peer->destroy();
        } else {
            traffic.peer->destroy();
            traffic.client->destroy();
        }
        guest.destroy(traffic.from);
        guest.destroy(traffic.to);
        // DMA has ended when the command has: what the guest writes now stays.
        traffic.to.memory.fill(0x33);
        EXPECT_TRUE(all_bytes(traffic.to.memory.part(0, 65536), 0x33));
        EXPECT_TRUE(all_bytes(traffic.to.memory.part(kChunk - 65536, 65536), 0x33));
        traffic.cq->destroy();
    }
}

TEST_F(Lifecycle, ErrorAndResetUnderTraffic) {
    Guest guest(server, std::size_t{256} << 20U);
    for (int round = 0; round < 10; ++round) {
        Traffic traffic(guest);
        traffic.start();
        if (round % 2 == 0) {
            traffic.client->to(QpState::Error);
            const auto completions = traffic.cq->wait_for(60);
            EXPECT_EQ(completions.back().status, Status::Flushed);
        }
        traffic.client->to(QpState::Reset);
        traffic.to.memory.fill(0x44);
        EXPECT_TRUE(all_bytes(traffic.to.memory, 0x44));
        traffic.peer->to(QpState::Reset);
        guest.connect(*traffic.client, *traffic.peer);
        traffic.client->post_send({.wr_id = 9,
                                   .op = Op::Write,
                                   .sges = {traffic.from.sge(0, 8)},
                                   .remote_va = traffic.to.va,
                                   .rkey = traffic.to.key});
        EXPECT_EQ(traffic.cq->wait().wr_id, 9U);
    }
}

TEST_F(Lifecycle, RegionDestroyedUnderTraffic) {
    Guest guest(server);
    Traffic traffic(guest);
    traffic.start();
    guest.destroy(traffic.to);
    const auto completions = traffic.cq->wait_for(60);
    bool refused = false;
    for (const WorkCompletion& wc : completions) {
        refused = refused || wc.status == Status::RemoteAccess;
    }
    EXPECT_TRUE(refused || completions.back().status == Status::Ok);
}

TEST_F(Lifecycle, RdmaResetUnderTraffic) {
    {
        Guest guest(server);
        Traffic traffic(guest);
        traffic.start();
        guest.rdma().reset_lif();
        traffic.to.memory.fill(0x55);
        EXPECT_TRUE(all_bytes(traffic.to.memory, 0x55)) << "no DMA after RDMA_RESET_LIF";
        // Doorbells of dead queues go on for a while.
        traffic.client->ring_send();
        guest.card().ring(0, guest.rdma().identity().admin_queues.type, 1);
        // The driver binds again on the same card.
        RdmaDriver again(guest.card());
    }
    expect_works();
}

TEST_F(Lifecycle, DeviceResetUnderTraffic) {
    Guest guest(server);
    Traffic traffic(guest);
    traffic.start();
    guest.client().reset_device();
    traffic.to.memory.fill(0x66);
    EXPECT_TRUE(all_bytes(traffic.to.memory, 0x66)) << "no DMA after the reset";
    traffic.client->ring_send();
    EXPECT_EQ(guest.client().read_value<le32>(0, 0).get(), wire::ionic::kSignature);
}

TEST_F(Lifecycle, AVmThatDiesUnderTrafficMakesRoomForTheNext) {
    expect_works();
    const std::ptrdiff_t files = open_files();
    for (int round = 0; round < 10; ++round) {
        Guest guest(server);
        Traffic traffic(guest);
        traffic.start();
    }
    expect_works();
    EXPECT_TRUE(wait_until([&] { return open_files() <= files; })) << "file descriptors leak";
}

TEST_F(Lifecycle, AMemoryFileThatShrinksCostsOnlyItsClient) {
    {
        Guest guest(server);
        Traffic traffic(guest);
        // Allocated last, so that cutting it off takes nothing else away.
        const Region lost = guest.register_memory(kChunk);
        const auto rest = static_cast<off_t>(lost.memory.iova - GuestRam::kBase);
        ASSERT_EQ(::ftruncate(guest.ram().fd(), rest), 0) << "the server must not be able to seal this file";
        traffic.client->post_send({.wr_id = 1,
                                   .op = Op::Write,
                                   .sges = traffic.from.list(),
                                   .remote_va = lost.va,
                                   .rkey = lost.key});
        EXPECT_THROW(
            {
                for (;;) {
                    guest.client().read_value<le32>(0, 0);
                }
            },
            GuestError)
            << "the client is dropped";
    }
    expect_works();
}

TEST_F(Lifecycle, TheNextClientDoesNotPayForMemoryThatShrank) {
    // The client goes in the same moment, so that the server learns of both at once.
    for (int round = 0; round < 30; ++round) {
        VfioClient next = [&] {
            Guest guest(server);
            Traffic traffic(guest);
            const Region lost = guest.register_memory(kChunk);
            const auto rest = static_cast<off_t>(lost.memory.iova - GuestRam::kBase);
            for (int i = 0; i < 4; ++i) {
                traffic.client->stage({.wr_id = 1,
                                       .op = Op::Write,
                                       .sges = lost.list(),
                                       .remote_va = lost.va,
                                       .rkey = lost.key});
            }
            traffic.client->ring_send();
            EXPECT_EQ(::ftruncate(guest.ram().fd(), rest), 0);
            EXPECT_EQ(::shutdown(guest.client().fd(), SHUT_RDWR), 0);
            return VfioClient(server.connect());
        }();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        EXPECT_EQ(next.read_value<le32>(0, 0).get(), wire::ionic::kSignature) << "round " << round;
    }
    expect_works();
}

TEST_F(Lifecycle, TerminatedUnderTraffic) {
    Guest guest(server);
    Traffic traffic(guest);
    traffic.start();
    const auto begin = std::chrono::steady_clock::now();
    ended = true;
    EXPECT_EQ(server.stop(), 0);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(500));
}

}  // namespace
}  // namespace ernic::guest_sim
