// SPDX-License-Identifier: MIT
#include <benchmark/benchmark.h>

#include <thread>

#include "support/bench_guest.hpp"
#include "support/process_probe.hpp"
#include "support/samples.hpp"

/// What the server costs when nothing happens.
namespace ernic::bench {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20U;
constexpr std::chrono::seconds kIdleTime{3};

void idle(benchmark::State& state) {
    BenchGuest guest(64 * kMiB);
    const auto cq = guest->create_cq();
    const auto pair = guest->create_pair(*cq);
    for (auto _ : state) {
        // Timers of the start (statistics of the link, for example) may still be due.
        std::this_thread::sleep_for(std::chrono::milliseconds(500));
        const std::uint64_t wakes = wake_ups(guest.server().pid());
        const std::uint64_t cpu = cpu_time(guest.server().pid());
        std::this_thread::sleep_for(kIdleTime);
        const auto seconds = static_cast<double>(kIdleTime.count());
        state.counters["wake_ups_per_second"] =
            static_cast<double>(wake_ups(guest.server().pid()) - wakes) / seconds;
        state.counters["cpu_us_per_second"] =
            static_cast<double>(cpu_time(guest.server().pid()) - cpu) / 1e3 / seconds;
        state.counters["resident_mib"] =
            static_cast<double>(resident_bytes(guest.server().pid())) / static_cast<double>(kMiB);
        state.SetIterationTime(seconds);
    }
}
BENCHMARK(idle)->UseManualTime()->Iterations(1);

void start(benchmark::State& state) {
    for (auto _ : state) {
        Samples times;
        for (int i = 0; i < 11; ++i) {
            const OnCpu where(client_cpu());
            const sim::ServerProcess server;
            times.add(std::chrono::duration<double>(server.start_time()).count());
        }
        state.SetIterationTime(times.median());
        state.counters["milliseconds"] = times.median() * 1e3;
        state.counters["best_milliseconds"] = times.quantile(0) * 1e3;
    }
}
BENCHMARK(start)->UseManualTime()->Iterations(1);

}  // namespace
}  // namespace ernic::bench
