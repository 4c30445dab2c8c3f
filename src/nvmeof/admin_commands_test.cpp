// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include "nvmeof/test_support.hpp"

namespace ernic::nvmeof::test {
namespace {

class NvmeofAdmin : public testing::Test {
  protected:
    NvmeofAdmin() { id = machine.bring_up(); }

    FakeChannel::Response run(const SubmissionEntry& entry) { return machine.run(0, entry); }

    static SubmissionEntry log_page(nvme::LogPage page, std::uint32_t bytes, std::uint64_t offset = 0,
                                    bool retain = false) {
        SubmissionEntry e = Machine::entry(AdminOpcode::GetLogPage, 0xffffffff, bytes);
        e.dwords[0].set(static_cast<std::uint32_t>(page) | (retain ? 0x8000U : 0U) | (bytes / 4 - 1) << 16U);
        e.dwords[2].set(static_cast<std::uint32_t>(offset));
        e.dwords[3].set(static_cast<std::uint32_t>(offset >> 32U));
        return e;
    }
    static SubmissionEntry feature(AdminOpcode opcode, nvme::Feature which, std::uint32_t value = 0,
                                   std::uint32_t length = 0) {
        SubmissionEntry e = Machine::entry(opcode, 0, length);
        e.dwords[0].set(static_cast<std::uint32_t>(which));
        e.dwords[1].set(value);
        return e;
    }
    std::uint64_t feature_value(nvme::Feature which, std::uint32_t value = 0) {
        const auto response = run(feature(AdminOpcode::GetFeatures, which, value));
        EXPECT_EQ(status(response), Status::Success);
        return response.entry.result.get();
    }
    SubmissionEntry abort(std::uint16_t queue, std::uint16_t command) {
        SubmissionEntry e = Machine::entry(AdminOpcode::Abort);
        e.dwords[0].set(queue | std::uint32_t{command} << 16U);
        return e;
    }

