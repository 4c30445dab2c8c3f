// SPDX-License-Identifier: MIT
#include "ionic/card.hpp"

#include <gtest/gtest.h>

#include "ionic/test_driver.hpp"

namespace ernic::ionic {
namespace {

using test::TestDriver;
using test::TestQueue;
namespace w = wire::ionic;

constexpr Nanoseconds kStatsPeriod = 100'000'000;

class FakeRdma final : public RdmaDevice {
  public:
    void reset() override { ++resets; }
    w::Status create_queue(const w::RdmaQueueCommand& command) override {
        opcodes.push_back(command.opcode);
        return w::Status::Success;
    }
    void doorbell(std::uint8_t type, std::uint32_t dbid, std::uint64_t value) override {
        last_type = type;
        last_dbid = dbid;
        last_value = value;
    }
    bool step() override { return steps != 0 && --steps != 0; }

    void vector_unmasked(std::uint16_t vector) override { unmasked.push_back(vector); }
    void set_macs(std::span<const wire::MacAddress> macs) override {
        addresses.assign(macs.begin(), macs.end());
    }
    std::vector<wire::MacAddress> addresses;
    void set_mtu(std::uint32_t) override {}

    int resets = 0;
    int steps = 0;
    std::vector<std::uint16_t> unmasked;
    std::vector<std::uint8_t> opcodes;
    std::uint8_t last_type = 0;
    std::uint32_t last_dbid = 0;
    std::uint64_t last_value = 0;
};

class CardTest : public test::CardTest {
  protected:
    FakeRdma& attach() {
        auto rdma = std::make_unique<FakeRdma>();
        FakeRdma& seen = *rdma;
        card.attach_rdma(std::move(rdma));
        return seen;
    }
    w::LifStatus lif_status() { return host.load<w::LifStatus>(driver.lif_info + 0x100); }
    w::PortStatus port_status() { return host.load<w::PortStatus>(driver.port_info + 0x100); }
    w::NotifyEvent event(std::uint32_t slot) {
        return host.load<w::NotifyEvent>(driver.notify_ring + 4096 + slot * 64);
    }
};

TEST_F(CardTest, ProbeSequenceSucceeds) {
    driver.probe();
    EXPECT_EQ(driver.mac, kMac);
    EXPECT_EQ(driver.granted_features, 0x7BFU);
    EXPECT_EQ(lif_status().link_status.get(), 1);
    EXPECT_EQ(lif_status().link_speed.get(), 100'000U);
    EXPECT_EQ(port_status().speed.get(), 100'000U);
    const auto xcvr = host.load<w::TransceiverStatus>(driver.port_info + 0x13c);
    EXPECT_EQ(xcvr.phy, 2);
    EXPECT_EQ(xcvr.pid.get(), 52);
    EXPECT_EQ(xcvr.sprom[0], 0x11);
}

TEST_F(CardTest, IdentitiesHaveTheDocumentedOffsets) {
    attach();
    driver.command(w::Opcode::Identify);
    EXPECT_EQ(driver.read32(0x888 + 0x0c), 64U);
    EXPECT_EQ(driver.read32(0x888 + 0x10), 512U);
    EXPECT_EQ(driver.read32(0x888 + 0x14), 1U);
    EXPECT_EQ(driver.read32(0x888 + 0x18), 3U);
    driver.command(w::Opcode::LifIdentify);
    EXPECT_EQ(driver.read32(0x888), 3U);
    EXPECT_EQ(driver.read<le16>(0x888 + 0x14).get(), 128);
    EXPECT_EQ(driver.read<le32>(0x888 + 0x1a).get(), 9212U);
    EXPECT_EQ(driver.read32(0x888 + 0xb4), 1U);
    EXPECT_EQ(driver.read32(0x888 + 0xb8), 16U);
    EXPECT_EQ(driver.read32(0x888 + 0xbc), 16U);
    EXPECT_EQ(driver.read<std::uint8_t>(0x888 + 0x1d8), 7);
    EXPECT_EQ(driver.read32(0x888 + 0x1dc), 32U);
    EXPECT_EQ(card.bar_size(2), 512U * 4096);
}

TEST_F(CardTest, WithoutRdmaNothingOfItIsAdvertised) {
    driver.command(w::Opcode::LifIdentify);
    EXPECT_EQ(driver.read32(0x888), 1U);
    EXPECT_EQ(driver.read32(0x888 + 0x1dc), 0U);
    w::Command reset{};
    reset.opcode = static_cast<std::uint8_t>(w::Opcode::RdmaResetLif);
    EXPECT_EQ(driver.command(reset).status, static_cast<std::uint8_t>(w::Status::NotSupported));
}

TEST_F(CardTest, QueueIdentitiesMatchTheRings) {
    const auto identify = [&](std::uint8_t type, std::uint8_t version) {
        w::QueueIdentifyCommand raw{};
        raw.opcode = static_cast<std::uint8_t>(w::Opcode::QueueIdentify);
        raw.type = type;
        raw.version = version;
        return driver.command(raw);
    };
    EXPECT_EQ(identify(3, 3).status, 0);
    EXPECT_EQ(driver.read<std::uint8_t>(0x888), 1);
    EXPECT_EQ(driver.read<le16>(0x888 + 0x14).get(), 256);
    EXPECT_EQ(driver.read<le64>(0x888 + 0x08).get(), 3U);
    EXPECT_EQ(identify(2, 2).status, 0);
    EXPECT_EQ(driver.read<le16>(0x888 + 0x14).get(), 128);
    EXPECT_EQ(identify(0, 0).status, 0);
    EXPECT_EQ(identify(1, 0).status, 0);
    EXPECT_EQ(identify(3, 0).status, static_cast<std::uint8_t>(w::Status::BadVersion));
    EXPECT_EQ(identify(9, 0).status, static_cast<std::uint8_t>(w::Status::BadQueueType));
}

TEST_F(CardTest, ZeroedCommandWithoutDoorbellLeavesResults) {
    driver.command(w::Opcode::Identify);
    driver.write32(w::kDeviceCommandOffset, 0);
    EXPECT_EQ(driver.read32(0x888 + 0x0c), 64U);
    EXPECT_EQ(driver.read32(w::kDeviceCommandOffset + 4), 1U);
}

TEST_F(CardTest, ACommandCanBeWrittenByteByByte) {
    for (std::uint32_t i = 0; i < 64; ++i) {
        driver.write<std::uint8_t>(w::kDeviceCommandOffset + 8 + i, i == 0 ? 1 : 0);
    }
    driver.write<std::uint8_t>(w::kDeviceCommandOffset, 1);
    EXPECT_EQ(driver.read<std::uint8_t>(w::kDeviceCommandOffset + 4), 1);
    EXPECT_EQ(driver.read<le64>(0x888 + 0x08).get(), 1U | std::uint64_t{64} << 32U);
}

TEST_F(CardTest, TickCounterShowsNanoseconds) {
    const Nanoseconds now = clock.now();
    EXPECT_EQ(driver.read<le64>(0x400).get(), now);
    clock.advance(0x1'0000'0005);
    EXPECT_EQ(driver.read32(0x400), static_cast<std::uint32_t>(now + 5));
    EXPECT_EQ(driver.read32(0x404), 1U);
}

TEST_F(CardTest, MetricsOutliveALifReset) {
    driver.probe();
    card.stats().transmitted(Cast::Unicast, 3, 300);
    EXPECT_EQ(driver.command(w::Opcode::LifReset).status, 0);
    EXPECT_EQ(card.stats().lif(w::LifStat::TxUnicastPackets), 0U);
    EXPECT_EQ(metric("ionic.tx.frames"), 3U);
    EXPECT_EQ(metric("ionic.tx.bytes"), 300U);
}

TEST_F(CardTest, RefusedCommandsSayWhy) {
    const auto status = [&](w::Opcode opcode) {
        return static_cast<w::Status>(driver.command(opcode).status);
    };
    EXPECT_EQ(status(static_cast<w::Opcode>(99)), w::Status::BadOpcode);
    EXPECT_EQ(status(w::Opcode::RdmaCreateEventQueue), w::Status::BadOpcode);
    EXPECT_EQ(status(w::Opcode::VfSetAttribute), w::Status::NotSupported);
    EXPECT_EQ(status(w::Opcode::FirmwareControl), w::Status::NotSupported);
    EXPECT_EQ(status(w::Opcode::DiscoverCmb), w::Status::NotSupported);
    EXPECT_EQ(status(w::Opcode::QueueInit), w::Status::NotPermitted);  // no LIF yet
    EXPECT_EQ(metric("ionic.device_commands.failed"), 6U);
}

TEST_F(CardTest, DeviceCommandsOnTheAdminQueueAreRefused) {
    driver.probe();
    w::Command raw{};
    raw.opcode = static_cast<std::uint8_t>(w::Opcode::LifReset);
    EXPECT_EQ(driver.admin(raw).status, static_cast<std::uint8_t>(w::Status::DeviceCommandOnly));
    raw.opcode = 99;
    EXPECT_EQ(driver.admin(raw).status, static_cast<std::uint8_t>(w::Status::BadOpcode));
}

TEST_F(CardTest, AdminRingSurvivesManyLaps) {
    driver.probe();
    for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(driver.get_lif(w::LifAttribute::Mac).status, 0);
    }
}

TEST_F(CardTest, AdminCommandsPostedTogetherCompleteOneByOne) {
    driver.probe();
    w::Command nop{};
    for (int i = 0; i < 15; ++i) {
        driver.post(driver.admin_queue, nop);
    }
    driver.ring(driver.admin_queue);
    driver.run();
    for (int i = 0; i < 15; ++i) {
        EXPECT_TRUE(driver.poll(driver.admin_queue).has_value());
    }
    EXPECT_FALSE(driver.poll(driver.admin_queue).has_value());
}

TEST_F(CardTest, OpenFillsAndEnablesQueues) {
    driver.probe();
    driver.open(4);
    EXPECT_EQ(driver.tx[3].hw_index, 3U);
    EXPECT_EQ(driver.tx[3].hw_type, static_cast<std::uint8_t>(QueueType::Tx));
    EXPECT_EQ(driver.rx[3].hw_type, static_cast<std::uint8_t>(QueueType::Rx));
    EXPECT_EQ(metric("ionic.doorbells.rx"), 4U);
}

TEST_F(CardTest, BadQueueInitsAreRefused) {
    driver.probe();
    TestQueue queue = driver.allocate_queue(6, 16, w::kTxSgStride);
    const auto good = TestDriver::queue_init(queue, w::LogicalQueue::Tx, 0, 1, 5);
    const auto refused = [&](auto change) {
        auto bad = good;
        change(bad);
        return driver.admin(bad).status != 0;
    };
    EXPECT_TRUE(refused([](auto& c) { c.index.set(16); }));
    EXPECT_TRUE(refused([](auto& c) { c.interrupt.set(64); }));
    EXPECT_TRUE(refused([](auto& c) { c.pid.set(512); }));
    EXPECT_TRUE(refused([](auto& c) { c.ring_size_log2 = 17; }));
    EXPECT_TRUE(refused([](auto& c) { c.ring_size_log2 = 1; }));
    EXPECT_TRUE(refused([](auto& c) { c.ring_base.set(c.ring_base.get() + 8); }));
    EXPECT_TRUE(refused([](auto& c) { c.type = 9; }));
    EXPECT_TRUE(refused([](auto& c) { c.type = 0; }));
    EXPECT_TRUE(refused([](auto& c) { c.version = 0; }));
    EXPECT_TRUE(refused([](auto& c) { c.lif_index.set(1); }));
    EXPECT_TRUE(refused([](auto& c) { c.flags.set(0x15); }));
    EXPECT_TRUE(refused([](auto& c) { c.features.set(0x20); }));
    EXPECT_EQ(driver.admin(good).status, 0);
}

TEST_F(CardTest, LinkChangeUpdatesMemoryThenTellsTheDriver) {
    driver.probe();
    const int before = host.interrupts[0];
    card.set_link(false);
    EXPECT_EQ(lif_status().link_status.get(), 2);
    EXPECT_EQ(lif_status().link_down_count.get(), 1);
    EXPECT_EQ(lif_status().event_id.get(), 1U);
    EXPECT_EQ(port_status().status, 2);
    EXPECT_EQ(event(0).event_id.get(), 1U);
    EXPECT_EQ(event(0).code.get(), 1);
    EXPECT_EQ(host.interrupts[0], before + 1);
    card.set_link(true);
    EXPECT_EQ(lif_status().link_status.get(), 1);
    EXPECT_EQ(event(1).event_id.get(), 2U);
}

TEST_F(CardTest, NotifyRingWrapsAfter64Events) {
    driver.probe();
    for (int i = 0; i < 70; ++i) {
        card.set_link(i % 2 == 1);
    }
    EXPECT_EQ(event(63).event_id.get(), 64U);
    EXPECT_EQ(event(5).event_id.get(), 70U);
    EXPECT_EQ(event(6).event_id.get(), 7U);
}

TEST_F(CardTest, PortAttributesShowInPortInfo) {
    driver.probe();
    const auto set = [&](w::PortAttribute attribute, std::uint32_t value) {
        w::PortSetAttributeCommand raw{};
        raw.opcode = static_cast<std::uint8_t>(w::Opcode::PortSetAttribute);
        raw.attribute = static_cast<std::uint8_t>(attribute);
        raw.value.set(value);
        return driver.command(raw).status;
    };
    EXPECT_EQ(set(w::PortAttribute::State, 1), 0);
    EXPECT_EQ(lif_status().link_status.get(), 2);
    EXPECT_EQ(set(w::PortAttribute::State, 2), 0);
    EXPECT_EQ(lif_status().link_status.get(), 1);
    EXPECT_EQ(set(w::PortAttribute::Speed, 25'000), 0);
    EXPECT_EQ(lif_status().link_speed.get(), 25'000U);
    EXPECT_EQ(port_status().speed.get(), 25'000U);
    EXPECT_NE(set(w::PortAttribute::Speed, 12'345), 0);
    EXPECT_EQ(set(w::PortAttribute::Pause, 0x31), 0);
    EXPECT_NE(set(w::PortAttribute::Pause, 0x71), 0);
    EXPECT_EQ(set(w::PortAttribute::Fec, 1), 0);
    EXPECT_EQ(host.load<w::PortConfig>(driver.port_info).fec_type, 1);
    EXPECT_NE(set(w::PortAttribute::State, 7), 0);
    EXPECT_NE(set(w::PortAttribute::Loopback, 1), 0);
}

TEST_F(CardTest, LifAttributesAreCheckedAndRemembered) {
    driver.probe();
    const le32 mtu(9194);
    EXPECT_EQ(driver.set_lif(w::LifAttribute::Mtu, bytes_of(mtu)).status, 0);
    EXPECT_EQ(read_value<le32>(driver.get_lif(w::LifAttribute::Mtu).body)->get(), 9194U);
    const le32 too_big(9195);
    EXPECT_NE(driver.set_lif(w::LifAttribute::Mtu, bytes_of(too_big)).status, 0);
    const wire::MacAddress multicast{{1, 0, 0, 0, 0, 0}};
    EXPECT_NE(driver.set_lif(w::LifAttribute::Mac, bytes_of(multicast)).status, 0);
    EXPECT_NE(driver.set_lif(static_cast<w::LifAttribute>(77)).status, 0);
}

TEST_F(CardTest, RssNeedsAReadableTable) {
    driver.probe();
    w::RssAttribute rss{};
    rss.types.set(0x3f);
    rss.table_address.set(driver.rss_table);
    EXPECT_EQ(driver.set_lif(w::LifAttribute::Rss, bytes_of(rss)).status, 0);
    rss.table_address.set(0xdead0000);
    EXPECT_EQ(driver.set_lif(w::LifAttribute::Rss, bytes_of(rss)).status,
              static_cast<std::uint8_t>(w::Status::BadAddress));
    rss.types.set(0);  // the driver switches it off on its way out
    EXPECT_EQ(driver.set_lif(w::LifAttribute::Rss, bytes_of(rss)).status, 0);
}

TEST_F(CardTest, UnreachableInfoBlocksAreRefused) {
    driver.probe();
    w::LifInitCommand lif{};
    lif.opcode = static_cast<std::uint8_t>(w::Opcode::LifInit);
    lif.info_address.set(0xdead000);
    EXPECT_EQ(driver.command(lif).status, static_cast<std::uint8_t>(w::Status::BadAddress));
}

TEST_F(CardTest, StatisticsReachMemoryOnceAndAnIdleCardHasNoTimer) {
    driver.probe();
    card.stats().add(w::LifStat::RxRdmaUnicastPackets, 3);
    const std::uint64_t address =
        driver.lif_info + 0x140 + 8U * static_cast<unsigned>(w::LifStat::RxRdmaUnicastPackets);
    EXPECT_EQ(host.load<le64>(address).get(), 0U);
    advance(kStatsPeriod);
    EXPECT_EQ(host.load<le64>(address).get(), 3U);
    host.store(address, le64(0));
    advance(10 * kStatsPeriod);
    EXPECT_EQ(host.load<le64>(address).get(), 0U) << "written again without a change";
}

TEST_F(CardTest, ResetBeforeBusMasteringIsHarmless) {
    EXPECT_EQ(driver.command(w::Opcode::Reset).status, 0);
    EXPECT_EQ(driver.command(w::Opcode::Identify).status, 0);
}

TEST_F(CardTest, LifInitWithoutBusMasteringIsRefused) {
    w::LifInitCommand lif{};
    lif.opcode = static_cast<std::uint8_t>(w::Opcode::LifInit);
    lif.info_address.set(test::FakeHost::kBase);
    EXPECT_NE(driver.command(lif).status, 0);
}

TEST_F(CardTest, BusMasteringOffStopsDmaAndInterruptsAndOnResumes) {
    driver.probe();
    driver.write_config16(TestDriver::kCommandOffset, 0x0002);
    const int before = host.interrupts[0];
    driver.post(driver.admin_queue, w::Command{});
    driver.ring(driver.admin_queue);
    driver.run();
    card.set_link(false);
    EXPECT_FALSE(driver.poll(driver.admin_queue).has_value());
    EXPECT_EQ(lif_status().link_status.get(), 1);
    EXPECT_EQ(host.interrupts[0], before);
    driver.write_config16(TestDriver::kCommandOffset, TestDriver::kMemoryAndMaster);
    driver.run();
    EXPECT_TRUE(driver.poll(driver.admin_queue).has_value());
    EXPECT_EQ(host.interrupts[0], before + 1);
}

TEST_F(CardTest, FunctionLevelResetStopsEverythingAndAProbeWorksAgain) {
    FakeRdma& rdma = attach();
    driver.probe();
    driver.open(2);
    const int resets = rdma.resets;
    const auto control = static_cast<std::uint32_t>(pci::ConfigSpace::kExpress + 8);
    driver.write_config16(control, wire::pci::kDeviceControlFlr);
    EXPECT_EQ(rdma.resets, resets + 1);
    EXPECT_EQ(driver.read32(0), w::kSignature);
    EXPECT_EQ(driver.read<std::uint8_t>(7) & 1, 1);
    EXPECT_EQ(driver.read32(TestDriver::vector_register(0, TestDriver::kMask)), 1U);
    EXPECT_FALSE(host.memory().enabled());
    const std::uint64_t unknown = metric("ionic.doorbells.unknown");
    driver.ring(driver.tx[0]);
    EXPECT_EQ(metric("ionic.doorbells.unknown"), unknown + 1);
    card.set_link(false);
    EXPECT_EQ(lif_status().link_status.get(), 1) << "DMA after a reset";
    card.set_link(true);
    driver.probe();
    driver.open(2);
}

TEST_F(CardTest, RemoveAndProbeAgain) {
    FakeRdma& rdma = attach();
    for (int i = 0; i < 20; ++i) {
        driver.probe();
        driver.open(1);
        EXPECT_EQ(driver.control(w::LogicalQueue::Tx, 0, w::QueueOperation::Disable).status, 0);
        EXPECT_EQ(driver.control(w::LogicalQueue::Rx, 0, w::QueueOperation::Disable).status, 0);
        EXPECT_EQ(driver.set_lif(w::LifAttribute::State).status, 0);
        EXPECT_EQ(driver.command(w::Opcode::LifReset).status, 0);
        EXPECT_EQ(driver.command(w::Opcode::LifReset).status, 0);
        EXPECT_EQ(driver.command(w::Opcode::PortReset).status, 0);
        EXPECT_EQ(driver.command(w::Opcode::Reset).status, 0);
        driver.write_config16(TestDriver::kCommandOffset, 0);
    }
    EXPECT_GE(rdma.resets, 60);
}

TEST_F(CardTest, RdmaCommandsAndDoorbellsReachTheRdmaDevice) {
    FakeRdma& rdma = attach();
    driver.probe();
    w::RdmaQueueCommand raw{};
    for (const std::uint8_t opcode : {51, 52, 53}) {
        raw.opcode = opcode;
        EXPECT_EQ(driver.admin(raw).status, 0);
    }
    EXPECT_EQ(rdma.opcodes, (std::vector<std::uint8_t>{51, 52, 53}));
    const int resets = rdma.resets;
    raw.opcode = 50;
    EXPECT_EQ(driver.admin(raw).status, 0);
    EXPECT_EQ(driver.command(raw).status, 0);
    EXPECT_EQ(rdma.resets, resets + 2);

    const le64 value(0x1234567);
    card.bar_write(2, 7 * 4096 + 4 * 8, bytes_of(value));
    EXPECT_EQ(rdma.last_type, 4);
    EXPECT_EQ(rdma.last_dbid, 7U);
    EXPECT_EQ(rdma.last_value, 0x1234567U);
    rdma.steps = 3;
    EXPECT_TRUE(card.step());
    driver.run();
    EXPECT_EQ(rdma.steps, 0);
}

TEST_F(CardTest, UnmaskingAnEventVectorTellsTheRdmaDevice) {
    FakeRdma& rdma = attach();
    driver.probe();
    driver.write32(TestDriver::vector_register(5, TestDriver::kMaskOnAssert), 1);
    driver.write32(TestDriver::vector_register(5, TestDriver::kMask), 0);
    card.interrupts().post_event(5);
    EXPECT_EQ(host.interrupts[5], 1);
    driver.write32(TestDriver::vector_register(5, TestDriver::kCredits), w::kCreditsUnmask);
    EXPECT_EQ(rdma.unmasked, (std::vector<std::uint16_t>{5}));
}

TEST_F(CardTest, MalformedDoorbellsAreCounted) {
    const std::array<std::byte, 16> zeros{};
    card.bar_write(2, 0, Bytes(zeros).first(4));
    card.bar_write(2, 4, Bytes(zeros).first(8));
    card.bar_write(2, 0, zeros);
    card.bar_write(2, card.bar_size(2), Bytes(zeros).first(8));
    EXPECT_EQ(metric("ionic.doorbells.malformed"), 4U);
    card.bar_write(2, 8 * 8, Bytes(zeros).first(8));
    card.bar_write(2, 0, Bytes(zeros).first(8));
    EXPECT_EQ(metric("ionic.doorbells.unknown"), 2U);
}

TEST_F(CardTest, UnmappedRingStopsTheQueueNotTheCard) {
    driver.probe();
    driver.open(1);
    host.memory().publish({});
    driver.tx[0].producer = 1;
    driver.ring(driver.tx[0]);
    driver.ring(driver.admin_queue);
    driver.run();
    host.publish();
    EXPECT_EQ(card.stats().lif(w::LifStat::TxDescriptorFetchError), 1U);
    EXPECT_EQ(driver.command(w::Opcode::Identify).status, 0);
}

}  // namespace
}  // namespace ernic::ionic
