// SPDX-License-Identifier: MIT
#include <benchmark/benchmark.h>

#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "guest_sim/error.hpp"
#include "guest_sim/nvme_host.hpp"
#include "support/bench_guest.hpp"
#include "support/process_probe.hpp"
#include "support/samples.hpp"

/// Reads and writes of an NVMe over Fabrics namespace in memory: how many per second, what one costs the
/// server, and how that grows with the number of queues and of memory regions.
namespace ernic::bench {
namespace {

using wire::nvme::CompletionEntry;
using wire::nvme::IoOpcode;

constexpr std::size_t kMiB = std::size_t{1} << 20U;
constexpr std::uint32_t kBlock = 512;
constexpr std::size_t kNamespace = 64 * kMiB;
constexpr int kRounds = 7;
constexpr wire::MacAddress kTargetMac{{0x02, 0, 0, 0, 0, 0x77}};

class Initiator {
  public:
    Initiator(std::uint16_t queues, std::size_t regions, std::uint32_t size, std::uint16_t depth)
        : guest_(512 * kMiB, {"--target", "nvmeof:size=64M,queues=64,mac=02:00:00:00:00:77"}),
          host_(*guest_, {.mac = kTargetMac}),
          admin_(host_.connect_admin()),
          size_(size),
          depth_(depth) {
        for (std::uint16_t id = 1; id <= queues; ++id) {
            queues_.push_back(host_.connect_io(id, static_cast<std::uint16_t>(depth + 1), 0));
        }
        const std::size_t slots = std::max<std::size_t>(regions, depth);
        const sim::Buffer memory = guest_->allocate(std::min<std::size_t>(slots * size, 64 * kMiB));
        for (std::size_t i = 0; i < slots; ++i) {
            regions_.push_back(guest_->register_memory(memory.part(i * size % memory.size, size)));
        }
    }

    /// Runs `commands` of `opcode` over all queues in turn; returns the seconds they took.
    double run(IoOpcode opcode, std::uint64_t commands) {
        std::uint64_t sent = 0;
        std::uint64_t done = 0;
        std::vector<std::uint16_t> under_way(queues_.size());
        const auto begin = Clock::now();
        while (done < commands) {
            for (std::size_t i = 0; i < queues_.size(); ++i) {
                sim::NvmeQueue& queue = *queues_[i];
                bool staged = false;
                while (sent < commands && under_way[i] < depth_) {
                    stage(queue, opcode, sent++);
                    ++under_way[i];
                    staged = true;
                }
                if (staged) {
                    queue.ring();
                }
                std::array<CompletionEntry, 16> completions;
                const std::size_t got = queue.poll(completions);
                for (std::size_t c = 0; c < got; ++c) {
                    sim::require(completions[c].status.get() >> 1U == 0, "a command failed");
                }
                under_way[i] = static_cast<std::uint16_t>(under_way[i] - got);
                done += got;
            }
        }
        return seconds_since(begin);
    }

    pid_t server() { return guest_.server().pid(); }

  private:
    void stage(sim::NvmeQueue& queue, IoOpcode opcode, std::uint64_t number) {
        const std::uint32_t blocks = size_ / kBlock;
        const std::uint64_t lba = number * 2654435761U % (kNamespace / size_) * blocks;
        // Ids of commands under way differ, because they end in order.
        queue.stage(sim::io_command(opcode, static_cast<std::uint16_t>(number), lba, blocks,
                                    sim::keyed(regions_[next_region_], 0, size_)));
        next_region_ = next_region_ + 1 == regions_.size() ? 0 : next_region_ + 1;
    }

    BenchGuest guest_;
    sim::NvmeHost host_;
    std::unique_ptr<sim::NvmeQueue> admin_;
    std::uint32_t size_;
    std::uint16_t depth_;
    std::vector<std::unique_ptr<sim::NvmeQueue>> queues_;
    std::vector<sim::Region> regions_;
    std::size_t next_region_ = 0;
};

/// Bytes per second of a plain copy of so many bytes at a time, for comparison.
double copy_speed(std::size_t size) {
    std::vector<std::byte> from(kNamespace, std::byte{1});
    std::vector<std::byte> to(4 * size, std::byte{2});
    Samples seconds;
    for (int round = 0; round < kRounds; ++round) {
        const auto begin = Clock::now();
        for (std::size_t at = 0; at + size <= from.size(); at += size) {
            std::memcpy(to.data() + at % to.size(), from.data() + at, size);
            benchmark::ClobberMemory();
        }
        seconds.add(seconds_since(begin));
    }
    return static_cast<double>(kNamespace) / seconds.median();
}

void nvmeof(benchmark::State& state) {
    const auto size = static_cast<std::uint32_t>(state.range(1));
    Initiator initiator(static_cast<std::uint16_t>(state.range(2)), static_cast<std::size_t>(state.range(3)),
                        size, static_cast<std::uint16_t>(state.range(4)));
    const IoOpcode opcode = state.range(0) == 0 ? IoOpcode::Read : IoOpcode::Write;
    const std::uint64_t commands = size >= kMiB ? 2'000 : 100'000;
    initiator.run(opcode, commands);
    for (auto _ : state) {
        Samples seconds;
        Samples cpu;
        for (int round = 0; round < kRounds; ++round) {
            const std::uint64_t before = cpu_time(initiator.server());
            seconds.add(initiator.run(opcode, commands));
            cpu.add(static_cast<double>(cpu_time(initiator.server()) - before));
        }
        const auto count = static_cast<double>(commands);
        state.SetIterationTime(seconds.median());
        state.counters["thousand_per_second"] = count / seconds.median() / 1e3;
        state.counters["gigabytes_per_second"] = count * size / seconds.median() / 1e9;
        state.counters["server_cpu_ns"] = cpu.median() / count;
        if (size >= kMiB) {
            state.counters["measured"] = count * size / seconds.median() / 1e9;
            state.counters["floor"] = copy_speed(size) / 1e9;
            state.counters["ratio"] = state.counters["measured"] / state.counters["floor"];
        }
    }
}
BENCHMARK(nvmeof)
    ->ArgNames({"write", "size", "queues", "mrs", "depth"})
    ->Args({0, 4096, 1, 1, 1})
    ->Args({0, 4096, 1, 1, 32})
    ->Args({1, 4096, 1, 1, 32})
    ->Args({0, 4096, 8, 1, 32})
    ->Args({0, 4096, 64, 1, 32})
    ->Args({0, 4096, 1, 10000, 32})
    ->Args({0, 1 << 20, 1, 1, 8})
    ->Args({1, 1 << 20, 1, 1, 8})
    ->UseManualTime()
    ->Iterations(1);

}  // namespace
}  // namespace ernic::bench
