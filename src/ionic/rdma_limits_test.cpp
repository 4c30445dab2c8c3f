// SPDX-License-Identifier: MIT
// What a guest may make the RDMA half hold and do at once.
#include <gtest/gtest.h>

#include "ionic/rdma_card.hpp"
#include "ionic/test_driver.hpp"

namespace ernic::ionic {
namespace {

namespace rdma_wire = wire::ionic_rdma;
using rdma_wire::AdminOp;
using rdma_wire::AdminStatus;

constexpr std::uint32_t kEntries = 256 * 1024;

/// The RDMA half alone, with event queue 0, completion queue 0 and admin queue 0.
class RdmaLimits : public ::testing::Test {
  protected:
    RdmaLimits() {
        host.memory().set_enabled(true);
        create(wire::ionic::Opcode::RdmaCreateEventQueue, 4, 2);
        create(wire::ionic::Opcode::RdmaCreateCompletionQueue, 6, 5);
        admin_ring = create(wire::ionic::Opcode::RdmaCreateAdminQueue, 6, 6);
    }

    static RdmaProfile small_profile() {
        RdmaProfile profile;
        profile.page_table_entries = kEntries;
        return profile;
    }

    std::uint64_t create(wire::ionic::Opcode opcode, std::uint8_t depth_log2, std::uint8_t stride_log2) {
        wire::ionic::RdmaQueueCommand command{};
        command.opcode = static_cast<std::uint8_t>(opcode);
        command.depth_log2 = depth_log2;
        command.stride_log2 = stride_log2;
        command.dma_addr.set(host.allocate(4096));
        EXPECT_EQ(card.create_queue(command), wire::ionic::Status::Success);
        return command.dma_addr.get();
    }

    template <WireValue T>
    void post(AdminOp op, const T& body) {
        const std::uint64_t slot = admin_ring + posted++ * rdma_wire::kAdminSlotSize;
        host.store(slot, rdma_wire::AdminHeader{static_cast<std::uint8_t>(op), 0, le16(sizeof(T))});
        host.store(slot + sizeof(rdma_wire::AdminHeader), body);
    }
    void ring() {
        card.doorbell(static_cast<std::uint8_t>(QueueType::RdmaAdmin), 0,
                      rdma_wire::Doorbell::make(0, 0, static_cast<std::uint16_t>(posted)).value());
    }

    static rdma_wire::CreateMr region(std::uint32_t key, std::uint64_t table, std::uint32_t entries) {
        rdma_wire::CreateMr command{};
        command.key.set(key << 8U);
        command.length.set(std::uint64_t{entries} * 4096);
        command.map_count.set(entries);
        command.dma_addr.set(table);
        command.page_size_log2 = 12;
        return command;
    }
    rdma_wire::CreateCq queue(std::uint32_t id, std::uint8_t depth_log2, std::uint32_t entries) {
        rdma_wire::CreateCq command{};
        command.id_ver.set(id);
        command.ring = {depth_log2, 5, 0, 12};
        command.map_count.set(entries);
        command.dma_addr.set(table);
        return command;
    }

    std::uint64_t held() { return card.engine().memory_table().page_entries_used(); }
    std::uint64_t executed() { return card.objects().counters().admin_commands.value(); }
    std::uint64_t refused() { return card.objects().counters().admin_errors.value(); }
    void run() {
        ring();
        while (card.step()) {
        }
    }

    FakeClock clock;
    EventLoop loop{clock};
    test::FakeHost host;
    pci::Msix msix{host, 8};
    Interrupts interrupts{msix, 8};
    net::Segment segment;
    metrics::Registry registry;
    log::Logger log{log::null_sink(), "test"};
    RdmaCard card{small_profile(), {{2, 0, 0, 0, 0, 1}}, host, interrupts, loop, segment, registry, log};
    std::uint64_t admin_ring = 0;
    std::uint64_t posted = 0;
    std::uint64_t table = host.allocate(std::size_t{1} << 20U);
};

TEST_F(RdmaLimits, ARingKeepsNoMoreOfItsPageTableThanItReaches) {
    post(AdminOp::CreateCq, queue(1, 8, 100'000));  // 256 entries of 32 bytes
    run();
    EXPECT_EQ(refused(), 0U);
    EXPECT_EQ(held(), 2U);
    post(AdminOp::DestroyCq, rdma_wire::Destroy{le32(1)});
    run();
    EXPECT_EQ(held(), 0U);
}

TEST_F(RdmaLimits, ATableForARingOfOnePageIsStillATable) {
    const std::uint64_t page = host.allocate(4096);
    host.store(table, le64(page));
    post(AdminOp::CreateCq, queue(1, 4, 2));
    run();
    rdma_wire::SendCqe cqe{};
    EXPECT_EQ(card.objects().push(1, mutable_bytes_of(cqe), rdma_wire::kCqeError, false),
              RdmaObjects::Push::Written);
    EXPECT_NE(host.load<rdma_wire::SendCqe>(page).qid_type_flags.get(), 0U);
}

TEST_F(RdmaLimits, PageTablesOfRingsCountAgainstTheAdvertisedEntries) {
    post(AdminOp::CreateMr, region(1, table, 128 * 1024));
    post(AdminOp::CreateMr, region(2, table, 128 * 1024 - 3));
    post(AdminOp::CreateCq, queue(1, 8, 2));
    post(AdminOp::CreateCq, queue(2, 8, 2));
    run();
    EXPECT_EQ(executed(), 4U);
    EXPECT_EQ(refused(), 1U);
    EXPECT_EQ(held(), kEntries - 1U);
    card.reset();
    EXPECT_EQ(held(), 0U);
}

TEST_F(RdmaLimits, LongPageTablesEndAStep) {
    for (std::uint32_t key = 1; key <= 4; ++key) {
        post(AdminOp::CreateMr, region(key, table, 50'000));
    }
    ring();
    for (std::uint64_t steps = 1; steps <= 4; ++steps) {
        card.step();
        EXPECT_EQ(executed(), steps) << "a register access may be waiting";
    }
    EXPECT_EQ(refused(), 0U);
}

}  // namespace
}  // namespace ernic::ionic
