// SPDX-License-Identifier: MIT
#include "nvmeof/path.hpp"

#include <gtest/gtest.h>

#include "nvmeof/test_support.hpp"

namespace ernic::nvmeof::test {
namespace {

using nvme::AnaState;

/// A subsystem with two paths; the host's queues 0 and 1 come by the first.
class NvmeofPaths : public testing::Test {
  protected:
    /// Admin queue by the second path, as the machine numbers its queues.
    static constexpr std::uint16_t kOther = 10;

    NvmeofPaths() {
        TargetConfig config;
        config.host.ipv4 = net::IpPrefix::parse("192.168.200.3/24");
        config.path_of = kNqn;
        config.ana_state = AnaState::NonOptimized;
        other = Target::make_path(config, *machine.target, machine.runtime, machine.directory);
        id = machine.bring_up();
        machine.queues[kOther] = std::make_unique<HostQueue>(*other, machine.ram, 0, std::uint16_t{32});
        machine.put(0, bytes_of(Machine::connect_data(kNqn, 0xffff)));
        EXPECT_EQ(status(machine.run(kOther, Machine::connect_entry(0, 32))), Status::Success);
        SubmissionEntry enable = Machine::fabrics(nvme::FabricsType::PropertySet);
        enable.dwords[1].set(nvme::property::kConfiguration);
        enable.dwords[2].set(0x00460001);
        EXPECT_EQ(status(machine.run(kOther, enable)), Status::Success);
    }
    ~NvmeofPaths() override {
        machine.queues.clear();
        other.reset();
    }

    struct Log {
        nvme::AnaHeader header;
        nvme::AnaGroup group;
        std::array<le32, 3> ids;
    };
    Log log(std::uint16_t queue, std::uint8_t specific = 0) {
        SubmissionEntry e = Machine::entry(AdminOpcode::GetLogPage, 0xffffffff, sizeof(Log));
        e.dwords[0].set(static_cast<std::uint32_t>(nvme::LogPage::Ana) | specific << 8U |
                        (sizeof(Log) / 4 - 1) << 16U);
        machine.fill(0, sizeof(Log), 3);
        EXPECT_EQ(status(machine.run(queue, e)), Status::Success);
        return machine.get<Log>();
    }
    Status read() { return status(machine.run(1, Machine::io(IoOpcode::Read, 0, 1, 512))); }

