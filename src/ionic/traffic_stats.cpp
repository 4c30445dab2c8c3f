// SPDX-License-Identifier: MIT
#include "ionic/traffic_stats.hpp"

#include <algorithm>
#include <cstddef>

namespace ernic::ionic {

using wire::ionic::LifStat;
using wire::ionic::PortStat;

namespace {

/// LIF counters come in pairs per kind of address.
constexpr unsigned kBytes = 0;
constexpr unsigned kPackets = 1;
/// Largest frame of each size bin; the last bin takes the rest.
constexpr std::array<std::uint64_t, 11> kSizeBins = {63,   64,   127,  255,  511, 1023,
                                                     1518, 2047, 4095, 8191, 9215};

template <std::size_t N>
std::array<le64, N> little_endian(const std::array<std::uint64_t, N>& values) {
    std::array<le64, N> block;
    std::transform(values.begin(), values.end(), block.begin(),
                   [](std::uint64_t value) { return le64(value); });
    return block;
}

}  // namespace

Cast cast_of(const wire::MacAddress& destination) {
    if (!destination.multicast()) {
        return Cast::Unicast;
    }
    const bool broadcast = std::all_of(destination.bytes.begin(), destination.bytes.end(),
                                       [](std::uint8_t byte) { return byte == 0xff; });
    return broadcast ? Cast::Broadcast : Cast::Multicast;
}

std::uint64_t& TrafficStats::lif_at(LifStat first, Cast cast, unsigned which) {
    return lif_[static_cast<std::size_t>(first) + 2U * static_cast<std::size_t>(cast) + which];
}

std::uint64_t& TrafficStats::port_at(PortStat first, unsigned which) {
    return port_[static_cast<std::size_t>(first) + which];
}

void TrafficStats::count_sizes(PortStat first_bin, std::uint64_t packets, std::uint64_t bytes) {
    const std::uint64_t each = packets != 0 ? bytes / packets : 0;
    const auto bin = std::lower_bound(kSizeBins.begin(), kSizeBins.end(), each) - kSizeBins.begin();
    port_at(first_bin, static_cast<unsigned>(bin)) += packets;
}

void TrafficStats::transmitted(Cast cast, std::uint64_t packets, std::uint64_t bytes) {
    lif_at(LifStat::TxUnicastBytes, cast, kBytes) += bytes;
    lif_at(LifStat::TxUnicastBytes, cast, kPackets) += packets;
    port_at(PortStat::FramesTxOk) += packets;
    port_at(PortStat::FramesTxAll) += packets;
    port_at(PortStat::OctetsTxOk) += bytes;
    port_at(PortStat::OctetsTxAll) += bytes;
    port_at(PortStat::FramesTxUnicast, static_cast<unsigned>(cast)) += packets;
    count_sizes(PortStat::FramesTxSizeBins, packets, bytes);
    tx_.frames.add(packets);
    tx_.bytes.add(bytes);
    touch();
}

void TrafficStats::transmit_dropped(Cast cast, std::uint64_t bytes) {
    lif_at(LifStat::TxUnicastDropBytes, cast, kBytes) += bytes;
    lif_at(LifStat::TxUnicastDropBytes, cast, kPackets) += 1;
    tx_.drops.add();
    touch();
}

void TrafficStats::received(Cast cast, std::uint64_t bytes) {
    lif_at(LifStat::RxUnicastBytes, cast, kBytes) += bytes;
    lif_at(LifStat::RxUnicastBytes, cast, kPackets) += 1;
    port_at(PortStat::FramesRxOk) += 1;
    port_at(PortStat::FramesRxAll) += 1;
    port_at(PortStat::OctetsRxOk) += bytes;
    port_at(PortStat::OctetsRxAll) += bytes;
    port_at(PortStat::FramesRxUnicast, static_cast<unsigned>(cast)) += 1;
    count_sizes(PortStat::FramesRxSizeBins, 1, bytes);
    rx_.frames.add();
    rx_.bytes.add(bytes);
    touch();
}

void TrafficStats::receive_dropped(Cast cast, std::uint64_t bytes) {
    lif_at(LifStat::RxUnicastDropBytes, cast, kBytes) += bytes;
    lif_at(LifStat::RxUnicastDropBytes, cast, kPackets) += 1;
    port_at(PortStat::FramesRxDropped) += 1;
    rx_.drops.add();
    touch();
}

void TrafficStats::register_in(metrics::Registry& registry) const {
    registry.add({"ionic.tx.frames", "frames",
                  "Frames the guest transmitted; segments of a TSO packet count one by one."},
                 tx_.frames);
    registry.add({"ionic.tx.bytes", "bytes", "Bytes of those frames, without FCS."}, tx_.bytes);
    registry.add({"ionic.tx.drops", "frames",
                  "Frames dropped because their descriptors made no sense or could not be read."},
                 tx_.drops);
    registry.add({"ionic.rx.frames", "frames", "Frames delivered to the guest."}, rx_.frames);
    registry.add({"ionic.rx.bytes", "bytes", "Bytes of those frames, without FCS."}, rx_.bytes);
    registry.add({"ionic.rx.drops", "frames",
                  "Frames for the guest that found no buffer: the guest is slower than the sender."},
                 rx_.drops);
}

std::array<le64, wire::ionic::kLifStatsCount> TrafficStats::lif_block() const {
    return little_endian(lif_);
}

std::array<le64, wire::ionic::kPortStatsCount> TrafficStats::port_block() const {
    return little_endian(port_);
}

}  // namespace ernic::ionic
