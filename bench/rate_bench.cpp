// SPDX-License-Identifier: MIT
#include <benchmark/benchmark.h>
#include <sys/syscall.h>

#include <array>
#include <span>
#include <vector>

#include "guest_sim/error.hpp"
#include "support/bench_guest.hpp"
#include "support/process_probe.hpp"
#include "support/samples.hpp"

/// 64-byte WRITEs, 32 per doorbell: how many per second, what one costs the server, and how that grows with
/// the number of queue pairs and memory regions.
namespace ernic::bench {
namespace {

using sim::Op;

constexpr std::uint32_t kBatch = 32;
constexpr std::uint32_t kMessage = 64;
constexpr std::size_t kMiB = std::size_t{1} << 20U;
/// Batches a queue pair may have under way.
constexpr std::uint32_t kBatchesAhead = 4;
constexpr std::uint32_t kDepth = 255;
constexpr std::uint64_t kRequestsPerRound = 400'000;
constexpr int kRounds = 7;

class Writers {
  public:
    Writers(std::size_t queue_pairs, std::size_t regions) : guest_(ram(queue_pairs)) {
        cq_ = guest_->create_cq({.entries = 16384});
        for (std::size_t i = 0; i < (queue_pairs + 1) / 2; ++i) {
            auto [first, second] = guest_->create_pair(*cq_, {.max_send = kDepth, .max_receive = 15});
            pairs_.push_back(std::move(first));
            if (pairs_.size() < queue_pairs) {
                pairs_.push_back(std::move(second));
            } else {
                idle_ = std::move(second);
            }
        }
        const sim::Buffer memory = guest_->allocate(4 * kMiB);
        for (std::size_t i = 0; i < regions; ++i) {
            regions_.push_back(guest_->register_memory(memory.part(i * kMessage % memory.size, kMessage)));
        }
        under_way_.resize(pairs_.size());
    }

    /// Runs `requests` writes over all queue pairs and regions in turn; returns the seconds they took.
    double run(std::uint64_t requests) {
        std::uint64_t posted = 0;
        std::uint64_t done = 0;
        const std::uint64_t ahead = std::min<std::uint64_t>(pairs_.size() * kBatchesAhead, 256) * kBatch;
        const auto begin = Clock::now();
        while (done < requests) {
            if (posted < requests && posted - done + kBatch <= ahead &&
                under_way_[next_pair_] < kBatchesAhead) {
                post();
                posted += kBatch;
            }
            std::array<sim::WorkCompletion, 16> completions;
            const std::size_t got = cq_->poll(completions);
            for (std::size_t i = 0; i < got; ++i) {
                sim::require(completions[i].status == sim::Status::Ok, "write failed");
                --under_way_[completions[i].wr_id];
                done += kBatch;
            }
        }
        return seconds_since(begin);
    }

    pid_t server() { return guest_.server().pid(); }

  private:
    static std::size_t ram(std::size_t queue_pairs) { return 64 * kMiB + queue_pairs * 32768; }

    /// 32 writes on one queue pair; the last one is signalled.
    void post() {
        sim::QueuePair& qp = *pairs_[next_pair_];
        for (std::uint32_t i = 0; i < kBatch; ++i) {
            const sim::Region& from = regions_[next_region_];
            next_region_ = next_region_ + 1 == regions_.size() ? 0 : next_region_ + 1;
            const sim::Region& to = regions_[next_region_];
            qp.stage(sim::SendRequest{.wr_id = next_pair_,
                                      .op = Op::Write,
                                      .sges = {from.sge(0, kMessage)},
                                      .remote_va = to.va,
                                      .rkey = to.key,
                                      .signalled = i + 1 == kBatch});
        }
        qp.ring_send();
        ++under_way_[next_pair_];
        next_pair_ = next_pair_ + 1 == pairs_.size() ? 0 : next_pair_ + 1;
    }

    BenchGuest guest_;
    sim::CqPtr cq_;
    std::vector<sim::QpPtr> pairs_;
    sim::QpPtr idle_;
    std::vector<sim::Region> regions_;
    std::vector<std::uint32_t> under_way_;
    std::size_t next_pair_ = 0;
    std::size_t next_region_ = 0;
};

void rate(benchmark::State& state) {
    Writers writers(static_cast<std::size_t>(state.range(0)), static_cast<std::size_t>(state.range(1)));
    writers.run(kRequestsPerRound);
    for (auto _ : state) {
        Samples seconds;
        Samples cpu;
        for (int round = 0; round < kRounds; ++round) {
            const std::uint64_t before = cpu_time(writers.server());
            seconds.add(writers.run(kRequestsPerRound));
            cpu.add(static_cast<double>(cpu_time(writers.server()) - before));
        }
        const auto requests = static_cast<double>(kRequestsPerRound);
        state.SetIterationTime(seconds.median());
        state.counters["million_per_second"] = requests / seconds.median() / 1e6;
        state.counters["best_million_per_second"] = requests / seconds.quantile(0) / 1e6;
        state.counters["server_cpu_ns"] = cpu.median() / requests;
    }
}
BENCHMARK(rate)
    ->ArgNames({"qps", "mrs"})
    ->Args({1, 10})
    ->Args({10, 10})
    ->Args({100, 10})
    ->Args({1000, 10})
    ->Args({1, 1000})
    ->Args({1, 50000})
    ->UseManualTime()
    ->Iterations(1);

/// System calls of the server per doorbell of 32 requests, when it sleeps between doorbells.
void system_calls(benchmark::State& state) {
    BenchGuest guest(64 * kMiB, {"--busy-poll", "0"});
    const auto cq = guest->create_cq();
    const auto [client, peer] = guest->create_pair(*cq);
    const sim::Region memory = guest->register_memory(8192);
    const auto batch = [&, &client = client] {
        for (std::uint32_t i = 0; i < kBatch; ++i) {
            client->stage(sim::SendRequest{.wr_id = 0,
                                           .op = Op::Write,
                                           .sges = {memory.sge(0, kMessage)},
                                           .remote_va = memory.va + 4096,
                                           .rkey = memory.key,
                                           .signalled = i + 1 == kBatch});
        }
        client->ring_send();
    };
    batch();
    cq->wait();  // the one event of a queue that is born armed
    for (auto _ : state) {
        constexpr std::uint64_t kBatches = 200;
        SyscallCounter counter(guest.server().pid());
        if (!counter.attached()) {
            state.SkipWithError("not allowed to trace the server");
            break;
        }
        std::uint64_t done = 0;
        batch();
        sim::WorkCompletion completion;
        const auto calls = counter.count_until([&] {
            if (cq->poll(std::span(&completion, 1)) == 1) {
                if (++done < kBatches) {
                    batch();
                }
            }
            return done == kBatches;
        });
        std::uint64_t all = 0;
        for (const auto& [number, count] : calls) {
            all += count;
        }
        const auto per_batch = [&](long number) {
            const auto found = calls.find(number);
            return found == calls.end() ? 0.0
                                        : static_cast<double>(found->second) / static_cast<double>(kBatches);
        };
        state.counters["all"] = static_cast<double>(all) / static_cast<double>(kBatches);
        state.counters["recvmsg"] = per_batch(SYS_recvmsg);
        state.counters["epoll"] =
            per_batch(SYS_epoll_pwait2) + per_batch(SYS_epoll_pwait) + per_batch(SYS_epoll_wait);
        state.SetIterationTime(1e-9);
    }
}
BENCHMARK(system_calls)->UseManualTime()->Iterations(1);

}  // namespace
}  // namespace ernic::bench
