// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include "guest_sim/error.hpp"
#include "guest_sim/fixture.hpp"
#include "guest_sim/nvme_host.hpp"

/// The NVMe over Fabrics target of the real server, seen through the card.
namespace ernic::guest_sim {
namespace {

using wire::nvme::CompletionEntry;
using wire::nvme::IoOpcode;
using wire::nvme::SglDescriptor;
using wire::nvme::SubmissionEntry;

constexpr wire::MacAddress kTargetMac{{0x02, 0, 0, 0, 0, 0x77}};
constexpr std::uint32_t kBlock = 512;

class Nvmeof : public ::testing::Test {
  protected:
    void TearDown() override {
        EXPECT_TRUE(server.running()) << "the server has died";
        if (HasFailure()) {
            ADD_FAILURE() << "log of the server:\n" << server.log();
        }
        EXPECT_EQ(server.stop(), 0);
    }
    static std::uint16_t status_of(const CompletionEntry& completion) {
        return completion.status.get() >> 1U;
    }

    ServerProcess server{{.arguments = {"--backend", "nvmeof:size=16M,mac=02:00:00:00:00:77"}}};
    Guest guest{server};
    NvmeHost host{guest, {.mac = kTargetMac}};
};

TEST_F(Nvmeof, WhatIsWrittenIsReadInPiecesOfAllSizes) {
    const auto admin = host.connect_admin();
    const auto queue = host.connect_io(1, 32, 8192);
    const Region from = guest.register_memory(1U << 20U);
    const Region to = guest.register_memory(1U << 20U);
    std::uint16_t id = 0;
    for (const std::uint32_t size : {512U, 4096U, 65536U, 262144U, 1048576U}) {
        const std::uint32_t blocks = size / kBlock;
        const std::uint64_t lba = 3 + size / kBlock;
        fill_pattern(from.memory.part(0, size), size);
        to.memory.fill(0);
        EXPECT_EQ(status_of(queue->run(io_command(IoOpcode::Write, ++id, lba, blocks, keyed(from, 0, size)))),
                  0U);
        EXPECT_EQ(status_of(queue->run(io_command(IoOpcode::Read, ++id, lba, blocks, keyed(to, 0, size)))),
                  0U);
        EXPECT_EQ(first_mismatch(to.memory.part(0, size), size), kNoMismatch) << size;
    }
    // Data in the capsule.
    std::vector<std::byte> data(8192);
    for (std::size_t i = 0; i < data.size(); ++i) {
        data[i] = std::byte{pattern_at(i, 7)};
    }
    const auto written =
        queue->run(io_command(IoOpcode::Write, ++id, 100, 16, SglDescriptor::in_capsule(0, 8192)), data);
    EXPECT_EQ(status_of(written), 0U);
    EXPECT_EQ(status_of(queue->run(io_command(IoOpcode::Read, ++id, 100, 16, keyed(to, 0, 8192)))), 0U);
    EXPECT_EQ(first_mismatch(to.memory.part(0, 8192), 7), kNoMismatch);
}

TEST_F(Nvmeof, AResponseInvalidatesTheKeyOfAFastRegion) {
    const auto admin = host.connect_admin();
    const auto queue = host.connect_io(1, 32, 0);
    const Region fast = guest.create_fast_region();
    const Buffer page = guest.allocate(4096);
    page.fill(0xff);
    queue->qp().post_local(RegisterRequest{.key = fast.key | 1U,
                                           .va = 0x10000,
                                           .length = 4096,
                                           .dma_addr = page.iova,
                                           .access = kAllAccess,
                                           .signalled = false});
    const auto read =
        io_command(IoOpcode::Read, 1, 0, 8, SglDescriptor::keyed(0x10000, 4096, fast.key | 1U, true));
    EXPECT_EQ(status_of(queue->run(read)), 0U);
    EXPECT_TRUE(all_bytes(page, 0));
}

TEST_F(Nvmeof, APortWithoutTargetIsRejectedAtOnce) {
    host.set_port(4421);
    EXPECT_EQ(host.connect_transport(0, 32), nullptr);
    ASSERT_TRUE(host.rejected());
    EXPECT_EQ(host.rejected()->reason.get(), 8);
    host.set_port(8009);
    EXPECT_NE(host.connect_transport(0, 32), nullptr);
}

TEST_F(Nvmeof, ManyQueuesAtOnce) {
    const auto admin = host.connect_admin();
    std::vector<std::unique_ptr<NvmeQueue>> queues;
    for (std::uint16_t id = 1; id <= 8; ++id) {
        queues.push_back(host.connect_io(id, 32, 0));
    }
    const Region memory = guest.register_memory(8 * 4096);
    for (std::uint16_t id = 0; id < 8; ++id) {
        fill_pattern(memory.memory.part(id * 4096U, 4096), id);
        queues[id]->stage(io_command(IoOpcode::Write, id, id * 8U, 8, keyed(memory, id * 4096U, 4096)));
    }
    for (const auto& queue : queues) {
        queue->ring();
    }
    for (const auto& queue : queues) {
        std::array<CompletionEntry, 1> completion{};
        wait_until([&] { return queue->poll(completion) == 1; });
        EXPECT_EQ(status_of(completion[0]), 0U);
    }
    const Region back = guest.register_memory(8 * 4096);
    EXPECT_EQ(status_of(queues[3]->run(io_command(IoOpcode::Read, 1, 0, 64, keyed(back, 0, 8 * 4096)))), 0U);
    for (std::uint32_t id = 0; id < 8; ++id) {
        EXPECT_EQ(first_mismatch(back.memory.part(id * 4096U, 4096), id), kNoMismatch);
    }
}

}  // namespace
}  // namespace ernic::guest_sim
