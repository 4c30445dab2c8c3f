// SPDX-License-Identifier: MIT
#include <benchmark/benchmark.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "support/cpu.hpp"
#include "support/mesh_guests.hpp"
#include "support/process_probe.hpp"
#include "support/samples.hpp"
#include "support/tcp_pair.hpp"

/// RC WRITE between the guests of two servers joined by the mesh on loopback, beside a plain TCP stream of
/// the same message sizes between two threads on the same two CPUs: no protocol, blocking sockets.
namespace ernic::bench {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20U;
constexpr std::size_t kBuffer = 64 * kMiB;
/// Bytes of one measurement.
constexpr std::size_t kTotal = 256 * kMiB;
constexpr int kRounds = 7;
constexpr std::size_t kSmall = 64;

/// Sleeps until a socket is readable.
class Sleeper {
  public:
    explicit Sleeper(int socket) : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
        epoll_event event{};
        event.events = EPOLLIN;
        sim::require(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket, &event) == 0, "epoll");
    }
    void wait() const {
        epoll_event event{};
        (void)::epoll_wait(epoll_.get(), &event, 1, -1);
    }

  private:
    UniqueFd epoll_;
};

/// The minimal sender and receiver.
class PlainStream {
  public:
    double walk(std::size_t size, std::size_t total) {
        const std::size_t places = kBuffer / size;
        const std::size_t count = total / size;
        const auto begin = Clock::now();
        std::thread sending([&] {
            const OnCpu where(client_cpu());
            for (std::size_t i = 0; i < count; ++i) {
                sim::require(write_all(pair_.client.get(), Bytes(from_).subspan(i % places * size, size)),
                             "write");
            }
            cpu_seconds_[0] += thread_cpu_time();
        });
        std::thread receiving([&] {
            const OnCpu where(server_cpu());
            for (std::size_t i = 0; i < count; ++i) {
                take(pair_.server.get(), &to_[i % places * size], size);
            }
            cpu_seconds_[1] += thread_cpu_time();
        });
        sending.join();
        receiving.join();
        return seconds_since(begin);
    }

    /// Seconds on a CPU that sender (0) and receiver have had in all walks.
    [[nodiscard]] double cpu_seconds(std::size_t side) const { return cpu_seconds_.at(side); }

    /// Seconds of one message there and back, median of many. Both sides sleep in epoll while they wait, as
    /// the servers do, and somebody on the first CPU gives it away again and again, as the driver does.
    double ping(std::size_t size) {
        Samples samples;
        std::atomic<bool> over = false;
        std::thread yielding([&] {
            const OnCpu where(client_cpu());
            while (!over) {
                std::this_thread::yield();
            }
        });
        std::thread echo([&] {
            const OnCpu where(server_cpu());
            std::vector<std::byte> bytes(size);
            const Sleeper sleeper(pair_.server.get());
            for (int i = 0; i < kPings; ++i) {
                sleeper.wait();
                take(pair_.server.get(), bytes.data(), size);
                (void)write_all(pair_.server.get(), bytes);
            }
        });
        std::thread asking([&] {
            const OnCpu where(client_cpu());
            const Sleeper sleeper(pair_.client.get());
            for (int i = 0; i < kPings; ++i) {
                const auto begin = Clock::now();
                (void)write_all(pair_.client.get(), Bytes(from_).first(size));
                sleeper.wait();
                take(pair_.client.get(), to_.data(), size);
                samples.add(seconds_since(begin));
            }
        });
        asking.join();
        echo.join();
        over = true;
        yielding.join();
        return samples.median();
    }

  private:
    static constexpr int kPings = 1000;

    static void take(int fd, std::byte* to, std::size_t size) {
        sim::require(::recv(fd, to, size, MSG_WAITALL) == static_cast<ssize_t>(size), "read");
    }

    std::vector<std::byte> from_ = std::vector<std::byte>(kBuffer, std::byte{1});
    std::vector<std::byte> to_ = std::vector<std::byte>(kBuffer, std::byte{2});
    TcpPair pair_ = loopback_pair();
    std::array<double, 2> cpu_seconds_{};
};

void report(benchmark::State& state, const Samples& measured, const Samples& floor, double unit) {
    state.SetIterationTime(measured.median());
    state.counters["measured"] = unit / measured.median();
    state.counters["floor"] = unit / floor.median();
    state.counters["ratio"] = floor.median() / measured.median();
    state.counters["best_ratio"] = floor.quantile(0) / measured.quantile(0);
}

