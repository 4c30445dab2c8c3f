// SPDX-License-Identifier: MIT
// What Linux's nvme-rdma does from its first connection to its first read, and what it checks on the way.
#include <gtest/gtest.h>

#include "nvmeof/test_support.hpp"

namespace ernic::nvmeof::test {
namespace {

namespace property = nvme::property;

SubmissionEntry identify(Cns cns, std::uint32_t nsid = 0) {
    SubmissionEntry e = Machine::entry(AdminOpcode::Identify, nsid, nvme::kIdentifyBytes);
    e.dwords[0].set(static_cast<std::uint32_t>(cns));
    return e;
}

SubmissionEntry set_feature(nvme::Feature feature, std::uint32_t value) {
    SubmissionEntry e = Machine::entry(AdminOpcode::SetFeatures);
    e.dwords[0].set(static_cast<std::uint32_t>(feature));
    e.dwords[1].set(value);
    return e;
}

SubmissionEntry log_page(nvme::LogPage page, std::uint32_t bytes) {
    SubmissionEntry e = Machine::entry(AdminOpcode::GetLogPage, 0xffffffff, bytes);
    e.dwords[0].set(static_cast<std::uint32_t>(page) | (bytes / 4 - 1) << 16U);
    return e;
}

TEST(NvmeofBringUp, AQueueIsConnectedOnceHoweverFastTheSecondConnectComes) {
    Machine machine;
    auto& queue = machine.open(0);
    machine.put(0, bytes_of(Machine::connect_data(kNqn, 0xffff)));
    queue.submit(Machine::connect_entry(0, 32), {});
    queue.submit(Machine::connect_entry(0, 32), {});
    EXPECT_EQ(status(machine.next(0)), Status::Success);
    EXPECT_EQ(status(machine.next(0)), Status::SequenceError);
    EXPECT_EQ(machine.target->nvm().controllers().size(), 1U);
    queue.channel.end();
    machine.settle();
    EXPECT_TRUE(machine.target->nvm().controllers().empty());
}

TEST(NvmeofBringUp, ALinuxHostComesToItsFirstRead) {
    Machine machine;
    machine.open(0);
    auto response = machine.connect(0, 32, Machine::connect_data(kNqn, 0xffff), 5000);
    ASSERT_EQ(response.entry.status.get(), 0);
    const auto controller = static_cast<std::uint16_t>(response.entry.result.get());
    EXPECT_NE(controller, 0);

    const std::uint64_t capabilities = machine.property(property::kCapabilities, true);
    EXPECT_GE(capabilities & 0xffffU, 127U);
    EXPECT_EQ(machine.property(property::kControllerStatus), 0U);
    EXPECT_EQ(status(machine.set_property(property::kConfiguration, 0x00460060)), Status::Success);
    EXPECT_EQ(machine.property(property::kCapabilities, true), capabilities);
    EXPECT_EQ(status(machine.set_property(property::kConfiguration, 0x00460061)), Status::Success);
    EXPECT_EQ(machine.property(property::kControllerStatus), property::kReady);
    EXPECT_GE(machine.property(property::kVersion), 0x00010300U);

    ASSERT_EQ(status(machine.run(0, identify(Cns::Controller))), Status::Success);
    const auto data = machine.get<nvme::IdentifyController>();
    EXPECT_EQ(data.controller_id.get(), controller);
    EXPECT_NE(data.keep_alive_granularity.get(), 0);
    EXPECT_GE(data.command_capsule.get(), 4U);
    EXPECT_EQ(data.command_capsule.get() * 16, 64U + 16384U);
    EXPECT_EQ(data.response_capsule.get(), 1U);
    EXPECT_NE(data.max_commands.get(), 0);
    EXPECT_EQ(data.in_capsule_offset.get(), 0);
    EXPECT_NE(data.sgls.get() & 0x4U, 0U);
    EXPECT_NE(data.sgls.get() & 0x100000U, 0U);
    EXPECT_EQ(data.max_transfer, 8);
    EXPECT_EQ(std::string(data.subsystem_nqn.data()), kNqn);

    EXPECT_EQ(status(machine.run(0, log_page(nvme::LogPage::CommandEffects, 4096))), Status::Success);
    EXPECT_EQ(status(machine.run(0, log_page(nvme::LogPage::Health, 512))), Status::Success);
    EXPECT_EQ(status(machine.run(0, Machine::entry(AdminOpcode::KeepAlive))), Status::Success);
    response = machine.run(0, set_feature(nvme::Feature::NumberOfQueues, 3U << 16U | 3U));
    EXPECT_EQ(response.entry.result.get(), 3U << 16U | 3U);

    for (std::uint16_t queue = 1; queue <= 4; ++queue) {
        machine.open(queue, 128);
        EXPECT_EQ(
            machine.connect(queue, 128, Machine::connect_data(kNqn, controller), 0, true).entry.status.get(),
            0);
    }
    EXPECT_EQ(status(machine.run(0, set_feature(nvme::Feature::AsyncEvents, 0x100))), Status::Success);
    machine.queues[0]->submit(Machine::entry(AdminOpcode::AsyncEvent));
    EXPECT_FALSE(machine.answered(0));

    EXPECT_EQ(status(machine.run(0, identify(Cns::NvmController))), Status::Success);
    ASSERT_EQ(status(machine.run(0, identify(Cns::ActiveNamespaces))), Status::Success);
    EXPECT_EQ(machine.get<le32>(0).get(), 1U);
    EXPECT_EQ(machine.get<le32>(4).get(), 0U);
    ASSERT_EQ(status(machine.run(0, identify(Cns::Descriptors, 1))), Status::Success);
    EXPECT_EQ(machine.get<nvme::NamespaceDescriptor>().type, nvme::NamespaceDescriptor::kNguid);
    ASSERT_EQ(status(machine.run(0, identify(Cns::IndependentNamespace, 1))), Status::Success);
    EXPECT_EQ(machine.get<nvme::IdentifyIndependentNamespace>().status & 1U, 1U);
    ASSERT_EQ(status(machine.run(0, identify(Cns::Namespace, 1))), Status::Success);
    const auto space = machine.get<nvme::IdentifyNamespace>();
    EXPECT_EQ(space.size.get(), kRamBytes / 512);
    EXPECT_EQ(space.capacity.get(), kRamBytes / 512);
    EXPECT_NE(space.used.get(), 0U);
    EXPECT_EQ(space.lba_formats[0].data_shift, 9);
    EXPECT_EQ(status(machine.run(0, identify(Cns::NvmNamespace, 1))), Status::Success);

    machine.fill(0, 4096, 1);
    EXPECT_EQ(status(machine.run(1, Machine::io(IoOpcode::Read, 0, 8, 4096))), Status::Success);
    EXPECT_EQ(machine.ram.bytes[0], std::byte{0});
    // The last blocks, where a second partition table would be.
    EXPECT_EQ(status(machine.run(4, Machine::io(IoOpcode::Read, kRamBytes / 512 - 1, 1, 512))),
              Status::Success);
    EXPECT_EQ(status(machine.run(4, Machine::io(IoOpcode::Read, kRamBytes / 512, 1, 512))),
              Status::LbaOutOfRange);
}

TEST(NvmeofBringUp, WhatWasWrittenIsRead) {
    Machine machine;
    machine.bring_up();
    machine.fill(0, 1U << 20U, 3);
    EXPECT_EQ(status(machine.run(1, Machine::io(IoOpcode::Write, 5, 2048, 1U << 20U))), Status::Success);
    EXPECT_EQ(status(machine.run(1, Machine::io(IoOpcode::Flush, 0, 1))), Status::Success);
    EXPECT_EQ(status(machine.run(1, Machine::io(IoOpcode::Read, 5, 2048, 1U << 20U, 2U << 20U))),
              Status::Success);
    EXPECT_TRUE(machine.same(0, 2U << 20U, 1U << 20U));
    EXPECT_EQ(machine.runtime.counters.written_bytes.value(), 1U << 20U);
    EXPECT_EQ(machine.runtime.counters.read_bytes.value(), 1U << 20U);
}

TEST(NvmeofBringUp, DataInTheCapsuleAreWritten) {
    Machine machine;
    machine.bring_up();
    machine.fill(0, 4096, 9);
    SubmissionEntry write = Machine::io(IoOpcode::Write, 8, 8);
    write.data = SglDescriptor::in_capsule(0, 4096);
    EXPECT_EQ(status(machine.run(1, write, Bytes(machine.ram.bytes).first(4096))), Status::Success);
    EXPECT_EQ(status(machine.run(1, Machine::io(IoOpcode::Read, 8, 8, 4096, 8192))), Status::Success);
    EXPECT_TRUE(machine.same(0, 8192, 4096));
    EXPECT_EQ(machine.runtime.counters.in_capsule_bytes.value(), 4096U);
}

TEST(NvmeofBringUp, AKeyIsInvalidatedOnlyWhenTheHostAsks) {
    Machine machine;
    machine.bring_up();
    SubmissionEntry read = Machine::io(IoOpcode::Read, 0, 8, 4096);
    EXPECT_FALSE(machine.run(1, read).invalidated.has_value());
    read.data = SglDescriptor::keyed(kHostBase, 4096, kKey, true);
    EXPECT_EQ(machine.run(1, read).invalidated, kKey);
}

TEST(NvmeofBringUp, SqHeadFollowsTheCommands) {
    Machine machine;
    machine.bring_up(4);
    // Connect was the first command of four entries.
    for (const std::uint16_t head : {2, 3, 0, 1}) {
        EXPECT_EQ(machine.run(1, Machine::io(IoOpcode::Read, 0, 1, 512)).entry.sq_head.get(), head);
    }
}

TEST(NvmeofBringUp, WithoutFlowControlSqHeadMeansNothing) {
    Machine machine;
    const std::uint16_t id = machine.bring_up_admin();
    machine.open(1);
    SubmissionEntry connect = Machine::connect_entry(1, 32);
    connect.dwords[1].set(31U | std::uint32_t{nvme::kConnectNoFlowControl} << 16U);
    machine.put(0, bytes_of(Machine::connect_data(kNqn, id)));
    EXPECT_EQ(machine.run(1, connect).entry.sq_head.get(), 0xffff);
}

TEST(NvmeofBringUp, DisconnectedQueuesLeaveNothingBehind) {
    Machine machine;
    for (int i = 0; i < 50; ++i) {
        machine.bring_up();
        machine.queues[0]->submit(Machine::entry(AdminOpcode::AsyncEvent));
        machine.queues[1]->submit(Machine::io(IoOpcode::Write, 0, 8, 4096));
        for (const std::uint16_t queue : {1, 0}) {
            machine.queues[queue]->channel.end();
        }
        machine.settle();
        machine.queues.clear();
        EXPECT_EQ(machine.target->connections(), 0U);
        EXPECT_TRUE(machine.target->nvm().controllers().empty());
    }
}

TEST(NvmeofBringUp, WithItsAdminQueueAControllerLosesAllQueues) {
    Machine machine;
    machine.bring_up();
    machine.queues[0]->channel.end();
    EXPECT_TRUE(machine.queues[1]->channel.closed);
    machine.settle();
    EXPECT_EQ(machine.target->connections(), 0U);
}

TEST(NvmeofBringUp, AThirdWhoKnowsAControllersNumberIsNotItsHost) {
    Machine machine;
    const std::uint16_t id = machine.bring_up_admin();
    const wire::MacAddress third{{0x02, 0, 0, 0, 0, 9}};
    machine.queues[1] = std::make_unique<HostQueue>(*machine.target, machine.ram, 1, 32, third);
    EXPECT_EQ(status(machine.connect(1, 32, Machine::connect_data(kNqn, id))), Status::ConnectParameters);
    machine.open(1, 32);
    EXPECT_EQ(machine.connect(1, 32, Machine::connect_data(kNqn, id)).entry.status.get(), 0);
}

TEST(NvmeofBringUp, ASilentHostIsGivenUpAfterItsKeepAliveTime) {
    Machine machine;
    machine.bring_up_admin(kNqn, 1000);
    for (int i = 0; i < 10; ++i) {
        machine.wait(900'000'000);
        EXPECT_EQ(status(machine.run(0, Machine::entry(AdminOpcode::KeepAlive))), Status::Success);
    }
    machine.wait(560'000'000);
    machine.wait(560'000'000);
    EXPECT_EQ(machine.runtime.counters.expired_controllers.value(), 0U);
    machine.wait(560'000'000);
    EXPECT_EQ(machine.runtime.counters.expired_controllers.value(), 1U);
    EXPECT_EQ(machine.target->connections(), 0U);
}

}  // namespace
}  // namespace ernic::nvmeof::test
