// SPDX-License-Identifier: MIT
#include <benchmark/benchmark.h>

#include <span>
#include <thread>

#include "support/bench_guest.hpp"
#include "support/samples.hpp"
#include "support/wake_up_floor.hpp"

/// One 64-byte WRITE: from the doorbell message to the completion the guest sees, beside a bare wake-up.
namespace ernic::bench {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20U;
constexpr std::uint32_t kMessage = 64;
constexpr int kSamples = 2000;
/// Long enough for the server's busy-poll window to close and its CPU to go idle.
constexpr std::chrono::microseconds kPause{300};

class Ping {
  public:
    Ping() { std::tie(client_, peer_) = guest_->create_pair(*cq_); }

    /// Seconds from the doorbell to the completion. The request is in the ring already, as a provider does
    /// it.
    double round_trip() {
        client_->stage(sim::SendRequest{.wr_id = 1,
                                        .op = sim::Op::Write,
                                        .sges = {memory_.sge(0, kMessage)},
                                        .remote_va = memory_.va + 4096,
                                        .rkey = memory_.key});
        sim::WorkCompletion completion;
        const auto begin = Clock::now();
        client_->ring_send();
        while (cq_->poll(std::span(&completion, 1)) == 0) {
        }
        return seconds_since(begin);
    }

  private:
    BenchGuest guest_{64 * kMiB};
    sim::CqPtr cq_ = guest_->create_cq();
    sim::QpPtr client_;
    sim::QpPtr peer_;
    sim::Region memory_ = guest_->register_memory(8192);
};

void report(benchmark::State& state, const Samples& measured, const Samples& floor) {
    state.SetIterationTime(measured.median());
    state.counters["measured"] = measured.median() * 1e6;
    state.counters["floor"] = floor.median() * 1e6;
    state.counters["ratio"] = measured.median() / floor.median();
    state.counters["best_ratio"] = measured.quantile(0.1) / floor.quantile(0.1);
    state.counters["p99"] = measured.quantile(0.99) * 1e6;
}

/// Both sides sleep before every sample.
void sleeping(benchmark::State& state) {
    Ping ping;
    WakeUpFloor floor;
    for (auto _ : state) {
        Samples measured;
        Samples bare;
        for (int i = 0; i < kSamples; ++i) {
            std::this_thread::sleep_for(kPause);
            bare.add(floor.round_trip());
            std::this_thread::sleep_for(kPause);
            measured.add(ping.round_trip());
        }
        report(state, measured, bare);
    }
}
BENCHMARK(sleeping)->Name("latency/sleeping")->UseManualTime()->Iterations(1);

/// Within the busy-poll window, beside a child that spins: one that only answers, and one that moves the
/// bytes a device must move. They take turns in blocks, as all need the same CPU.
void busy(benchmark::State& state) {
    Ping ping;
    WakeUpFloor floor;
    constexpr int kBlock = 200;
    for (auto _ : state) {
        Samples measured;
        Samples bare;
        Samples equivalent;
        for (int block = 0; block < 2 * kSamples / kBlock; ++block) {
            floor.set_spinning(true);
            for (int i = 0; i < kBlock; ++i) {
                bare.add(floor.round_trip());
            }
            floor.set_exchanging(true);
            for (int i = 0; i < kBlock; ++i) {
                equivalent.add(floor.exchange());
            }
            floor.set_exchanging(false);
            floor.set_spinning(false);
            ping.round_trip();  // opens the window
            for (int i = 0; i < kBlock; ++i) {
                measured.add(ping.round_trip());
            }
        }
        report(state, measured, equivalent);
        state.counters["bare"] = bare.median() * 1e6;
        state.counters["bare_ratio"] = measured.median() / bare.median();
    }
}
BENCHMARK(busy)->Name("latency/busy_poll")->UseManualTime()->Iterations(1);

}  // namespace
}  // namespace ernic::bench