    Machine machine;
    std::unique_ptr<Target> other;
    std::uint16_t id = 0;
};

TEST_F(NvmeofPaths, EachTellsItsOwnState) {
    const Log here = log(0);
    const std::uint64_t before = here.header.change_count.get();
    EXPECT_EQ(here.header.groups.get(), 1U);
    EXPECT_EQ(here.group.id.get(), kAnaGroup);
    EXPECT_EQ(here.group.namespaces.get(), 1U);
    EXPECT_EQ(here.group.state, AnaState::Optimized);
    EXPECT_EQ(here.ids[0].get(), 1U);
    EXPECT_EQ(here.ids[1].get(), 0U) << "zeroes behind the end";
    EXPECT_EQ(log(kOther).group.state, AnaState::NonOptimized);

    other->set_ana_state(AnaState::Optimized);
    other->set_ana_state(AnaState::Optimized);
    EXPECT_EQ(log(kOther).group.state, AnaState::Optimized);
    EXPECT_EQ(log(kOther).header.change_count.get(), before + 1);
    EXPECT_EQ(log(0).header.change_count.get(), before);

    const Log groups = log(0, nvme::AnaGroup::kGroupsOnly);
    EXPECT_EQ(groups.group.namespaces.get(), 0U);
    EXPECT_EQ(groups.ids[0].get(), 0U);
}

TEST_F(NvmeofPaths, AnIdentifyingHostFindsTheGroup) {
    SubmissionEntry e = Machine::entry(AdminOpcode::Identify, 0, nvme::kIdentifyBytes);
    e.dwords[0].set(static_cast<std::uint32_t>(Cns::Controller));
    EXPECT_EQ(status(machine.run(0, e)), Status::Success);
    const auto controller = machine.get<nvme::IdentifyController>();
    EXPECT_NE(controller.multi_path & nvme::IdentifyController::kAna, 0);
    EXPECT_EQ(controller.ana_groups.get(), 1U);
    // Linux takes no controller with ANA whose number of namespaces is zero or above NN.
    EXPECT_NE(controller.namespaces_allowed.get(), 0U);
    EXPECT_LE(controller.namespaces_allowed.get(), controller.namespaces.get());
    e.nsid.set(1);
    e.dwords[0].set(static_cast<std::uint32_t>(Cns::Namespace));
    EXPECT_EQ(status(machine.run(0, e)), Status::Success);
    EXPECT_EQ(machine.get<nvme::IdentifyNamespace>().ana_group.get(), kAnaGroup);
}

TEST_F(NvmeofPaths, CommandsOverOneWithoutAccessMayTryAnother) {
    EXPECT_EQ(read(), Status::Success);
    for (const auto& [state, wanted] : {std::pair{AnaState::NonOptimized, Status::Success},
                                        {AnaState::Inaccessible, Status::AnaInaccessible},
                                        {AnaState::PersistentLoss, Status::AnaPersistentLoss},
                                        {AnaState::Change, Status::AnaTransition},
                                        {AnaState::Optimized, Status::Success}}) {
        machine.target->set_ana_state(state);
        const auto response = machine.run(1, Machine::io(IoOpcode::Write, 0, 1, 512));
        EXPECT_EQ(status(response), wanted);
        EXPECT_FALSE(do_not_retry(response));
        EXPECT_EQ(read(), wanted);
    }
}

TEST_F(NvmeofPaths, AFusedPairFailsAsAWhole) {
    SubmissionEntry compare = Machine::io(IoOpcode::Compare, 0, 1, 512);
    compare.flags |= nvme::SubmissionEntry::kFuseFirst;
    SubmissionEntry write = Machine::io(IoOpcode::Write, 0, 1, 512);
    write.flags |= nvme::SubmissionEntry::kFuseSecond;
    machine.queues[1]->submit(compare);
    EXPECT_FALSE(machine.answered(1));
    machine.target->set_ana_state(AnaState::Inaccessible);
    machine.queues[1]->submit(write);
    for (int half = 0; half < 2; ++half) {
        const auto response = machine.next(1);
        EXPECT_EQ(status(response), Status::AnaInaccessible);
        EXPECT_FALSE(do_not_retry(response));
    }
}

TEST_F(NvmeofPaths, OnlyWhoHasComeThatWayHearsOfAChange) {
    SubmissionEntry want = Machine::entry(AdminOpcode::SetFeatures);
    want.dwords[0].set(static_cast<std::uint32_t>(nvme::Feature::AsyncEvents));
    want.dwords[1].set(nvme::event::kEnableAna);
    for (const std::uint16_t queue : {std::uint16_t{0}, kOther}) {
        EXPECT_EQ(status(machine.run(queue, want)), Status::Success);
        machine.queues[queue]->submit(Machine::entry(AdminOpcode::AsyncEvent));
    }
    other->set_ana_state(AnaState::Inaccessible);
    EXPECT_EQ(machine.next(kOther).entry.result.get(), 0x0c0302U);
    EXPECT_FALSE(machine.answered(0));
    // Again only when the log has been read.
    machine.queues[kOther]->submit(Machine::entry(AdminOpcode::AsyncEvent));
    other->set_ana_state(AnaState::Optimized);
    EXPECT_FALSE(machine.answered(kOther));
    EXPECT_EQ(log(kOther).group.state, AnaState::Optimized);
    EXPECT_EQ(machine.next(kOther).entry.result.get(), 0x0c0302U);
}

TEST_F(NvmeofPaths, QueuesOfAControllerComeByOne) {
    machine.queues[kOther + 1] = std::make_unique<HostQueue>(*other, machine.ram, 2, std::uint16_t{32});
    machine.put(0, bytes_of(Machine::connect_data(kNqn, id)));
    EXPECT_EQ(status(machine.run(kOther + 1, Machine::connect_entry(2, 32))), Status::ConnectParameters);
}

TEST_F(NvmeofPaths, TheSubsystemOutlivesItsFirst) {
    machine.queues[0]->submit(Machine::entry(AdminOpcode::AsyncEvent));
    EXPECT_FALSE(machine.answered(0));
    // Queues that nobody has told that they are gone.
    machine.target.reset();
    machine.queues.erase(0);
    machine.queues.erase(1);
    ASSERT_EQ(other->nvm().controllers().size(), 1U);
    other->nvm().changed(1);
    EXPECT_TRUE(other->nvm().remove(1));
    EXPECT_EQ(log(kOther).group.namespaces.get(), 0U);
}

TEST_F(NvmeofPaths, ANamespaceThatGoesIsAChangeOfTheLog) {
    const std::uint64_t before = log(0).header.change_count.get();
    EXPECT_TRUE(machine.target->nvm().remove(1));
    const Log after = log(0);
    EXPECT_EQ(after.header.change_count.get(), before + 1);
    EXPECT_EQ(after.group.change_count.get(), before + 1);
    EXPECT_EQ(after.group.namespaces.get(), 0U);
}

TEST_F(NvmeofPaths, WhereThereIsNoAccessNothingIsUsedOrProtected) {
    const auto used = [this] {
        SubmissionEntry e = Machine::entry(AdminOpcode::Identify, 1, nvme::kIdentifyBytes);
        e.dwords[0].set(static_cast<std::uint32_t>(Cns::Namespace));
        EXPECT_EQ(status(machine.run(0, e)), Status::Success);
        return machine.get<nvme::IdentifyNamespace>().used.get();
    };
    SubmissionEntry protect = Machine::entry(AdminOpcode::SetFeatures, 1);
    protect.dwords[0].set(static_cast<std::uint32_t>(nvme::Feature::WriteProtection));
    protect.dwords[1].set(1);
    EXPECT_NE(used(), 0U);
    machine.target->set_ana_state(AnaState::PersistentLoss);
    EXPECT_EQ(used(), 0U);
    EXPECT_EQ(status(machine.run(0, protect)), Status::AnaPersistentLoss);
    machine.target->set_ana_state(AnaState::Optimized);
    EXPECT_EQ(status(machine.run(0, protect)), Status::Success);
}

}  // namespace
}  // namespace ernic::nvmeof::test
