// SPDX-License-Identifier: MIT
#include <arpa/inet.h>
#include <benchmark/benchmark.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.hpp"
#include "guest_sim/mesh_server.hpp"
#include "support/bench_guest.hpp"
#include "support/samples.hpp"

/// RC WRITE between the guests of two servers joined by the mesh on loopback, beside a plain TCP stream of
/// the same message sizes between two threads: no protocol, blocking sockets, the same buffers' size.
namespace ernic::bench {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20U;
constexpr std::size_t kBuffer = 64 * kMiB;
constexpr std::size_t kAhead = 16 * kMiB;
constexpr std::uint32_t kDepth = 128;
constexpr int kRounds = 7;

std::pair<UniqueFd, UniqueFd> tcp_pair() {
    const UniqueFd listener(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const raw = reinterpret_cast<sockaddr*>(&address);
    sim::require(::bind(listener.get(), raw, size) == 0 && ::listen(listener.get(), 1) == 0 &&
                     ::getsockname(listener.get(), raw, &size) == 0,
                 "a listening socket");
    UniqueFd client(::socket(AF_INET, SOCK_STREAM, 0));
    sim::require(::connect(client.get(), raw, size) == 0, "a connection");
    UniqueFd server(::accept(listener.get(), nullptr, nullptr));
    const int on = 1;
    for (const int fd : {client.get(), server.get()}) {
        (void)::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    return {std::move(client), std::move(server)};
}

/// The minimal sender and receiver.
class PlainStream {
  public:
    PlainStream() : from_(kBuffer, std::byte{1}), to_(kBuffer, std::byte{2}) {
        std::tie(sender_, receiver_) = tcp_pair();
    }

    double walk(std::size_t size) {
        const auto begin = Clock::now();
        std::thread sending([&] {
            const OnCpu where(client_cpu());
            for (std::size_t at = 0; at < kBuffer; at += size) {
                sim::require(write_all(sender_.get(), Bytes(from_).subspan(at, size)), "write");
            }
        });
        {
            const OnCpu where(server_cpu());
            for (std::size_t at = 0; at < kBuffer; at += size) {
                sim::require(
                    ::recv(receiver_.get(), to_.data() + at, size, MSG_WAITALL) == static_cast<ssize_t>(size),
                    "read");
            }
        }
        sending.join();
        return seconds_since(begin);
    }

    /// One message there and back, neither side sleeping.
    double ping(std::size_t size) {
        const auto begin = Clock::now();
        std::thread echo([&] { pass(receiver_.get(), size, 1); });
        for (int i = 0; i < kPings; ++i) {
            (void)::send(sender_.get(), from_.data(), size, 0);
            take(sender_.get(), size);
        }
        echo.join();
        return seconds_since(begin) / kPings;
    }

  private:
    static constexpr int kPings = 2000;

    void take(int fd, std::size_t size) {
        while (::recv(fd, to_.data(), size, MSG_DONTWAIT) <= 0) {
        }
    }
    void pass(int fd, std::size_t size, int) {
        const OnCpu where(server_cpu());
        std::vector<std::byte> bytes(size);
        for (int i = 0; i < kPings; ++i) {
            while (::recv(fd, bytes.data(), size, MSG_DONTWAIT) <= 0) {
            }
            (void)::send(fd, bytes.data(), size, 0);
        }
    }

    std::vector<std::byte> from_;
    std::vector<std::byte> to_;
    UniqueFd sender_;
    UniqueFd receiver_;
};

/// Two servers, one on each CPU, and their guests in this process.
class TwoGuests {
  public:
    explicit TwoGuests(std::uint32_t queue_pairs)
        : port_(std::to_string(guest_sim::manager_port())),
          left_server_(
              {{"--backend", "tcp:manager:listen:" + port_, "--mac", "02:00:00:00:00:01"}, client_cpu()}),
          right_server_(
              {{"--backend", "tcp:worker:127.0.0.1:" + port_, "--mac", "02:00:00:00:00:02"}, server_cpu()}) {
        cq_ = left_.create_cq({.entries = 4 * kDepth});
        peer_cq_ = right_.create_cq();
        sim::ConnectionOptions to_right;
        to_right.peer = right_.card().mac();
        sim::ConnectionOptions to_left;
        to_left.peer = left_.card().mac();
        for (std::uint32_t i = 0; i < queue_pairs; ++i) {
            clients_.push_back(left_.create_qp(*cq_, {.max_send = kDepth}));
            peers_.push_back(right_.create_qp(*peer_cq_, {.max_send = 16}));
            right_.make_ready(*peers_.back(), clients_.back()->qpn(), to_left);
            left_.make_ready(*clients_.back(), peers_.back()->qpn(), to_right);
        }
        // The mesh stands when the first message gets through.
        (void)walk(kMiB);
    }

    double walk(std::size_t size) {
        const std::size_t count = kBuffer / size;
        const std::size_t ahead = std::clamp<std::size_t>(kAhead / size, 2, kDepth - 1);
        std::size_t posted = 0;
        std::size_t done = 0;
        const auto begin = Clock::now();
        while (done < count) {
            while (posted < count && posted < done + ahead) {
                const std::size_t at = posted * size;
                sim::QueuePair& client = *clients_[posted % clients_.size()];
                client.post_send({.wr_id = 1,
                                  .op = sim::Op::Write,
                                  .sges = {from_.sge(at, size)},
                                  .remote_va = to_.va + at,
                                  .rkey = to_.key});
                ++posted;
            }
            std::array<sim::WorkCompletion, 32> completions;
            const std::size_t got = cq_->poll(completions);
            for (std::size_t i = 0; i < got; ++i) {
                sim::require(completions[i].status == sim::Status::Ok, "transfer failed");
            }
            done += got;
        }
        return seconds_since(begin);
    }

    /// One write and its acknowledgement.
    double ping(std::size_t size) {
        clients_[0]->stage(sim::SendRequest{.wr_id = 1,
                                            .op = sim::Op::Write,
                                            .sges = {from_.sge(0, size)},
                                            .remote_va = to_.va,
                                            .rkey = to_.key});
        sim::WorkCompletion completion;
        const auto begin = Clock::now();
        clients_[0]->ring_send();
        while (cq_->poll(std::span(&completion, 1)) == 0) {
        }
        return seconds_since(begin);
    }

  private:
    std::string port_;
    sim::ServerProcess left_server_;
    sim::ServerProcess right_server_;
    sim::Guest left_{left_server_, 2 * kBuffer};
    sim::Guest right_{right_server_, 2 * kBuffer};
    sim::CqPtr cq_;
    sim::CqPtr peer_cq_;
    std::vector<sim::QpPtr> clients_;
    std::vector<sim::QpPtr> peers_;
    sim::Region from_ = left_.register_memory(kBuffer);
    sim::Region to_ = right_.register_memory(kBuffer);
};

void report(benchmark::State& state, const Samples& measured, const Samples& floor, double unit) {
    state.SetIterationTime(measured.median());
    state.counters["measured"] = unit / measured.median();
    state.counters["floor"] = unit / floor.median();
    state.counters["ratio"] = floor.median() / measured.median();
    state.counters["best_ratio"] = floor.quantile(0) / measured.quantile(0);
}

void mesh_bandwidth(benchmark::State& state) {
    const auto size = static_cast<std::size_t>(state.range(0));
    TwoGuests guests(static_cast<std::uint32_t>(state.range(1)));
    PlainStream stream;
    (void)stream.walk(size);
    for (auto _ : state) {
        Samples measured;
        Samples floor;
        for (int round = 0; round < kRounds; ++round) {
            floor.add(stream.walk(size));
            measured.add(guests.walk(size));
        }
        report(state, measured, floor, static_cast<double>(kBuffer) / 1e9);
    }
}

void mesh_latency(benchmark::State& state) {
    TwoGuests guests(1);
    PlainStream stream;
    for (auto _ : state) {
        Samples measured;
        Samples floor;
        for (int i = 0; i < 4000; ++i) {
            measured.add(guests.ping(64));
        }
        for (int i = 0; i < 5; ++i) {
            floor.add(stream.ping(64));
        }
        state.SetIterationTime(measured.median());
        state.counters["measured"] = measured.median() * 1e6;
        state.counters["floor"] = floor.median() * 1e6;
        state.counters["ratio"] = measured.median() / floor.median();
    }
}

BENCHMARK(mesh_bandwidth)
    ->Args({65536, 1})
    ->Args({1 << 20, 1})
    ->Args({8 << 20, 1})
    ->Args({65536, 256})
    ->UseManualTime()
    ->Iterations(1);
BENCHMARK(mesh_latency)->UseManualTime()->Iterations(1);

}  // namespace
}  // namespace ernic::bench
