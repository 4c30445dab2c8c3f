// SPDX-License-Identifier: MIT
#include <benchmark/benchmark.h>

#include <array>
#include <cstring>
#include <string>

#include "guest_sim/error.hpp"
#include "guest_sim/ethernet_queues.hpp"
#include "support/bench_guest.hpp"
#include "support/process_probe.hpp"
#include "support/samples.hpp"
#include "wire/ethernet.hpp"

/// The Ethernet path: large TCP packets to a port that takes their bytes, beside memcpy of the same; small
/// frames out of the guest, and out and in again.
namespace ernic::bench {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20U;
constexpr wire::MacAddress kPeer{{0x02, 0, 0, 0, 0, 0x77}};
constexpr int kRounds = 9;

/// An Ethernet header, and for TCP what the driver leaves in a template.
void write_header(const sim::Buffer& at, const wire::MacAddress& source, bool tcp) {
    at.set(wire::EthernetHeader{kPeer, source, be16(tcp ? wire::kEtherTypeIpv4 : 0x88b5)});
    if (!tcp) {
        return;
    }
    wire::Ipv4Header ip{};
    ip.version_ihl = 0x45;
    ip.ttl = 64;
    ip.protocol = wire::kIpProtocolTcp;
    at.set(ip, sizeof(wire::EthernetHeader));
    wire::TcpHeader header{};
    header.data_offset = 0x50;
    at.set(header, sizeof(wire::EthernetHeader) + sizeof ip);
}

/// TSO: headers and 45 segments, a descriptor each.
class LargePackets {
  public:
    static constexpr std::uint16_t kHeader = 54;
    static constexpr std::uint16_t kSegment = 1448;
    static constexpr std::uint32_t kSegments = 45;
    static constexpr std::size_t kPacket = kHeader + std::size_t{kSegments} * kSegment;
    static constexpr std::size_t kStride = 65536;
    static constexpr std::size_t kCount = 64 * kMiB / kStride;

    LargePackets() {
        for (std::size_t i = 0; i < kCount; ++i) {
            write_header(memory_.part(i * kStride, kPacket), guest_->card().mac(), true);
        }
    }
    double measured() {
        constexpr std::size_t kBatch = 16;
        const auto begin = Clock::now();
        for (std::size_t sent = 0; sent < kCount;) {
            while (queues_.reclaim() > 2 * kBatch * kSegments) {
            }
            for (std::size_t i = 0; i < kBatch; ++i, ++sent) {
                sim::require(
                    queues_.stage_super_frame(memory_.part(sent * kStride, kPacket), kHeader, kSegment),
                    "no room in the ring");
            }
            queues_.ring_transmit();
        }
        while (queues_.reclaim() != 0) {
        }
        return seconds_since(begin);
    }
    /// The same bytes by memcpy, into a buffer that stays in the cache, as the port's does.
    double floor() {
        const OnCpu where(server_cpu());
        const auto begin = Clock::now();
        for (std::size_t i = 0; i < kCount; ++i) {
            std::memcpy(sink_.data(), memory_.host + i * kStride, kPacket);
            benchmark::ClobberMemory();
        }
        return seconds_since(begin);
    }
    pid_t server() { return guest_.server().pid(); }

  private:
    BenchGuest guest_{96 * kMiB, {"--target", "null"}};
    sim::EthernetQueues queues_{guest_->card(), {.ring_size_log2 = 12}};
    sim::Buffer memory_ = guest_->allocate(kCount * kStride);
    std::vector<std::byte> sink_ = std::vector<std::byte>(kStride);
};

void super_frames(benchmark::State& state) {
    LargePackets packets;
    packets.measured();
    packets.floor();
    for (auto _ : state) {
        Samples measured;
        Samples floor;
        Samples cpu;
        for (int round = 0; round < kRounds; ++round) {
            floor.add(packets.floor());
            const std::uint64_t before = cpu_time(packets.server());
            measured.add(packets.measured());
            cpu.add(static_cast<double>(cpu_time(packets.server()) - before));
        }
        constexpr auto kBytes = static_cast<double>(LargePackets::kCount * LargePackets::kPacket);
        state.SetIterationTime(measured.median());
        state.counters["measured"] = kBytes / measured.median() / 1e9;
        state.counters["floor"] = kBytes / floor.median() / 1e9;
        state.counters["ratio"] = floor.median() / measured.median();
        state.counters["server_cpu_ns"] = cpu.median() / static_cast<double>(LargePackets::kCount);
    }
}
BENCHMARK(super_frames)->UseManualTime()->Iterations(1);

/// 64-byte frames; with `back` each one returns to the guest.
class SmallFrames {
  public:
    static constexpr std::uint64_t kFrames = 400'000;

    explicit SmallFrames(bool back)
        : back_(back),
          guest_(64 * kMiB, {"--target", back ? "reflect:mac=02:00:00:00:00:77" : "null"}),
          queues_(guest_->card(), {.ring_size_log2 = 12, .receive_size = 128}) {
        write_header(frame_, guest_->card().mac(), false);
    }
    double run() {
        constexpr std::uint32_t kBatch = 64;
        constexpr std::uint32_t kAhead = 1024;
        std::uint64_t sent = 0;
        std::uint64_t received = back_ ? 0 : kFrames;
        const auto begin = Clock::now();
        while (sent < kFrames || received < kFrames || queues_.reclaim() != 0) {
            const bool window = !back_ || sent - received + kBatch <= kAhead;
            if (sent < kFrames && window && queues_.reclaim() + kBatch <= kAhead) {
                for (std::uint32_t i = 0; i < kBatch; ++i) {
                    sim::require(queues_.stage(frame_), "no room in the ring");
                }
                sent += kBatch;
                queues_.ring_transmit();
            }
            std::uint32_t taken = 0;
            while (back_ && taken < kBatch && queues_.receive().size != 0) {
                ++taken;
            }
            received += taken;
            if (taken != 0) {
                queues_.give_back();
            }
        }
        return seconds_since(begin);
    }
    pid_t server() { return guest_.server().pid(); }

  private:
    bool back_;
    BenchGuest guest_;
    sim::EthernetQueues queues_;
    sim::Buffer frame_ = guest_->allocate(64);
};

void small_frames(benchmark::State& state, bool back) {
    SmallFrames frames(back);
    frames.run();
    for (auto _ : state) {
        Samples seconds;
        Samples cpu;
        for (int round = 0; round < kRounds; ++round) {
            const std::uint64_t before = cpu_time(frames.server());
            seconds.add(frames.run());
            cpu.add(static_cast<double>(cpu_time(frames.server()) - before));
        }
        constexpr auto kFrames = static_cast<double>(SmallFrames::kFrames);
        state.SetIterationTime(seconds.median());
        state.counters["million_per_second"] = kFrames / seconds.median() / 1e6;
        state.counters["server_cpu_ns"] = cpu.median() / kFrames;
    }
}
BENCHMARK_CAPTURE(small_frames, out, false)->UseManualTime()->Iterations(1);
BENCHMARK_CAPTURE(small_frames, out_and_in, true)->UseManualTime()->Iterations(1);

}  // namespace
}  // namespace ernic::bench
