// SPDX-License-Identifier: MIT
#include "nvmeof/file_store.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <memory>

#include "nvmeof/file_threads.hpp"
#include "nvmeof/file_uring.hpp"
#include "nvmeof/test_support.hpp"

namespace ernic::nvmeof::test {
namespace {

constexpr std::uint32_t kMiB = 1U << 20U;

/// A folder of its own for each test, on a file system with O_DIRECT if the build folder has one.
class Folder {
  public:
    Folder() {
        std::string name = "nvmeof_test_XXXXXX";
        EXPECT_NE(mkdtemp(name.data()), nullptr);
        path_ = name;
    }
    ~Folder() {
        for (const std::string& file : files_) {
            ::unlink(file.c_str());
        }
        ::rmdir(path_.c_str());
    }
    std::string file(const std::string& name) {
        files_.push_back(path_ + "/" + name);
        return files_.back();
    }
    std::string file(const std::string& name, std::size_t size) {
        const std::string path = file(name);
        std::ofstream(path) << std::string(size, 'x');
        return path;
    }

  private:
    std::string path_;
    std::vector<std::string> files_;
};

std::size_t size_of(const std::string& path) {
    struct stat info {};
    EXPECT_EQ(stat(path.c_str(), &info), 0);
    return static_cast<std::size_t>(info.st_size);
}

NamespaceConfig in_file(const std::string& path, std::uint64_t size) {
    return {1, size, 512, path, false, false};
}

TargetConfig file_config(const std::string& path, std::uint64_t size) {
    TargetConfig config = default_config();
    config.namespaces = {in_file(path, size)};
    return config;
}

/// Waits for real time to pass: files have no clock of ours.
FakeChannel::Response next(Machine& machine, std::uint16_t queue) {
    for (int i = 0; i < 5000 && !machine.answered(queue); ++i) {
        ::usleep(1000);
        machine.loop.run_once(false);
    }
    return machine.next(queue);
}

Status run(Machine& machine, const SubmissionEntry& entry, Bytes in_capsule = {}) {
    machine.queues.at(1)->submit(entry, in_capsule);
    return status(next(machine, 1));
}

TEST(NvmeofFile, OpensAndRefusesAsConfigured) {
    Folder folder;
    FakeClock clock;
    EventLoop loop(clock);
    Runtime runtime(loop, log::Logger(log::null_sink(), "nvmeof"));
    const auto error = [&](const NamespaceConfig& config) {
        const auto store = make_store(config, runtime);
        return store.ok() ? std::string() : store.error().message;
    };
    const std::string small = folder.file("small", 4096);
    EXPECT_THAT(error(in_file(small, 8192)), testing::HasSubstr("too few"));
    EXPECT_EQ(size_of(small), 4096U);
    EXPECT_EQ(error(in_file(small, 2048)), "");
    EXPECT_EQ(size_of(small), 4096U);
    NamespaceConfig resize = in_file(small, 8192);
    resize.truncate = true;
    EXPECT_EQ(error(resize), "");
    EXPECT_EQ(size_of(small), 8192U);

    const std::string odd = folder.file("odd", 1000);
    EXPECT_THAT(error(in_file(odd, 0)), testing::HasSubstr("no multiple"));
    EXPECT_THAT(error(in_file("/nonexistent/file", 4096)), testing::HasSubstr("cannot open"));
    EXPECT_THAT(error(in_file("/dev/null", 0)), testing::HasSubstr("neither"));

    const std::string made = folder.file("made");
    const auto first = make_store(in_file(made, kMiB), runtime);
    ASSERT_TRUE(first.ok());
    EXPECT_EQ(size_of(made), kMiB);
    EXPECT_THAT(error(in_file(made, kMiB)), testing::HasSubstr("in use"));
    NamespaceConfig reader = in_file(made, kMiB);
    reader.read_only = true;
    EXPECT_THAT(error(reader), testing::HasSubstr("in use"));
}

TEST(NvmeofFile, WhatWasWrittenIsThereAfterARestart) {
    Folder folder;
    const std::string path = folder.file("data");
    std::array<std::byte, 16> uuid{};
    for (int i = 0; i < 2; ++i) {
        Machine machine(file_config(path, 8U << 20U));
        machine.bring_up();
        machine.fill(0, kMiB, 3);
        if (i == 0) {
            uuid = machine.target->nvm().find(1)->uuid();
            EXPECT_EQ(run(machine, Machine::io(IoOpcode::Write, 9, 2048, kMiB)), Status::Success);
            EXPECT_EQ(run(machine, Machine::io(IoOpcode::Flush, 0, 1)), Status::Success);
        }
        EXPECT_EQ(machine.target->nvm().find(1)->uuid(), uuid);
        EXPECT_EQ(run(machine, Machine::io(IoOpcode::Read, 9, 2048, kMiB, 2 * kMiB)), Status::Success);
        EXPECT_TRUE(machine.same(0, 2 * kMiB, kMiB));
    }
}

TEST(NvmeofFile, EveryCommandWorksOnFiles) {
    Folder folder;
    Machine machine(file_config(folder.file("data"), 8U << 20U));
    machine.bring_up();
    machine.fill(0, kMiB, 7);
    SubmissionEntry write = Machine::io(IoOpcode::Write, 0, 2048, kMiB);
    write.dwords[2].set(write.dword(12) | 1U << 30U);  // forced
    EXPECT_EQ(run(machine, write), Status::Success);
    EXPECT_EQ(run(machine, Machine::io(IoOpcode::Compare, 0, 2048, kMiB)), Status::Success);
    machine.ram.bytes[kMiB - 1] ^= std::byte{1};
    EXPECT_EQ(run(machine, Machine::io(IoOpcode::Compare, 0, 2048, kMiB)), Status::CompareFailure);
    machine.ram.bytes[kMiB - 1] ^= std::byte{1};
    EXPECT_EQ(run(machine, Machine::io(IoOpcode::Verify, 0, 4096)), Status::Success);

    // In the capsule.
    write = Machine::io(IoOpcode::Write, 4096, 8);
    write.data = SglDescriptor::in_capsule(0, 4096);
    EXPECT_EQ(run(machine, write, Bytes(machine.ram.bytes).first(4096)), Status::Success);
    SubmissionEntry compare = Machine::io(IoOpcode::Compare, 4096, 8);
    compare.data = SglDescriptor::in_capsule(0, 4096);
    EXPECT_EQ(run(machine, compare, Bytes(machine.ram.bytes).first(4096)), Status::Success);

    nvme::CopyRange range{};
    range.start.set(3);
    range.blocks.set(1499);
    machine.put(8 * kMiB, bytes_of(range));
    SubmissionEntry copy =
        Machine::entry(static_cast<std::uint8_t>(IoOpcode::Copy), 1, sizeof range, 8 * kMiB);
    copy.dwords[0].set(8192);
    EXPECT_EQ(run(machine, copy), Status::Success);
    EXPECT_EQ(run(machine, Machine::io(IoOpcode::Read, 8192, 1500, 1500 * 512, 4 * kMiB)), Status::Success);
    EXPECT_TRUE(machine.same(3 * 512, 4 * kMiB, 1500 * 512));

    for (const IoOpcode opcode : {IoOpcode::WriteZeroes, IoOpcode::DatasetManagement}) {
        EXPECT_EQ(run(machine, Machine::io(IoOpcode::Write, 0, 2048, kMiB)), Status::Success);
        SubmissionEntry zero = Machine::io(opcode, 5, 1000);
        if (opcode == IoOpcode::DatasetManagement) {
            nvme::DatasetRange trimmed{};
            trimmed.start.set(5);
            trimmed.blocks.set(1000);
            machine.put(8 * kMiB, bytes_of(trimmed));
            zero = Machine::entry(static_cast<std::uint8_t>(opcode), 1, 4096, 8 * kMiB);
            zero.dwords[1].set(4);
        }
        EXPECT_EQ(run(machine, zero), Status::Success);
        EXPECT_EQ(run(machine, Machine::io(IoOpcode::Read, 0, 2048, kMiB, 4 * kMiB)), Status::Success);
        EXPECT_TRUE(machine.same(0, 4 * kMiB, 5 * 512));
        EXPECT_EQ(machine.ram.bytes[4 * kMiB + 5 * 512], std::byte{0});
        EXPECT_EQ(machine.ram.bytes[4 * kMiB + 1005 * 512 - 1], std::byte{0});
        EXPECT_TRUE(machine.same(1005 * 512, 4 * kMiB + 1005 * 512, 1043 * 512));
    }

    compare = Machine::io(IoOpcode::Compare, 2040, 8, 4096, 2040 * 512);
    compare.flags |= SubmissionEntry::kFuseFirst;
    write = Machine::io(IoOpcode::Write, 2040, 8, 4096);
    write.flags |= SubmissionEntry::kFuseSecond;
    machine.queues[1]->submit(compare);
    machine.queues[1]->submit(write);
    EXPECT_EQ(status(next(machine, 1)), Status::Success);
    EXPECT_EQ(status(next(machine, 1)), Status::Success);
    EXPECT_EQ(run(machine, Machine::io(IoOpcode::Read, 2040, 8, 4096, 4 * kMiB)), Status::Success);
    EXPECT_TRUE(machine.same(0, 4 * kMiB, 4096));
    EXPECT_EQ(machine.runtime.buffers.free_bytes(), machine.runtime.buffers.bytes());
}

TEST(NvmeofFile, ManyAtOnceComeBackRight) {
    Folder folder;
    Machine machine(file_config(folder.file("data"), 16U << 20U));
    machine.bring_up(200);
    machine.fill(0, kMiB, 1);
    for (int round = 0; round < 3; ++round) {
        for (std::uint32_t i = 0; i < 190; ++i) {
            machine.queues[1]->submit(Machine::io(round == 0 ? IoOpcode::Write : IoOpcode::Read,
                                                  std::uint64_t{i} * 8, 8, 4096,
                                                  (round == 0 ? 0 : 2 * kMiB) + i * 4096));
        }
        for (std::uint32_t i = 0; i < 190; ++i) {
            EXPECT_EQ(status(next(machine, 1)), Status::Success);
        }
    }
    EXPECT_TRUE(machine.same(0, 2 * kMiB, 190 * 4096));
}

/// Large transfers are left to the kernel's workers where the page cache copies, small ones are not.
TEST(NvmeofFile, ThePageCacheMayCopyElsewhere) {
    const std::string path = "/dev/shm/nvmeof_test_" + std::to_string(::getpid());
    {
        Machine machine(file_config(path, 4 * kMiB));
        machine.bring_up();
        for (const std::uint32_t bytes : {4096U, 32768U, 65536U, kMiB}) {
            machine.fill(kMiB, bytes, static_cast<std::uint8_t>(bytes >> 12U));
            EXPECT_EQ(run(machine, Machine::io(IoOpcode::Write, 8, bytes / 512, bytes, kMiB)),
                      Status::Success);
            EXPECT_EQ(run(machine, Machine::io(IoOpcode::Read, 8, bytes / 512, bytes, 4 * kMiB)),
                      Status::Success);
            EXPECT_TRUE(machine.same(kMiB, 4 * kMiB, bytes)) << bytes;
        }
    }
    ::unlink(path.c_str());
}

TEST(NvmeofFile, AConnectionMayEndWhileTheFileIsBusy) {
    Folder folder;
    Machine machine(file_config(folder.file("data"), 16U << 20U));
    for (int round = 0; round < 10; ++round) {
        machine.bring_up(64);
        for (std::uint32_t i = 0; i < 32; ++i) {
            machine.queues[1]->submit(Machine::io(IoOpcode::Read, i * 8, 2048, kMiB));
        }
        machine.runtime.step();
        machine.queues[1]->channel.end();
        machine.queues[0]->channel.end();
        for (int i = 0; i < 5000 && machine.target->connections() != 0; ++i) {
            machine.settle();
            ::usleep(1000);
        }
        machine.queues.clear();
        ASSERT_EQ(machine.target->connections(), 0U);
        EXPECT_EQ(machine.runtime.buffers.free_bytes(), machine.runtime.buffers.bytes());
    }
}

TEST(NvmeofFile, AShrunkFileFailsReadsOfWhatIsGone) {
    Folder folder;
    const std::string path = folder.file("data", 2 * kMiB);
    Machine machine(file_config(path, 0));
    machine.bring_up();
    ASSERT_EQ(truncate(path.c_str(), kMiB), 0);
    EXPECT_EQ(run(machine, Machine::io(IoOpcode::Read, 0, 8, 4096)), Status::Success);
    EXPECT_EQ(run(machine, Machine::io(IoOpcode::Read, 2048, 8, 4096)), Status::UnrecoveredRead);
    EXPECT_EQ(machine.runtime.counters.medium_errors.value(), 1U);
}

TEST(NvmeofFile, ReservationsComeBackWhenTheyWereToPersist) {
    Folder folder;
    const std::string path = folder.file("data");
    const auto reserve = [](IoOpcode opcode, std::uint32_t dword10) {
        SubmissionEntry e = Machine::entry(static_cast<std::uint8_t>(opcode), 1, 16);
        e.dwords[0].set(dword10);
        return e;
    };
    {
        Machine machine(file_config(path, kMiB));
        machine.bring_up();
        if (!machine.target->nvm().find(1)->store().keeps()) {
            GTEST_SKIP() << "this file system has no extended attributes";
        }
        constexpr std::uint32_t kPersist = 3U << 30U;
        machine.put(0, bytes_of(std::array<le64, 2>{le64(0), le64(10)}));
        EXPECT_EQ(run(machine, reserve(IoOpcode::ReservationRegister, kPersist)), Status::Success);
        machine.put(0, bytes_of(std::array<le64, 2>{le64(10), le64(0)}));
        EXPECT_EQ(run(machine, reserve(IoOpcode::ReservationAcquire, 1U << 8U)), Status::Success);
    }
    Machine machine(file_config(path, kMiB));
    const Reservations& reservations = machine.target->nvm().find(1)->reservations;
    EXPECT_TRUE(reservations.held());
    EXPECT_TRUE(reservations.holds(nvme::HostId{std::byte{0x42}}));
    machine.bring_up();
    constexpr std::uint32_t kForget = 2U << 30U;
    machine.put(0, bytes_of(std::array<le64, 2>{le64(10), le64(11)}));
    EXPECT_EQ(run(machine, reserve(IoOpcode::ReservationRegister, kForget | 2U)), Status::Success);
    EXPECT_TRUE(machine.target->nvm().find(1)->store().kept().empty());
}

TEST(NvmeofFile, TheWriteCacheIsTold) {
    Folder folder;
    Machine machine(file_config(folder.file("data"), kMiB));
    machine.bring_up();
    SubmissionEntry identify = Machine::entry(AdminOpcode::Identify, 0, nvme::kIdentifyBytes);
    identify.dwords[0].set(static_cast<std::uint32_t>(Cns::Controller));
    ASSERT_EQ(status(machine.run(0, identify)), Status::Success);
    EXPECT_EQ(machine.get<nvme::IdentifyController>().write_cache, 0x07);
    SubmissionEntry cache = Machine::entry(AdminOpcode::GetFeatures);
    cache.dwords[0].set(static_cast<std::uint32_t>(nvme::Feature::VolatileWriteCache));
    EXPECT_EQ(machine.run(0, cache).entry.result.get(), 1U);
    Machine ram;
    ram.bring_up();
    ASSERT_EQ(status(ram.run(0, identify)), Status::Success);
    EXPECT_EQ(ram.get<nvme::IdentifyController>().write_cache, 0x06);
    EXPECT_EQ(ram.run(0, cache).entry.result.get(), 0U);
}

/// What both ways of making calls must do.
template <typename Engine>
class NvmeofFileEngine : public testing::Test {};

struct Uring {
    static std::unique_ptr<FileEngine> make(EventLoop& loop, WorkQueue& work) {
        auto engine = FileUring::make(loop, work);
        return engine ? std::unique_ptr<FileEngine>(std::move(*engine)) : nullptr;
    }
};
struct Threads {
    static std::unique_ptr<FileEngine> make(EventLoop& loop, WorkQueue& /*work*/) {
        return std::make_unique<FileThreads>(loop, nullptr);
    }
};
using Engines = testing::Types<Uring, Threads>;
TYPED_TEST_SUITE(NvmeofFileEngine, Engines);

struct Finished final : StoreOperation {
    void done(int error) override {
        result = error;
        finished = true;
    }
    int result = 0;
    bool finished = false;
};

TYPED_TEST(NvmeofFileEngine, ReadsWritesZeroesAndFlushes) {
    FakeClock clock;
    EventLoop loop(clock);
    WorkQueue work;
    BufferPool pool(1U << 20U, work);
    auto engine = TypeParam::make(loop, work);
    if (engine == nullptr) {
        GTEST_SKIP() << "this kernel does not allow io_uring";
    }
    Folder folder;
    auto store = FileStore::open(in_file(folder.file("data"), kMiB), *engine);
    ASSERT_TRUE(store.ok()) << store.error().message;
    const Buffer buffer = pool.take(256U << 10U);
    const auto run = [&](StoreOperation::Kind kind, std::uint64_t offset, std::uint64_t length) {
        Finished operation;
        operation.kind = kind;
        operation.offset = offset;
        operation.length = length;
        operation.buffer = &buffer;
        (*store)->start(operation);
        for (int i = 0; i < 5000 && !operation.finished; ++i) {
            loop.run_once(false);
            while (work.step()) {
            }
            ::usleep(1000);
        }
        EXPECT_TRUE(operation.finished);
        return operation.result;
    };
    using Kind = StoreOperation::Kind;
    const std::vector<std::byte> pattern(200'704, std::byte{0x5a});
    buffer.put(0, pattern);
    EXPECT_EQ(run(Kind::Write, 4096, pattern.size()), 0);
    EXPECT_EQ(run(Kind::Flush, 0, 0), 0);
    for (const auto refused : {FileStore::Zeroing::ZeroRange, FileStore::Zeroing::PunchHole}) {
        EXPECT_EQ(run(Kind::Zero, 8192, 1024), 0);
        EXPECT_EQ(run(Kind::Deallocate, 16384, 131'072), 0);
        buffer.put(0, pattern);
        EXPECT_EQ(run(Kind::Read, 4096, pattern.size()), 0);
        std::vector<std::byte> found(pattern.size());
        buffer.get(0, found);
        EXPECT_EQ(found[4095], std::byte{0x5a});
        EXPECT_EQ(found[4096], std::byte{0});
        EXPECT_EQ(found[4096 + 1024], std::byte{0x5a});
        EXPECT_EQ(found[12288], std::byte{0});
        EXPECT_EQ(found[12288 + 131'071], std::byte{0});
        EXPECT_EQ(found[12288 + 131'072], std::byte{0x5a});
        // Once more, as on a file system without the call.
        (*store)->zeroing_refused(refused);
        buffer.put(0, pattern);
        EXPECT_EQ(run(Kind::Write, 4096, pattern.size()), 0);
    }
    EXPECT_EQ(engine->in_flight(), 0U);
}

}  // namespace
}  // namespace ernic::nvmeof::test
