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
        event_ring = create(wire::ionic::Opcode::RdmaCreateEventQueue, 4, 2);
        create(wire::ionic::Opcode::RdmaCreateCompletionQueue, 6, 5);
        admin_ring = create(wire::ionic::Opcode::RdmaCreateAdminQueue, 6, 6);
    }

    static RdmaProfile small_profile() {
        RdmaProfile profile;
        profile.page_table_entries = kEntries;
        return profile;
    }

    std::uint64_t create(wire::ionic::Opcode opcode, std::uint8_t depth_log2, std::uint8_t stride_log2,
                         std::uint32_t id = 0, std::uint32_t target = 0) {
        wire::ionic::RdmaQueueCommand command{};
        command.qid_ver.set(id);
        command.cid.set(target);
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
        posted += sizeof(rdma_wire::AdminHeader) + sizeof(T) > rdma_wire::kAdminSlotSize ? 1 : 0;
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

    /// Makes CQ `id` for page 0 and writes an entry into it, which nobody reads.
    void unread_queue(std::uint32_t id) {
        rdma_wire::CreateCq command = queue(id, 4, 1);
        command.dma_addr.set(host.allocate(4096));
        post(AdminOp::CreateCq, command);
        run();
        push(id);
    }
    void push(std::uint32_t id) {
        rdma_wire::SendCqe cqe{};
        EXPECT_EQ(card.objects().push(id, mutable_bytes_of(cqe), 0, false), RdmaObjects::Push::Written);
    }
    void arm(std::uint32_t id) {
        card.doorbell(static_cast<std::uint8_t>(QueueType::RdmaCompletion), 0,
                      rdma_wire::Doorbell::make(id, rdma_wire::kRingArm, 0).value());
    }
    /// Entry `index` of the first lap of the event ring; 0 when it has not been written.
    std::uint32_t event(std::uint32_t index) {
        return host.load<be32>(event_ring + index * sizeof(be32)).get();
    }
    static std::uint32_t notification(std::uint32_t id) {
        return rdma_wire::event_word(rdma_wire::EventType::Cq,
                                     static_cast<std::uint8_t>(rdma_wire::CqEvent::Notify), id) |
               1U;
    }
    /// The driver has read the event queue empty and unmasks its vector.
    void serviced() { card.vector_unmasked(0); }

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
    std::uint64_t event_ring = 0;
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

TEST_F(RdmaLimits, ALongPageTableIsCopiedInSeveralSteps) {
    for (std::uint32_t key = 1; key <= 2; ++key) {
        post(AdminOp::CreateMr, region(key, table, 100'000));
    }
    ring();
    for (int i = 0; i < 3; ++i) {
        EXPECT_TRUE(card.step());
        EXPECT_EQ(executed(), 0U) << "a register access may be waiting";
    }
    card.step();
    EXPECT_EQ(executed(), 1U);
    EXPECT_EQ(held(), 100'000U);
    run();
    EXPECT_EQ(executed(), 2U);
    EXPECT_EQ(refused(), 0U);
}

TEST_F(RdmaLimits, ACommandUnderWayIsWhatItWasWhenItBegan) {
    post(AdminOp::CreateMr, region(1, table, 100'000));
    ring();
    card.step();
    host.store(admin_ring + sizeof(rdma_wire::AdminHeader), region(1, table, 4));
    run();
    EXPECT_EQ(held(), 100'000U);
    EXPECT_EQ(refused(), 0U);
}

TEST_F(RdmaLimits, AResetEndsACommandUnderWay) {
    post(AdminOp::CreateMr, region(1, table, 100'000));
    ring();
    card.step();
    card.reset();
    EXPECT_EQ(held(), 0U);
    while (card.step()) {
    }
    EXPECT_EQ(executed(), 0U);
}

TEST_F(RdmaLimits, OtherAdminQueuesGetTheirTurnWhileATableIsCopied) {
    create(wire::ionic::Opcode::RdmaCreateCompletionQueue, 6, 5, 1);
    const std::uint64_t second = create(wire::ionic::Opcode::RdmaCreateAdminQueue, 6, 6, 1, 1);
    post(AdminOp::CreateMr, region(1, table, 100'000));
    ring();
    host.store(second, rdma_wire::AdminHeader{static_cast<std::uint8_t>(AdminOp::Noop), 0, le16(0)});
    card.doorbell(static_cast<std::uint8_t>(QueueType::RdmaAdmin), 0,
                  rdma_wire::Doorbell::make(1, 0, 1).value());
    card.step();
    card.step();
    EXPECT_EQ(executed(), 1U);
    run();
    EXPECT_EQ(executed(), 2U);
}

TEST_F(RdmaLimits, WhatCannotBeMadeIsRefusedBeforeItsTableIsRead) {
    constexpr std::uint32_t kLong = 128 * 1024;
    post(AdminOp::CreateMr, region(1, table, 2));
    rdma_wire::CreateQp qp{};
    qp.id_ver.set(1);
    qp.sq_ring = qp.rq_ring = {200, 6, 0, 12};
    qp.sq_map_count.set(kLong);
    qp.rq_map_count.set(kLong);
    qp.sq_dma_addr.set(table);
    qp.rq_dma_addr.set(table);
    post(AdminOp::CreateQp, qp);
    post(AdminOp::CreateCq, queue(1, 200, kLong));
    post(AdminOp::CreateMr, region(1, table, kLong));
    ring();
    card.step();
    EXPECT_EQ(executed(), 4U) << "in one step";
    EXPECT_EQ(refused(), 3U);
}

TEST_F(RdmaLimits, WhatAResetDestroysIsGivenBackInSteps) {
    post(AdminOp::CreateMr, region(1, table, 100'000));
    run();
    card.reset();
    EXPECT_EQ(held(), 0U);
    EXPECT_EQ(card.engine().memory_table().count(), 0U);
    mem::TablePool& tables = card.engine().memory_table().tables();
    EXPECT_EQ(tables.idle(), 0U) << "not by the reset itself";
    int steps = 0;
    for (; card.step(); ++steps) {
    }
    EXPECT_GT(steps, 10);
    EXPECT_EQ(tables.idle(), (100'000 + mem::TablePool::kBlockEntries - 1) / mem::TablePool::kBlockEntries);
    EXPECT_FALSE(card.step()) << "and then there is rest";
}

TEST_F(RdmaLimits, AQueueThatIsArmedForEverTakesOneEntryOfTheSharedEventQueue) {
    unread_queue(1);
    unread_queue(2);
    for (int i = 0; i < 100'000; ++i) {
        arm(1);
    }
    arm(2);
    EXPECT_EQ(event(0), notification(1));
    EXPECT_EQ(event(1), notification(2)) << "behind a single event of the other queue";
    EXPECT_EQ(event(2), 0U);
    for (int i = 0; i < 100'000; ++i) {
        arm(1);
    }
    serviced();
    EXPECT_EQ(event(2), notification(1)) << "an arm that may have come after the driver had read is kept";
    EXPECT_EQ(event(3), 0U);
    serviced();
    EXPECT_EQ(event(3), 0U);
}

TEST_F(RdmaLimits, AnArmAfterTheEventWasReadNotifiesAgainAndAtOnce) {
    unread_queue(1);
    for (std::uint32_t i = 0; i < 10; ++i) {
        arm(1);
        EXPECT_EQ(event(i), notification(1));
        serviced();
        EXPECT_EQ(event(i + 1), 0U);
    }
}

TEST_F(RdmaLimits, ACompletionBehindAnUnreadEventIsToldOfWhenThatIsRead) {
    unread_queue(1);
    arm(1);
    card.doorbell(static_cast<std::uint8_t>(QueueType::RdmaCompletion), 0,
                  rdma_wire::Doorbell::make(1, rdma_wire::kRingConsumer, 1).value());
    arm(1);  // empty now: for the next completion
    EXPECT_EQ(event(1), 0U);
    push(1);
    EXPECT_EQ(event(1), 0U);
    serviced();
    EXPECT_EQ(event(1), notification(1));
}

TEST_F(RdmaLimits, ADestroyedQueueIsOwedNothingAndItsSuccessorIsNotHeldBack) {
    unread_queue(1);
    unread_queue(2);
    arm(1);
    arm(1);
    arm(2);
    arm(2);
    post(AdminOp::DestroyCq, rdma_wire::Destroy{le32(1)});
    run();
    serviced();
    EXPECT_EQ(event(2), notification(2)) << "the destroyed queue would have been the first";
    EXPECT_EQ(event(3), 0U);
    unread_queue(1);
    arm(1);
    EXPECT_EQ(event(3), notification(1));
    arm(1);
    card.reset();
    serviced();
}

}  // namespace
}  // namespace ernic::ionic
