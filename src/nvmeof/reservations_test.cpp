// SPDX-License-Identifier: MIT
#include "nvmeof/reservations.hpp"

#include <gtest/gtest.h>

#include "nvmeof/test_support.hpp"

namespace ernic::nvmeof::test {
namespace {

using Type = Reservations::Type;
using Action = Reservations::RegisterAction;
constexpr nvme::HostId kAnne{std::byte{1}};
constexpr nvme::HostId kBert{std::byte{2}};
constexpr nvme::HostId kCarl{std::byte{3}};

class NvmeofReservations : public testing::Test {
  protected:
    NvmeofReservations() {
        EXPECT_EQ(add(kAnne, 10), Status::Success);
        EXPECT_EQ(add(kBert, 20), Status::Success);
    }
    Status add(const nvme::HostId& host, std::uint64_t key) {
        return all.change_registration(Action::Register, host, false, 0, key, notices);
    }
    /// Whether Anne, Bert (registered) and Carl (not) may read and write.
    std::string rights() {
        std::string text;
        for (const nvme::HostId& host : {kAnne, kBert, kCarl}) {
            text += all.allows(host, false) ? 'r' : '-';
            text += all.allows(host, true) ? 'w' : '-';
        }
        return text;
    }

    Reservations all;
    Reservations::Notices notices;
};

TEST_F(NvmeofReservations, EachTypeHasItsRights) {
    EXPECT_EQ(rights(), "rwrwrw");
    const std::pair<Type, const char*> expected[] = {
        {Type::WriteExclusive, "rwr-r-"},
        {Type::ExclusiveAccess, "rw----"},
        {Type::WriteExclusiveRegistrants, "rwrwr-"},
        {Type::ExclusiveAccessRegistrants, "rwrw--"},
        {Type::WriteExclusiveAll, "rwrwr-"},
        {Type::ExclusiveAccessAll, "rwrw--"},
    };
    for (const auto& [type, rights_of_type] : expected) {
        EXPECT_EQ(all.acquire(kAnne, false, 10, type), Status::Success);
        EXPECT_EQ(rights(), rights_of_type);
        EXPECT_EQ(all.release(kAnne, false, 10, type, notices), Status::Success);
        EXPECT_EQ(rights(), "rwrwrw");
    }
}

TEST_F(NvmeofReservations, KeysMustFit) {
    EXPECT_EQ(add(kAnne, 11), Status::ReservationConflict);
    EXPECT_EQ(add(kAnne, 10), Status::Success);
    EXPECT_EQ(all.acquire(kAnne, false, 11, Type::WriteExclusive), Status::ReservationConflict);
    EXPECT_EQ(all.acquire(kAnne, true, 11, Type::WriteExclusive), Status::Success);
    EXPECT_EQ(all.acquire(kBert, false, 20, Type::WriteExclusive), Status::ReservationConflict);
    EXPECT_EQ(all.acquire(kCarl, true, 0, Type::WriteExclusive), Status::ReservationConflict);
    EXPECT_EQ(all.release(kAnne, false, 10, Type::ExclusiveAccess, notices), Status::InvalidField);
    EXPECT_EQ(all.change_registration(Action::Replace, kAnne, false, 10, 12, notices), Status::Success);
    EXPECT_EQ(all.release(kAnne, false, 12, Type::WriteExclusive, notices), Status::Success);
}

TEST_F(NvmeofReservations, AHolderWhoLeavesGivesUp) {
    EXPECT_EQ(all.acquire(kAnne, false, 10, Type::WriteExclusiveRegistrants), Status::Success);
    EXPECT_EQ(all.change_registration(Action::Unregister, kAnne, false, 10, 0, notices), Status::Success);
    EXPECT_FALSE(all.held());
    ASSERT_EQ(notices.size(), 1U);
    EXPECT_EQ(notices[0].host, kBert);
    EXPECT_EQ(notices[0].type, nvme::ReservationNotice::kReleased);
    // One of all goes, the others hold on.
    add(kAnne, 10);
    EXPECT_EQ(all.acquire(kAnne, false, 10, Type::WriteExclusiveAll), Status::Success);
    EXPECT_EQ(all.change_registration(Action::Unregister, kAnne, false, 10, 0, notices), Status::Success);
    EXPECT_TRUE(all.held());
    EXPECT_TRUE(all.holds(kBert));
}

TEST_F(NvmeofReservations, PreemptingTakesOver) {
    EXPECT_EQ(all.acquire(kAnne, false, 10, Type::WriteExclusive), Status::Success);
    EXPECT_EQ(all.preempt(kBert, false, 20, 99, Type::WriteExclusive, notices), Status::ReservationConflict);
    EXPECT_EQ(all.preempt(kBert, false, 20, 0, Type::WriteExclusive, notices), Status::InvalidField);
    EXPECT_EQ(all.preempt(kBert, false, 20, 10, Type::ExclusiveAccess, notices), Status::Success);
    EXPECT_TRUE(all.holds(kBert));
    EXPECT_EQ(all.registrants().size(), 1U);
    EXPECT_EQ(rights(), "--rw--");
    ASSERT_EQ(notices.size(), 1U);
    EXPECT_EQ(notices[0].host, kAnne);
    EXPECT_EQ(notices[0].type, nvme::ReservationNotice::kReservationPreempted);
}

TEST_F(NvmeofReservations, ClearingLeavesNothing) {
    EXPECT_EQ(all.acquire(kAnne, false, 10, Type::WriteExclusive), Status::Success);
    EXPECT_EQ(all.clear(kBert, false, 20, notices), Status::Success);
    EXPECT_FALSE(all.held());
    EXPECT_TRUE(all.registrants().empty());
    EXPECT_EQ(notices.size(), 1U);
}

TEST_F(NvmeofReservations, WhatIsSavedCanBeLoaded) {
    EXPECT_EQ(all.acquire(kBert, false, 20, Type::WriteExclusive), Status::Success);
    const std::vector<std::byte> text = all.save();
    Reservations other;
    ASSERT_TRUE(other.load(text));
    EXPECT_TRUE(other.persistent);
    EXPECT_TRUE(other.holds(kBert));
    EXPECT_EQ(other.registrants(), all.registrants());
    EXPECT_EQ(other.generation(), all.generation());
    EXPECT_EQ(other.type(), Type::WriteExclusive);
    for (std::size_t size = 0; size < text.size(); ++size) {
        Reservations damaged;
        EXPECT_FALSE(damaged.load(Bytes(text).first(size)));
        EXPECT_TRUE(damaged.registrants().empty());
    }
    std::vector<std::byte> stranger = text;
    stranger[12] = std::byte{0x77};  // a holder who is no registrant
    EXPECT_FALSE(other.load(stranger));
}

TEST_F(NvmeofReservations, RegistrantsAreBounded) {
    nvme::HostId host{};
    for (std::size_t i = 0; all.registrants().size() < Reservations::kMaxRegistrants; ++i) {
        host[4] = static_cast<std::byte>(i);
        host[5] = std::byte{1};
        EXPECT_EQ(add(host, 1), Status::Success);
    }
    EXPECT_EQ(add(kCarl, 1), Status::ReservationConflict);
}

TEST(NvmeofReservationCommands, TwoHostsShareANamespace) {
    Machine machine;
    machine.bring_up();
    // The other host has an admin queue and an I/O queue of its own.
    nvme::ConnectData data = Machine::connect_data(kNqn, 0xffff, "nqn.other.host");
    data.host_id[0] = std::byte{7};
    HostQueue admin(*machine.target, machine.ram, 0, 32);
    HostQueue io(*machine.target, machine.ram, 1, 32);
    const auto run = [&](HostQueue& queue, const SubmissionEntry& entry) {
        queue.submit(entry);
        machine.settle();
        queue.channel.pump();
        machine.settle();
        queue.channel.pump();
        EXPECT_FALSE(queue.channel.responses.empty());
        const auto response = queue.channel.responses.back();
        queue.channel.responses.clear();
        return response;
    };
    machine.put(0, bytes_of(data));
    data.controller_id.set(
        static_cast<std::uint16_t>(run(admin, Machine::connect_entry(0, 32)).entry.result.get()));
    SubmissionEntry enable = Machine::fabrics(nvme::FabricsType::PropertySet);
    enable.dwords[1].set(nvme::property::kConfiguration);
    enable.dwords[2].set(0x00460001);
    run(admin, enable);
    machine.put(0, bytes_of(data));
    ASSERT_EQ(status(run(io, Machine::connect_entry(1, 32))), Status::Success);

    const auto reserve = [&](IoOpcode opcode, std::uint32_t dword10, std::uint64_t current,
                             std::uint64_t other) {
        machine.put(0, bytes_of(std::array<le64, 2>{le64(current), le64(other)}));
        SubmissionEntry e = Machine::entry(static_cast<std::uint8_t>(opcode), 1, 16);
        e.dwords[0].set(dword10);
        return e;
    };
    const auto first = [&](const SubmissionEntry& entry) { return status(machine.run(1, entry)); };
    EXPECT_EQ(first(reserve(IoOpcode::ReservationRegister, 0, 0, 10)), Status::Success);
    EXPECT_EQ(first(reserve(IoOpcode::ReservationAcquire, 1U << 8U, 10, 0)), Status::Success);
    const SubmissionEntry write = Machine::io(IoOpcode::Write, 0, 8, 4096);
    const SubmissionEntry read = Machine::io(IoOpcode::Read, 0, 8, 4096);
    EXPECT_EQ(first(write), Status::Success);
    EXPECT_EQ(status(run(io, write)), Status::ReservationConflict);
    EXPECT_EQ(status(run(io, Machine::io(IoOpcode::WriteZeroes, 0, 8))), Status::ReservationConflict);
    EXPECT_EQ(status(run(io, read)), Status::Success);
    EXPECT_EQ(status(run(io, Machine::io(IoOpcode::Flush, 0, 1))), Status::Success);

    // The other host takes over, and the first one hears of it.
    machine.queues[0]->submit(Machine::entry(AdminOpcode::AsyncEvent));
    EXPECT_EQ(status(run(io, reserve(IoOpcode::ReservationRegister, 0, 0, 20))), Status::Success);
    EXPECT_EQ(status(run(io, reserve(IoOpcode::ReservationAcquire, 1U | 2U << 8U, 20, 10))), Status::Success);
    EXPECT_EQ(machine.next(0).entry.result.get(), 0x800006U);
    SubmissionEntry log = Machine::entry(AdminOpcode::GetLogPage, 0, 64);
    log.dwords[0].set(0x80U | 15U << 16U);
    EXPECT_EQ(status(machine.run(0, log)), Status::Success);
    EXPECT_EQ(machine.get<nvme::ReservationNotice>().type, nvme::ReservationNotice::kReservationPreempted);
    EXPECT_EQ(machine.get<nvme::ReservationNotice>().nsid.get(), 1U);
    EXPECT_EQ(first(read), Status::ReservationConflict);
    EXPECT_EQ(status(run(io, write)), Status::Success);

    SubmissionEntry report = Machine::entry(static_cast<std::uint8_t>(IoOpcode::ReservationReport), 1, 4096);
    report.dwords[0].set(1023);
    EXPECT_EQ(first(report), Status::HostIdInconsistent);
    report.dwords[1].set(1);
    EXPECT_EQ(first(report), Status::Success);
    const auto head = machine.get<nvme::ReservationReport>();
    EXPECT_EQ(head.registrants.get(), 1);
    EXPECT_EQ(head.type, 2);
    EXPECT_EQ(machine.get<nvme::Registrant>(64).key.get(), 20U);
    EXPECT_EQ(machine.get<nvme::Registrant>(64).status, nvme::Registrant::kHolder);
    EXPECT_EQ(machine.get<nvme::Registrant>(64).host_id[0], std::byte{7});
    EXPECT_EQ(status(run(io, reserve(IoOpcode::ReservationRelease, 1, 20, 0))), Status::Success);
    EXPECT_EQ(first(write), Status::Success);
}

}  // namespace
}  // namespace ernic::nvmeof::test
