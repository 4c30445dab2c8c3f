// SPDX-License-Identifier: MIT
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string>

#include "support/bench_guest.hpp"
#include "support/process_probe.hpp"
#include "support/samples.hpp"

/// RC bandwidth beside memcpy of the same sizes between the same buffers, on the server's CPU, in turns.
namespace ernic::bench {
namespace {

using sim::Op;

constexpr std::size_t kMiB = std::size_t{1} << 20U;
/// Larger than the caches: an application's data is not in the server's L1. Each round walks over all of it.
constexpr std::size_t kBuffer = 64 * kMiB;
constexpr int kRounds = 15;
/// Requests per doorbell of small messages, and bytes posted ahead of large ones.
constexpr std::size_t kBatch = 32;
constexpr std::size_t kAhead = 16 * kMiB;
constexpr std::uint32_t kDepth = 255;

class Transfer {
  public:
    /// `hot`: the same two places again and again instead of a walk over the buffers.
    Transfer(Op op, std::size_t size, bool hot) : op_(op), size_(size), hot_(hot) {
        cq_ = guest_->create_cq({.entries = 4 * kDepth});
        std::tie(client_, peer_) = guest_->create_pair(*cq_, {.max_send = kDepth, .max_receive = kDepth});
        from_.memory.fill(1);
        to_.memory.fill(2);
    }

    /// Seconds for one walk.
    double measured() {
        const std::size_t count = kBuffer / size_;
        const std::size_t ahead = std::clamp<std::size_t>(kAhead / size_, 2, kDepth - kBatch);
        const std::size_t batch = std::min(kBatch, std::max<std::size_t>(1, ahead / 4));
        std::size_t posted = 0;
        std::size_t sent = 0;
        std::size_t received = op_ == Op::Send ? 0 : count;
        const auto begin = Clock::now();
        while (std::min(sent, received) < count) {
            while (posted < count && posted + batch <= std::min(sent, received) + ahead) {
                post(posted, std::min(batch, count - posted));
                posted += std::min(batch, count - posted);
            }
            std::array<sim::WorkCompletion, 32> completions;
            const std::size_t got = cq_->poll(completions);
            for (std::size_t i = 0; i < got; ++i) {
                sim::require(completions[i].status == sim::Status::Ok, "transfer failed");
                (completions[i].receive ? received : sent) += completions[i].wr_id;
            }
        }
        return seconds_since(begin);
    }

    /// Seconds for the same walk with memcpy.
    double floor() {
        const OnCpu where(server_cpu());
        const std::size_t count = kBuffer / size_;
        const auto begin = Clock::now();
        for (std::size_t i = 0; i < count; ++i) {
            std::memcpy(to_.memory.host + place(i), from_.memory.host + place(i), size_);
            benchmark::ClobberMemory();
        }
        return seconds_since(begin);
    }

    pid_t server() { return guest_.server().pid(); }

  private:
    [[nodiscard]] std::size_t place(std::size_t i) const { return hot_ ? 0 : i * size_; }

    /// One doorbell's worth of requests; the last one is signalled and carries their number, a receive its
    /// own.
    void post(std::size_t first, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
            const bool reads = op_ == Op::Read;
            const std::size_t at = place(first + i);
            if (op_ == Op::Send) {
                peer_->stage(sim::ReceiveRequest{.wr_id = 1, .sges = {to_.sge(at, size_)}});
            }
            client_->stage(sim::SendRequest{.wr_id = count,
                                            .op = op_,
                                            .sges = {(reads ? to_ : from_).sge(at, size_)},
                                            .remote_va = (reads ? from_ : to_).va + at,
                                            .rkey = (reads ? from_ : to_).key,
                                            .signalled = i + 1 == count});
        }
        if (op_ == Op::Send) {
            peer_->ring_receive();
        }
        client_->ring_send();
    }

    Op op_;
    std::size_t size_;
    bool hot_;
    BenchGuest guest_{3 * kBuffer};
    sim::CqPtr cq_;
    sim::QpPtr client_;
    sim::QpPtr peer_;
    sim::Region from_ = guest_->register_memory(kBuffer);
    sim::Region to_ = guest_->register_memory(kBuffer);
};

void bandwidth(benchmark::State& state, Op op, bool hot) {
    const auto size = static_cast<std::size_t>(state.range(0));
    Transfer transfer(op, size, hot);
    transfer.measured();  // page tables of both sides
    transfer.floor();
    for (auto _ : state) {
        Samples measured;
        Samples floor;
        Samples server_cpu;
        Samples floor_cpu;
        for (int round = 0; round < kRounds; ++round) {
            const double thread_begin = thread_cpu_time();
            floor.add(transfer.floor());
            floor_cpu.add(thread_cpu_time() - thread_begin);
            const std::uint64_t server_begin = cpu_time(transfer.server());
            measured.add(transfer.measured());
            server_cpu.add(static_cast<double>(cpu_time(transfer.server()) - server_begin) / 1e9);
        }
        const auto bytes = static_cast<double>(kBuffer);
        state.SetIterationTime(measured.median());
        state.counters["measured"] = bytes / measured.median() / 1e9;
        state.counters["floor"] = bytes / floor.median() / 1e9;
        state.counters["ratio"] = floor.median() / measured.median();
        state.counters["best_ratio"] = floor.quantile(0) / measured.quantile(0);
        // The same in CPU time, which other programs on the machine disturb less.
        state.counters["server_cpu_ns"] = server_cpu.median() * 1e9 * static_cast<double>(size) / bytes;
        state.counters["floor_cpu_ns"] = floor_cpu.median() * 1e9 * static_cast<double>(size) / bytes;
        state.counters["cpu_ratio"] = floor_cpu.median() / server_cpu.median();
    }
}

BENCHMARK_CAPTURE(bandwidth, write, Op::Write, false)
    ->Arg(4096)
    ->Arg(65536)
    ->Arg(1 << 20)
    ->Arg(8 << 20)
    ->UseManualTime()
    ->Iterations(1);
BENCHMARK_CAPTURE(bandwidth, send, Op::Send, false)
    ->Arg(4096)
    ->Arg(65536)
    ->Arg(1 << 20)
    ->Arg(8 << 20)
    ->UseManualTime()
    ->Iterations(1);
BENCHMARK_CAPTURE(bandwidth, read, Op::Read, false)
    ->Arg(4096)
    ->Arg(65536)
    ->Arg(1 << 20)
    ->Arg(8 << 20)
    ->UseManualTime()
    ->Iterations(1);
BENCHMARK_CAPTURE(bandwidth, write_cached, Op::Write, true)
    ->Arg(4096)
    ->Arg(65536)
    ->Arg(1 << 20)
    ->Arg(8 << 20)
    ->UseManualTime()
    ->Iterations(1);

}  // namespace
}  // namespace ernic::bench