    Machine machine;
    std::uint16_t id = 0;
};

TEST_F(NvmeofAdmin, EventsAreToldOncePerReadingOfTheLog) {
    run(feature(AdminOpcode::SetFeatures, nvme::Feature::AsyncEvents, 0x100));
    machine.queues[0]->submit(Machine::entry(AdminOpcode::AsyncEvent));
    EXPECT_FALSE(machine.answered(0));
    Subsystem& subsystem = machine.target->nvm();
    subsystem.changed(1);
    auto response = machine.next(0);
    EXPECT_EQ(response.entry.result.get(), 0x040002U);
    // Nothing more before the log has been read, and not for reading it with the event retained.
    machine.queues[0]->submit(Machine::entry(AdminOpcode::AsyncEvent));
    subsystem.changed(9);
    EXPECT_EQ(status(run(log_page(nvme::LogPage::ChangedNamespaces, 4096, 0, true))), Status::Success);
    EXPECT_EQ(machine.get<le32>(0).get(), 1U);
    EXPECT_EQ(machine.get<le32>(4).get(), 9U);
    EXPECT_FALSE(machine.answered(0));
    EXPECT_EQ(status(run(log_page(nvme::LogPage::ChangedNamespaces, 4096))), Status::Success);
    EXPECT_EQ(machine.next(0).entry.result.get(), 0x040002U);
    EXPECT_EQ(status(run(log_page(nvme::LogPage::ChangedNamespaces, 4096))), Status::Success);
    EXPECT_EQ(machine.get<le32>(0).get(), 0U);
}

TEST_F(NvmeofAdmin, MoreEventRequestsThanAllowedAreRefused) {
    for (std::size_t i = 0; i < kAsyncEvents; ++i) {
        machine.queues[0]->submit(Machine::entry(AdminOpcode::AsyncEvent));
    }
    EXPECT_FALSE(machine.answered(0));
    EXPECT_EQ(status(run(Machine::entry(AdminOpcode::AsyncEvent))), Status::AsyncEventLimit);
}

TEST_F(NvmeofAdmin, AbortEndsWhatWaits) {
    const std::uint16_t event = machine.queues[0]->submit(Machine::entry(AdminOpcode::AsyncEvent));
    machine.queues[0]->submit(abort(0, event));
    auto response = machine.next(0);
    EXPECT_EQ(response.entry.command_id.get(), event);
    EXPECT_EQ(status(response), Status::AbortRequested);
    response = machine.next(0);
    EXPECT_EQ(status(response), Status::Success);
    EXPECT_EQ(response.entry.result.get(), 0U);

    // A long command that is between two pieces.
    const std::uint16_t zeroes =
        machine.queues[1]->submit(Machine::io(IoOpcode::WriteZeroes, 0, kRamBytes / 512));
    machine.queues[0]->submit(abort(1, zeroes));
    EXPECT_EQ(machine.next(0).entry.result.get(), 0U);
    EXPECT_EQ(status(machine.next(1)), Status::AbortRequested);

    // A transfer that is under way, and a command that is not there.
    const std::uint16_t write = machine.queues[1]->submit(Machine::io(IoOpcode::Write, 0, 8, 4096));
    machine.queues[0]->submit(abort(1, write));
    EXPECT_EQ(machine.next(0).entry.result.get(), 1U);
    EXPECT_EQ(status(machine.next(1)), Status::Success);
    EXPECT_EQ(run(abort(1, 0x7777)).entry.result.get(), 1U);
    EXPECT_EQ(status(run(abort(3, 1))), Status::InvalidField);
}

TEST_F(NvmeofAdmin, ErrorsAreLogged) {
    const auto failed = machine.run(1, Machine::io(IoOpcode::Read, UINT64_MAX, 1, 512));
    EXPECT_NE(failed.entry.status.get() >> 1U & nvme::kMore, 0);
    EXPECT_EQ(status(run(log_page(nvme::LogPage::Errors, 2 * sizeof(nvme::ErrorEntry)))), Status::Success);
    const auto entry = machine.get<nvme::ErrorEntry>();
    EXPECT_EQ(entry.count.get(), 1U);
    EXPECT_EQ(entry.queue_id.get(), 1);
    EXPECT_EQ(entry.command_id.get(), failed.entry.command_id.get());
    EXPECT_EQ(entry.lba.get(), UINT64_MAX);
    EXPECT_EQ(entry.status.get() >> 1U & 0x7ffU, 0x80U);
    EXPECT_EQ(machine.get<nvme::ErrorEntry>(64).count.get(), 0U);
}

TEST_F(NvmeofAdmin, HealthCountsWhatWasMoved) {
    machine.run(1, Machine::io(IoOpcode::Write, 0, 2048, 1U << 20U));
    machine.run(1, Machine::io(IoOpcode::Read, 0, 8, 4096));
    machine.run(1, Machine::io(IoOpcode::Read, 0, 8, 4096));
    EXPECT_EQ(status(run(log_page(nvme::LogPage::Health, 512))), Status::Success);
    const auto health = machine.get<nvme::HealthLog>();
    EXPECT_EQ(health.reads[0].get(), 2U);
    EXPECT_EQ(health.writes[0].get(), 1U);
    EXPECT_EQ(health.units_written[0].get(), 3U);
    EXPECT_EQ(health.units_read[0].get(), 1U);
}

TEST_F(NvmeofAdmin, LogPagesAreReadInPieces) {
    EXPECT_EQ(status(run(log_page(nvme::LogPage::CommandEffects, 4096))), Status::Success);
    const auto whole = machine.get<nvme::EffectsLog>();
    EXPECT_EQ(whole.io[2].get(), 1U);
    EXPECT_EQ(whole.io[1].get(), 3U);
    EXPECT_EQ(status(run(log_page(nvme::LogPage::CommandEffects, 8, 1024 + 4))), Status::Success);
    EXPECT_EQ(machine.get<le32>(0), whole.io[1]);
    EXPECT_EQ(machine.get<le32>(4), whole.io[2]);
    EXPECT_EQ(status(run(log_page(nvme::LogPage::CommandEffects, 8, 4100))), Status::InvalidField);
    EXPECT_EQ(status(run(log_page(nvme::LogPage::CommandEffects, 8, UINT64_MAX - 3))), Status::InvalidField);
    EXPECT_EQ(status(run(log_page(nvme::LogPage::CommandEffects, 8, 2))), Status::InvalidField);
    EXPECT_EQ(status(run(log_page(static_cast<nvme::LogPage>(0x33), 512))), Status::InvalidLogPage);
    EXPECT_EQ(status(run(log_page(nvme::LogPage::Discovery, 1024))), Status::InvalidLogPage);
}

TEST_F(NvmeofAdmin, FeaturesKeepTheirValues) {
    EXPECT_EQ(feature_value(nvme::Feature::NumberOfQueues), 7U << 16U | 7U);
    EXPECT_EQ(status(run(feature(AdminOpcode::SetFeatures, nvme::Feature::NumberOfQueues, 3))),
              Status::SequenceError);
    run(feature(AdminOpcode::SetFeatures, nvme::Feature::KeepAliveTimer, 1234));
    EXPECT_EQ(feature_value(nvme::Feature::KeepAliveTimer), 1300U);
    run(feature(AdminOpcode::SetFeatures, nvme::Feature::TemperatureThreshold, 350));
    EXPECT_EQ(feature_value(nvme::Feature::TemperatureThreshold), 350U);
    EXPECT_EQ(feature_value(nvme::Feature::TemperatureThreshold, 1U << 20U), 0U);
    EXPECT_EQ(status(run(feature(AdminOpcode::SetFeatures, nvme::Feature::AsyncEvents, 1U << 20U))),
              Status::InvalidField);
    EXPECT_EQ(status(run(feature(AdminOpcode::SetFeatures, nvme::Feature::HostIdentifier, 1))),
              Status::SequenceError);
    SubmissionEntry save = feature(AdminOpcode::SetFeatures, nvme::Feature::Arbitration);
    save.dwords[0].set(0x80000001U);
    EXPECT_EQ(status(run(save)), Status::FeatureNotSaveable);
    EXPECT_EQ(status(run(feature(AdminOpcode::GetFeatures, static_cast<nvme::Feature>(0x77)))),
              Status::InvalidField);

    machine.put(0, bytes_of(le64(1'700'000'000'000U)));
    EXPECT_EQ(status(run(feature(AdminOpcode::SetFeatures, nvme::Feature::Timestamp, 0, 8))),
              Status::Success);
    machine.wait(2'000'000'000);
    EXPECT_EQ(status(run(feature(AdminOpcode::GetFeatures, nvme::Feature::Timestamp, 0, 8))),
              Status::Success);
    EXPECT_EQ(machine.get<le64>().get(), 1'700'000'002'000U | std::uint64_t{1} << 49U);
    EXPECT_EQ(status(run(feature(AdminOpcode::GetFeatures, nvme::Feature::HostIdentifier, 1, 16))),
              Status::Success);
    EXPECT_EQ(machine.ram.bytes[0], std::byte{0x42});
}

TEST_F(NvmeofAdmin, WriteProtectionHoldsWrites) {
    SubmissionEntry protect = feature(AdminOpcode::SetFeatures, nvme::Feature::WriteProtection, 1);
    protect.nsid.set(1);
    EXPECT_EQ(status(run(protect)), Status::Success);
    EXPECT_EQ(status(machine.run(1, Machine::io(IoOpcode::Write, 0, 8, 4096))),
              Status::NamespaceWriteProtected);
    EXPECT_EQ(status(machine.run(1, Machine::io(IoOpcode::Read, 0, 8, 4096))), Status::Success);
}

TEST_F(NvmeofAdmin, ADisabledControllerTakesNoCommands) {
    machine.queues[0]->submit(Machine::entry(AdminOpcode::AsyncEvent));
    machine.set_property(nvme::property::kConfiguration, 0x00460000);
    // The event request comes back first, but the answers are told apart by their ids.
    EXPECT_EQ(status(machine.run(1, Machine::io(IoOpcode::Read, 0, 8, 4096))), Status::SequenceError);
    EXPECT_EQ(status(machine.next(0)), Status::Success);
    EXPECT_EQ(status(run(Machine::entry(AdminOpcode::KeepAlive))), Status::SequenceError);
    machine.set_property(nvme::property::kConfiguration, 0x00460001);
    EXPECT_EQ(status(run(Machine::entry(AdminOpcode::KeepAlive))), Status::Success);
}

TEST_F(NvmeofAdmin, ShutdownIsTold) {
    machine.set_property(nvme::property::kConfiguration, 0x00464001);
    EXPECT_EQ(machine.property(nvme::property::kControllerStatus), 0x9U);
}

TEST_F(NvmeofAdmin, BadConfigurationsAreFatal) {
    machine.set_property(nvme::property::kConfiguration, 0);
    machine.set_property(nvme::property::kConfiguration, 1);
    EXPECT_EQ(machine.property(nvme::property::kControllerStatus), nvme::property::kFatal);
}

TEST_F(NvmeofAdmin, PropertiesHaveTheirSizes) {
    SubmissionEntry get = Machine::fabrics(nvme::FabricsType::PropertyGet);
    get.dwords[0].set(1);
    get.dwords[1].set(nvme::property::kVersion);
    EXPECT_EQ(status(run(get)), Status::InvalidField);
    get.dwords[0].set(2);
    get.dwords[1].set(nvme::property::kCapabilities);
    EXPECT_EQ(status(run(get)), Status::InvalidField);
    EXPECT_EQ(status(machine.set_property(nvme::property::kVersion, 1)), Status::InvalidField);
}

TEST_F(NvmeofAdmin, UnknownThingsAreRefusedForGood) {
    SubmissionEntry e = Machine::entry(AdminOpcode::Identify, 1, 4096);
    e.dwords[0].set(0x77);
    auto response = run(e);
    EXPECT_EQ(status(response), Status::InvalidField);
    EXPECT_TRUE(do_not_retry(response));
    response = run(Machine::entry(0x99, 1, 4096));
    EXPECT_EQ(status(response), Status::InvalidOpcode);
    EXPECT_TRUE(do_not_retry(response));
}

TEST_F(NvmeofAdmin, NamespacesComeAndGo) {
    run(feature(AdminOpcode::SetFeatures, nvme::Feature::AsyncEvents, 0x100));
    machine.queues[0]->submit(Machine::entry(AdminOpcode::AsyncEvent));
    // Removed while a write to it is under way, which may end.
    machine.queues[1]->submit(Machine::io(IoOpcode::Write, 0, 8, 4096));
    EXPECT_TRUE(machine.target->nvm().remove(1));
    EXPECT_EQ(status(machine.next(1)), Status::Success);
    EXPECT_EQ(status(machine.next(0)), Status::Success);
    EXPECT_EQ(status(machine.run(1, Machine::io(IoOpcode::Read, 0, 8, 4096))), Status::InvalidNamespace);
}

TEST_F(NvmeofAdmin, NamespacesChangeTheirSize) {
    run(feature(AdminOpcode::SetFeatures, nvme::Feature::AsyncEvents, 0x100));
    machine.queues[0]->submit(Machine::entry(AdminOpcode::AsyncEvent));
    const SubmissionEntry beyond = Machine::io(IoOpcode::Read, kRamBytes / 512, 8, 4096);
    EXPECT_EQ(status(machine.run(1, beyond)), Status::LbaOutOfRange);
    machine.fill(0, 4096, 1);
    EXPECT_EQ(status(machine.run(1, Machine::io(IoOpcode::Write, kRamBytes / 512 - 8, 8, 4096))),
              Status::Success);
    ASSERT_TRUE(machine.target->nvm().resize(1, 2 * kRamBytes).ok());
    EXPECT_EQ(machine.next(0).entry.result.get(), 0x040002U);
    EXPECT_EQ(status(machine.run(1, beyond)), Status::Success);
    EXPECT_EQ(status(machine.run(1, Machine::io(IoOpcode::Read, kRamBytes / 512 - 8, 8, 4096, 8192))),
              Status::Success);
    machine.fill(0, 4096, 1);
    EXPECT_TRUE(machine.same(0, 8192, 4096));
    ASSERT_TRUE(machine.target->nvm().resize(1, kRamBytes / 2 + 512).ok());
    EXPECT_EQ(status(machine.run(1, beyond)), Status::LbaOutOfRange);
    ASSERT_TRUE(machine.target->nvm().resize(1, kRamBytes).ok());
    EXPECT_EQ(status(machine.run(1, Machine::io(IoOpcode::Read, kRamBytes / 512 - 8, 8, 4096))),
              Status::Success);
    EXPECT_EQ(machine.ram.bytes[100], std::byte{0});
    EXPECT_FALSE(machine.target->nvm().resize(1, kRamBytes * 65ULL).ok());
    EXPECT_FALSE(machine.target->nvm().resize(1, 1000).ok());
    EXPECT_FALSE(machine.target->nvm().resize(9, 4096).ok());
}

class NvmeofConnect : public testing::Test {
  protected:
    void expect_refused(std::uint16_t queue, const FakeChannel::Response& response, Status expected,
                        std::uint32_t field) {
        EXPECT_EQ(status(response), expected) << queue;
        EXPECT_EQ(response.entry.result.get(), field);
    }
    Machine machine;
};

TEST_F(NvmeofConnect, EachMistakeHasItsAnswer) {
    constexpr std::uint32_t kInData = 1U << 16U;
    machine.open(0);
    EXPECT_EQ(status(machine.run(0, Machine::entry(AdminOpcode::KeepAlive))), Status::SequenceError);
    EXPECT_EQ(status(machine.run(0, Machine::fabrics(nvme::FabricsType::PropertyGet))),
              Status::SequenceError);
    expect_refused(0, machine.connect(0, 32, Machine::connect_data("nqn.other", 0xffff)),
                   Status::ConnectParameters, kInData | 256);
    expect_refused(0, machine.connect(0, 32, Machine::connect_data(kNqn, 5)), Status::ConnectParameters,
                   kInData | 16);
    expect_refused(0, machine.connect(0, 32, Machine::connect_data(kNqn, 0xffff, "")),
                   Status::ConnectParameters, kInData | 512);
    expect_refused(0, machine.connect(0, 33, Machine::connect_data(kNqn, 0xffff)), Status::ConnectParameters,
                   44);
    expect_refused(0, machine.connect(0, 1, Machine::connect_data(kNqn, 0xffff)), Status::ConnectParameters,
                   44);
    SubmissionEntry e = Machine::connect_entry(1, 32);
    expect_refused(0, machine.run(0, e), Status::ConnectParameters, 42);
    e = Machine::connect_entry(0, 32);
    e.dwords[0].set(1);
    expect_refused(0, machine.run(0, e), Status::ConnectFormat, 0);
    e.data = SglDescriptor::keyed(kHostBase, 1023, kKey, false);
    expect_refused(0, machine.run(0, e), Status::SglLengthInvalid, 0);

    const auto connected = machine.connect(0, 32, Machine::connect_data(kNqn, 0xffff));
    ASSERT_EQ(status(connected), Status::Success);
    const auto id = static_cast<std::uint16_t>(connected.entry.result.get());
    EXPECT_EQ(status(machine.connect(0, 32, Machine::connect_data(kNqn, 0xffff))), Status::SequenceError);
    machine.open(1);
    EXPECT_EQ(status(machine.connect(1, 32, Machine::connect_data(kNqn, id))), Status::SequenceError);
    machine.set_property(nvme::property::kConfiguration, 0x00460001);
    expect_refused(1, machine.connect(1, 32, Machine::connect_data(kNqn, id, "nqn.somebody.else")),
                   Status::ConnectParameters, kInData | 16);
    EXPECT_EQ(status(machine.connect(1, 32, Machine::connect_data(kNqn, id))), Status::Success);
    HostQueue twin(*machine.target, machine.ram, 1, 32);
    machine.put(0, bytes_of(Machine::connect_data(kNqn, id)));
    twin.submit(Machine::connect_entry(1, 32));
    twin.channel.pump();
    expect_refused(1, twin.channel.responses.front(), Status::ConnectParameters, 42);
}

TEST_F(NvmeofConnect, OnlyHostsOfTheListMayCome) {
    TargetConfig config = default_config();
    config.hosts = {"nqn.friend"};
    Machine guarded(config);
    guarded.open(0);
    EXPECT_EQ(status(guarded.connect(0, 32, Machine::connect_data(kNqn, 0xffff))), Status::ConnectHost);
    EXPECT_EQ(status(guarded.connect(0, 32, Machine::connect_data(kNqn, 0xffff, "nqn.friend"))),
              Status::Success);
}

TEST_F(NvmeofConnect, QueuesBeyondTheGrantAreRefused) {
    EXPECT_FALSE(machine.target->consider({9, 32, 32, 0, {}}).has_value());
    EXPECT_FALSE(machine.target->consider({1, 1, 1, 0, {}}).has_value());
    EXPECT_EQ(machine.target->consider({1, 1024, 1024, 0, {}})->entries, kMaxEntries);
    const std::uint16_t id = machine.bring_up_admin();
    SubmissionEntry e = Machine::entry(AdminOpcode::SetFeatures);
    e.dwords[0].set(7);
    e.dwords[1].set(0);
    EXPECT_EQ(status(machine.run(0, e)), Status::Success);
    machine.open(2);
    expect_refused(2, machine.connect(2, 32, Machine::connect_data(kNqn, id)), Status::ConnectParameters, 42);
}

TEST_F(NvmeofConnect, TooMuchCapsuleMemoryIsRefused) {
    std::vector<std::unique_ptr<HostQueue>> queues;
    while (machine.target->consider({1, kMaxEntries, kMaxEntries, 0, {}})) {
        queues.push_back(std::make_unique<HostQueue>(*machine.target, machine.ram, 1, kMaxEntries));
    }
    EXPECT_LE(queues.size() * kMaxEntries * kMaxInCapsule, kMaxCapsuleMemory);
    queues.back()->channel.end();
    machine.settle();
    EXPECT_TRUE(machine.target->consider({1, kMaxEntries, kMaxEntries, 0, {}}).has_value());
}

TEST(NvmeofDiscovery, AllTargetsAreListed) {
    Machine machine;
    TargetConfig config = default_config();
    config.nqn = "nqn.second";
    config.port = 4421;
    config.host.ipv4 = net::IpPrefix::parse("192.168.200.2/24");
    config.host.ipv6 = {*net::IpPrefix::parse("fd00::2/64")};
    auto second = Target::make(config, machine.runtime, machine.directory);
    ASSERT_TRUE(second.ok());

    machine.bring_up_admin(nvme::kDiscoveryNqn, 30'000);
    SubmissionEntry log = Machine::entry(AdminOpcode::GetLogPage, 0, 1024);
    log.dwords[0].set(0x70U | 255U << 16U);
    ASSERT_EQ(status(machine.run(0, log)), Status::Success);
    const auto header = machine.get<nvme::DiscoveryHeader>();
    ASSERT_EQ(header.entries.get(), 4U);
    const std::uint32_t bytes = 5 * 1024;
    log = Machine::entry(AdminOpcode::GetLogPage, 0, bytes);
    log.dwords[0].set(0x70U | (bytes / 4 - 1) << 16U);
    ASSERT_EQ(status(machine.run(0, log)), Status::Success);
    EXPECT_EQ(machine.get<nvme::DiscoveryEntry>(1024).subsystem_type, nvme::DiscoveryEntry::kThisDiscovery);
    const auto first = machine.get<nvme::DiscoveryEntry>(2048);
    EXPECT_EQ(first.subsystem_type, nvme::DiscoveryEntry::kNvmSubsystem);
    EXPECT_STREQ(first.subsystem_nqn.data(), kNqn);
    EXPECT_STREQ(first.address.data(), "192.168.200.1");
    EXPECT_STREQ(first.service.data(), "4420");
    const auto last = machine.get<nvme::DiscoveryEntry>(4096);
    EXPECT_STREQ(last.subsystem_nqn.data(), "nqn.second");
    EXPECT_STREQ(last.address.data(), "fd00::2");
    EXPECT_EQ(last.address_family, nvme::DiscoveryEntry::kIpv6);

    // A host that stays hears of changes.
    SubmissionEntry events = Machine::entry(AdminOpcode::SetFeatures);
    events.dwords[0].set(0x0b);
    events.dwords[1].set(1U << 31U);
    EXPECT_EQ(status(machine.run(0, events)), Status::Success);
    machine.queues[0]->submit(Machine::entry(AdminOpcode::AsyncEvent));
    EXPECT_FALSE(machine.answered(0));
    second.value().reset();
    EXPECT_EQ(machine.next(0).entry.result.get(), 0x70f002U);
    log = Machine::entry(AdminOpcode::GetLogPage, 0, 1024);
    log.dwords[0].set(0x70U | 255U << 16U);
    ASSERT_EQ(status(machine.run(0, log)), Status::Success);
    EXPECT_GT(machine.get<nvme::DiscoveryHeader>().generation.get(), header.generation.get());
    EXPECT_EQ(machine.get<nvme::DiscoveryHeader>().entries.get(), 2U);
}

TEST(NvmeofDiscovery, OnlyWhatADiscoveryControllerHasIsThere) {
    Machine machine;
    machine.bring_up_admin(nvme::kDiscoveryNqn);
    SubmissionEntry e = Machine::entry(AdminOpcode::Identify, 0, 4096);
    e.dwords[0].set(1);
    ASSERT_EQ(status(machine.run(0, e)), Status::Success);
    EXPECT_EQ(machine.get<nvme::IdentifyController>().controller_type, 2);
    e.dwords[0].set(2);
    EXPECT_EQ(status(machine.run(0, e)), Status::InvalidField);
    e = Machine::entry(AdminOpcode::SetFeatures);
    e.dwords[0].set(7);
    EXPECT_EQ(status(machine.run(0, e)), Status::InvalidField);
    machine.open(1);
    EXPECT_EQ(status(machine.connect(1, 32, Machine::connect_data(nvme::kDiscoveryNqn, 1))),
              Status::ConnectParameters);
    // A host that has asked for no Keep Alive is forgotten all the same.
    machine.wait(61'000'000'000);
    machine.wait(61'000'000'000);
    machine.wait(61'000'000'000);
    machine.wait(61'000'000'000);
    EXPECT_EQ(machine.runtime.counters.expired_controllers.value(), 1U);
}

}  // namespace
}  // namespace ernic::nvmeof::test