void bandwidth(benchmark::State& state) {
    const auto size = static_cast<std::size_t>(state.range(0));
    MeshGuests guests({.memory = kBuffer});
    PlainStream stream;
    (void)stream.walk(size, kBuffer);
    for (auto _ : state) {
        Samples measured;
        Samples floor;
        const std::uint64_t sending = cpu_time(guests.sender());
        const std::uint64_t receiving = cpu_time(guests.receiver());
        const std::array<double, 2> plain = {stream.cpu_seconds(0), stream.cpu_seconds(1)};
        for (int round = 0; round < kRounds; ++round) {
            floor.add(stream.walk(size, kTotal));
            measured.add(guests.walk(size, kTotal));
        }
        report(state, measured, floor, static_cast<double>(kTotal) / 1e9);
        const auto bytes = static_cast<double>(kRounds * (kTotal / kMiB));
        const double sender = static_cast<double>(cpu_time(guests.sender()) - sending) / 1e3 / bytes;
        const double receiver = static_cast<double>(cpu_time(guests.receiver()) - receiving) / 1e3 / bytes;
        const double plain_sender = (stream.cpu_seconds(0) - plain[0]) * 1e6 / bytes;
        const double plain_receiver = (stream.cpu_seconds(1) - plain[1]) * 1e6 / bytes;
        state.counters["sender_us_per_mib"] = sender;
        state.counters["receiver_us_per_mib"] = receiver;
        state.counters["plain_sender_us_per_mib"] = plain_sender;
        state.counters["plain_receiver_us_per_mib"] = plain_receiver;
        // What both could reach if each side had a CPU to itself: on a busy machine a better measure.
        state.counters["cpu_ratio"] = std::max(plain_sender, plain_receiver) / std::max(sender, receiver);
    }
}
BENCHMARK(bandwidth)
    ->Name("mesh/write")
    ->Arg(65536)
    ->Arg(1 << 20)
    ->Arg(8 << 20)
    ->UseManualTime()
    ->Iterations(1);

/// Many queue pairs over one connection; the floor is one queue pair over the same one.
void queue_pairs(benchmark::State& state) {
    constexpr std::size_t kSize = 65536;
    const auto count = static_cast<std::uint32_t>(state.range(0));
    MeshGuests guests({.queue_pairs = count, .memory = kBuffer});
    (void)guests.walk(kSize, kTotal, count);
    for (auto _ : state) {
        Samples many;
        Samples one;
        for (int round = 0; round < kRounds; ++round) {
            one.add(guests.walk(kSize, kTotal));
            many.add(guests.walk(kSize, kTotal, count));
        }
        report(state, many, one, static_cast<double>(kTotal) / 1e9);
    }
}
BENCHMARK(queue_pairs)->Name("mesh/queue_pairs")->Arg(1000)->UseManualTime()->Iterations(1);

void latency(benchmark::State& state) {
    MeshGuests guests({.memory = kMiB, .arguments = {"--busy-poll", "0"}});
    PlainStream stream;
    const OnCpu where(client_cpu());
    for (auto _ : state) {
        Samples measured;
        Samples floor;
        for (int round = 0; round < kRounds; ++round) {
            floor.add(stream.ping(kSmall));
            Samples some;
            for (int i = 0; i < 1000; ++i) {
                some.add(guests.ping(kSmall));
            }
            measured.add(some.median());
        }
        state.SetIterationTime(measured.median());
        state.counters["measured"] = measured.median() * 1e6;
        state.counters["floor"] = floor.median() * 1e6;
        state.counters["ratio"] = measured.median() / floor.median();
    }
}
BENCHMARK(latency)->Name("mesh/latency")->UseManualTime()->Iterations(1);

/// How long a small WRITE takes while one of 1 GiB is under way on another queue pair.
void delay(benchmark::State& state) {
    MeshGuests guests({.memory = 1024 * kMiB});
    for (auto _ : state) {
        Samples alone;
        Samples beside;
        for (int i = 0; i < 200; ++i) {
            alone.add(guests.ping(kSmall, 1));
        }
        for (int round = 0; round < 3; ++round) {
            guests.begin_large();
            while (guests.large_under_way()) {
                beside.add(guests.ping(kSmall, 1));
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            }
        }
        state.SetIterationTime(beside.median());
        state.counters["alone_us"] = alone.median() * 1e6;
        state.counters["median_ms"] = beside.median() * 1e3;
        state.counters["p99_ms"] = beside.quantile(0.99) * 1e3;
        state.counters["longest_ms"] = beside.quantile(1) * 1e3;
    }
}
BENCHMARK(delay)->Name("mesh/delay")->UseManualTime()->Iterations(1);

}  // namespace
}  // namespace ernic::bench
