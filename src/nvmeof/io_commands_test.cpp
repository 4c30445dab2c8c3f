// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include "nvmeof/test_support.hpp"

namespace ernic::nvmeof::test {
namespace {

constexpr std::uint32_t kMiB = 1U << 20U;

class NvmeofIo : public testing::Test {
  protected:
    NvmeofIo() { machine.bring_up(64); }

    Status run(const SubmissionEntry& entry) { return status(machine.run(1, entry)); }
    void write_pattern(std::uint64_t block, std::uint32_t blocks, std::uint8_t seed) {
        machine.fill(0, blocks * 512, seed);
        ASSERT_EQ(run(Machine::io(IoOpcode::Write, block, blocks, blocks * 512)), Status::Success);
    }
    /// Reads to 4 MiB of host memory.
    void read(std::uint64_t block, std::uint32_t blocks) {
        ASSERT_EQ(run(Machine::io(IoOpcode::Read, block, blocks, blocks * 512, 4 * kMiB)), Status::Success);
    }
    [[nodiscard]] bool zero(std::size_t offset, std::size_t size) const {
        const auto begin = machine.ram.bytes.begin() + static_cast<std::ptrdiff_t>(offset);
        return std::all_of(begin, begin + static_cast<std::ptrdiff_t>(size),
                           [](std::byte b) { return b == std::byte{0}; });
    }

    Machine machine;
};

TEST_F(NvmeofIo, WriteZeroesAndDeallocateLeaveTheirNeighbours) {
    write_pattern(0, 2048, 1);
    EXPECT_EQ(run(Machine::io(IoOpcode::WriteZeroes, 3, 1000)), Status::Success);
    read(0, 2048);
    EXPECT_TRUE(machine.same(0, 4 * kMiB, 3 * 512));
    EXPECT_TRUE(zero(4 * kMiB + 3 * 512, 1000 * 512));
    EXPECT_TRUE(machine.same(1003 * 512, 4 * kMiB + 1003 * 512, 1045 * 512));

    std::array<nvme::DatasetRange, 2> ranges{};
    ranges[0].start.set(1100);
    ranges[0].blocks.set(9);
    ranges[1].start.set(1200);
    ranges[1].blocks.set(100);
    machine.put(8 * kMiB, bytes_of(ranges));
    SubmissionEntry trim =
        Machine::entry(static_cast<std::uint8_t>(IoOpcode::DatasetManagement), 1, 4096, 8 * kMiB);
    trim.dwords[0].set(1);
    trim.dwords[1].set(4);
    EXPECT_EQ(run(trim), Status::Success);
    read(0, 2048);
    EXPECT_TRUE(zero(4 * kMiB + 1100 * 512, 9 * 512));
    EXPECT_TRUE(machine.same(1109 * 512, 4 * kMiB + 1109 * 512, 91 * 512));
    EXPECT_TRUE(zero(4 * kMiB + 1200 * 512, 100 * 512));
}

TEST_F(NvmeofIo, DeallocatingPastTheEndChangesNothing) {
    write_pattern(0, 8, 5);
    std::array<nvme::DatasetRange, 2> ranges{};
    ranges[0].blocks.set(8);
    ranges[1].start.set(UINT64_MAX - 3);
    ranges[1].blocks.set(8);
    machine.put(8 * kMiB, bytes_of(ranges));
    SubmissionEntry trim =
        Machine::entry(static_cast<std::uint8_t>(IoOpcode::DatasetManagement), 1, 32, 8 * kMiB);
    trim.dwords[0].set(1);
    trim.dwords[1].set(4);
    EXPECT_EQ(run(trim), Status::LbaOutOfRange);
    read(0, 8);
    EXPECT_TRUE(machine.same(0, 4 * kMiB, 4096));
}

TEST_F(NvmeofIo, CompareTellsEqualFromDifferent) {
    write_pattern(10, 2048, 7);
    const SubmissionEntry compare = Machine::io(IoOpcode::Compare, 10, 2048, kMiB);
    EXPECT_EQ(run(compare), Status::Success);
    machine.ram.bytes[kMiB - 1] ^= std::byte{1};
    EXPECT_EQ(run(compare), Status::CompareFailure);
}

TEST_F(NvmeofIo, CopyGathersRanges) {
    write_pattern(0, 1024, 11);
    std::array<nvme::CopyRange, 2> ranges{};
    ranges[0].start.set(100);
    ranges[0].blocks.set(699);
    ranges[1].start.set(8);
    ranges[1].blocks.set(0);
    machine.put(8 * kMiB, bytes_of(ranges));
    SubmissionEntry copy =
        Machine::entry(static_cast<std::uint8_t>(IoOpcode::Copy), 1, sizeof ranges, 8 * kMiB);
    copy.dwords[0].set(4096);
    copy.dwords[2].set(1);
    EXPECT_EQ(run(copy), Status::Success);
    read(4096, 701);
    EXPECT_TRUE(machine.same(100 * 512, 4 * kMiB, 700 * 512));
    EXPECT_TRUE(machine.same(8 * 512, 4 * kMiB + 700 * 512, 512));

    copy.dwords[0].set(kRamBytes / 512 - 700);
    EXPECT_EQ(run(copy), Status::LbaOutOfRange);
    copy.dwords[2].set(1U | 1U << 8U);
    EXPECT_EQ(run(copy), Status::InvalidField);
    copy.dwords[2].set(kCopyRanges);
    EXPECT_EQ(run(copy), Status::CommandSizeLimit);
}

TEST_F(NvmeofIo, UncorrectableBlocksFailUntilTheyAreWritten) {
    EXPECT_EQ(run(Machine::io(IoOpcode::WriteUncorrectable, 100, 10)), Status::Success);
    EXPECT_EQ(run(Machine::io(IoOpcode::Read, 109, 1, 512)), Status::UnrecoveredRead);
    EXPECT_EQ(run(Machine::io(IoOpcode::Verify, 95, 6)), Status::UnrecoveredRead);
    EXPECT_EQ(run(Machine::io(IoOpcode::Read, 110, 1, 512)), Status::Success);
    EXPECT_EQ(run(Machine::io(IoOpcode::Write, 105, 1, 512)), Status::Success);
    EXPECT_EQ(run(Machine::io(IoOpcode::Read, 105, 1, 512)), Status::Success);
    EXPECT_EQ(run(Machine::io(IoOpcode::Read, 104, 1, 512)), Status::UnrecoveredRead);
    EXPECT_EQ(run(Machine::io(IoOpcode::WriteZeroes, 90, 30)), Status::Success);
    EXPECT_EQ(run(Machine::io(IoOpcode::Read, 90, 30, 30 * 512)), Status::Success);
}

TEST_F(NvmeofIo, FusedPairsCompareAndWrite) {
    write_pattern(0, 8, 20);
    SubmissionEntry compare = Machine::io(IoOpcode::Compare, 0, 8, 4096);
    compare.flags |= SubmissionEntry::kFuseFirst;
    SubmissionEntry write = Machine::io(IoOpcode::Write, 0, 8, 4096, kMiB);
    write.flags |= SubmissionEntry::kFuseSecond;
    machine.fill(kMiB, 4096, 99);
    HostQueue& queue = *machine.queues[1];
    queue.submit(compare);
    EXPECT_FALSE(machine.answered(1));
    queue.submit(write);
    EXPECT_EQ(status(machine.next(1)), Status::Success);
    EXPECT_EQ(status(machine.next(1)), Status::Success);
    read(0, 8);
    EXPECT_TRUE(machine.same(kMiB, 4 * kMiB, 4096));

    // What is stored is no longer what the host compares with.
    queue.submit(compare);
    queue.submit(write);
    EXPECT_EQ(status(machine.next(1)), Status::CompareFailure);
    EXPECT_EQ(status(machine.next(1)), Status::FusedFailed);
}

TEST_F(NvmeofIo, HalvesOfFusedPairsFail) {
    SubmissionEntry compare = Machine::io(IoOpcode::Compare, 0, 8, 4096);
    compare.flags |= SubmissionEntry::kFuseFirst;
    SubmissionEntry write = Machine::io(IoOpcode::Write, 0, 8, 4096);
    write.flags |= SubmissionEntry::kFuseSecond;
    EXPECT_EQ(run(write), Status::FusedMissing);
    HostQueue& queue = *machine.queues[1];
    queue.submit(compare);
    queue.submit(Machine::io(IoOpcode::Read, 0, 1, 512));
    EXPECT_EQ(status(machine.next(1)), Status::FusedMissing);
    EXPECT_EQ(status(machine.next(1)), Status::Success);
    queue.submit(compare);
    write.dwords[0].set(8);
    queue.submit(write);
    EXPECT_EQ(status(machine.next(1)), Status::InvalidField);
    EXPECT_EQ(status(machine.next(1)), Status::InvalidField);
}

TEST_F(NvmeofIo, BadDataDescriptorsHaveTheirStatus) {
    SubmissionEntry read = Machine::io(IoOpcode::Read, 0, 8, 4096);
    read.flags = 0;
    EXPECT_EQ(run(read), Status::InvalidField);
    read = Machine::io(IoOpcode::Read, 0, 8, 4095);
    EXPECT_EQ(run(read), Status::SglLengthInvalid);
    read = Machine::io(IoOpcode::Read, 0, 8, 4096);
    read.data.identifier = 0x45;
    EXPECT_EQ(run(read), Status::InvalidField);
    read.data.identifier = 0x30;
    EXPECT_EQ(run(read), Status::SglTypeInvalid);
    SubmissionEntry write = Machine::io(IoOpcode::Write, 0, 8);
    write.data = SglDescriptor::in_capsule(1, 4096);
    const std::vector<std::byte> data(4096);
    EXPECT_EQ(status(machine.run(1, write, data)), Status::SglOffsetInvalid);
    write.data = SglDescriptor::in_capsule(UINT64_MAX, 4096);
    EXPECT_EQ(status(machine.run(1, write, data)), Status::SglOffsetInvalid);
    read.data = SglDescriptor::in_capsule(0, 4096);
    EXPECT_EQ(status(machine.run(1, read, data)), Status::InvalidField);
}

TEST_F(NvmeofIo, RangesOutsideTheNamespaceAreRefused) {
    for (const std::uint64_t first :
         {std::uint64_t{kRamBytes / 512 - 7}, std::uint64_t{1} << 55U, UINT64_MAX - 7, UINT64_MAX}) {
        for (const IoOpcode opcode :
             {IoOpcode::Read, IoOpcode::Write, IoOpcode::Compare, IoOpcode::WriteZeroes, IoOpcode::Verify,
              IoOpcode::WriteUncorrectable}) {
            const auto response = machine.run(1, Machine::io(opcode, first, 8, 4096));
            EXPECT_EQ(status(response), Status::LbaOutOfRange);
            EXPECT_TRUE(do_not_retry(response));
        }
    }
    SubmissionEntry elsewhere = Machine::io(IoOpcode::Read, 0, 8, 4096);
    for (const std::uint32_t nsid : {0U, 2U, 5000U, 0xffffffffU}) {
        elsewhere.nsid.set(nsid);
        EXPECT_EQ(run(elsewhere), Status::InvalidNamespace);
    }
}

TEST_F(NvmeofIo, TransfersAboveTheLimitAreRefused) {
    EXPECT_EQ(run(Machine::io(IoOpcode::Read, 0, 2049, kMiB + 512)), Status::InvalidField);
}

TEST_F(NvmeofIo, AnIdInUseIsRefusedAndStaysTheOthers) {
    SubmissionEntry wait = Machine::io(IoOpcode::Write, 0, 8, 4096);
    wait.command_id.set(7);
    HostQueue& queue = *machine.queues[1];
    queue.submit(wait);
    queue.submit(wait);
    EXPECT_EQ(status(machine.next(1)), Status::CommandIdConflict);
    EXPECT_EQ(status(machine.next(1)), Status::Success);
    EXPECT_EQ(run(wait), Status::Success);
}

TEST_F(NvmeofIo, ABadKeyCostsTheConnection) {
    SubmissionEntry read = Machine::io(IoOpcode::Read, 0, 8, 4096);
    read.data = SglDescriptor::keyed(kHostBase, 4096, kKey + 1, false);
    machine.queues[1]->submit(read);
    machine.settle();
    EXPECT_TRUE(machine.queues[1]->channel.ended);
    EXPECT_EQ(machine.target->connections(), 1U);
}

TEST_F(NvmeofIo, ACapsuleTooShortCostsTheConnection) {
    const std::array<std::byte, 63> runt{};
    machine.queues[1]->channel.handler->command(0, runt, {});
    EXPECT_TRUE(machine.queues[1]->channel.closed);
    EXPECT_EQ(machine.runtime.counters.malformed_capsules.value(), 1U);
}

TEST(NvmeofIoLimits, CommandsWaitForStagingMemory) {
    Machine machine;
    machine.bring_up(64);
    std::fill(machine.ram.bytes.begin(), machine.ram.bytes.end(), std::byte{0});
    std::vector<Buffer> hoard;
    while (machine.runtime.buffers.free_bytes() != 0) {
        hoard.push_back(machine.runtime.buffers.take(BufferPool::kChunk));
    }
    machine.queues[1]->submit(Machine::io(IoOpcode::Compare, 0, 2048, kMiB));
    machine.queues[1]->submit(Machine::io(IoOpcode::Compare, 0, 8, 4096));
    EXPECT_FALSE(machine.answered(1));
    hoard.resize(hoard.size() - 15);
    EXPECT_FALSE(machine.answered(1));
    hoard.clear();
    EXPECT_EQ(status(machine.next(1)), Status::Success);
    EXPECT_EQ(status(machine.next(1)), Status::Success);
    EXPECT_EQ(machine.runtime.buffers.free_bytes(), machine.runtime.buffers.bytes());
    EXPECT_EQ(machine.runtime.counters.buffer_waits.value(), 2U);
}

TEST(NvmeofIoLimits, ASlowDeviceTakesItsTime) {
    TargetConfig config = default_config();
    config.latency = 1'000'000;
    config.iops = 1000;
    Machine machine(config);
    machine.bring_up();
    for (int i = 0; i < 3; ++i) {
        machine.queues[1]->submit(Machine::io(IoOpcode::Read, 0, 8, 4096));
    }
    EXPECT_FALSE(machine.answered(1));
    for (int i = 0; i < 3; ++i) {
        machine.wait(999'999);
        EXPECT_FALSE(machine.answered(1));
        machine.wait(1);
        EXPECT_EQ(status(machine.next(1)), Status::Success);
    }
}

TEST(NvmeofIoLimits, FaultsFireOnEveryNthThatMatches) {
    TargetConfig config = default_config();
    config.faults = {{0x281, true, 2, 0x02, 100, 199}};
    Machine machine(config);
    machine.bring_up();
    const auto read = [&](std::uint64_t first) {
        return status(machine.run(1, Machine::io(IoOpcode::Read, first, 8, 4096)));
    };
    EXPECT_EQ(read(93), Status::Success);
    EXPECT_EQ(read(0), Status::Success);
    EXPECT_EQ(read(199), Status::UnrecoveredRead);
    EXPECT_EQ(read(150), Status::Success);
    EXPECT_EQ(status(machine.run(1, Machine::io(IoOpcode::Write, 150, 8, 4096))), Status::Success);
    EXPECT_EQ(read(150), Status::UnrecoveredRead);
    EXPECT_EQ(read(200), Status::Success);
    EXPECT_EQ(machine.runtime.counters.injected_faults.value(), 2U);
}

TEST(NvmeofIoLimits, BlocksOfEverySizeWork) {
    for (const std::uint32_t size : {512U, 1024U, 2048U, 4096U}) {
        TargetConfig config = default_config();
        config.namespaces = {{1, 1U << 20U, size, "", false, false}};
        Machine machine(config);
        machine.bring_up();
        const std::uint64_t last = (1U << 20U) / size - 1;
        machine.fill(0, size, 1);
        EXPECT_EQ(status(machine.run(1, Machine::io(IoOpcode::Write, last, 1, size))), Status::Success);
        EXPECT_EQ(status(machine.run(1, Machine::io(IoOpcode::Read, last, 1, size, 8192))), Status::Success);
        EXPECT_TRUE(machine.same(0, 8192, size));
        EXPECT_EQ(status(machine.run(1, Machine::io(IoOpcode::Read, last + 1, 1, size))),
                  Status::LbaOutOfRange);
    }
}

TEST(NvmeofIoLimits, NamespacesAreApart) {
    TargetConfig config = default_config();
    config.namespaces = {{1, 1U << 20U, 512, "", false, false}, {7, 1U << 20U, 4096, "", true, false}};
    Machine machine(config);
    machine.bring_up();
    SubmissionEntry write = Machine::io(IoOpcode::Write, 0, 1, 4096);
    write.nsid.set(7);
    EXPECT_EQ(status(machine.run(1, write)), Status::NamespaceWriteProtected);
    machine.fill(0, 512, 1);
    EXPECT_EQ(status(machine.run(1, Machine::io(IoOpcode::Write, 0, 1, 512))), Status::Success);
    SubmissionEntry read = Machine::io(IoOpcode::Read, 0, 1, 4096);
    read.nsid.set(7);
    EXPECT_EQ(status(machine.run(1, read)), Status::Success);
    EXPECT_EQ(machine.ram.bytes[0], std::byte{0});
}

}  // namespace
}  // namespace ernic::nvmeof::test
