// SPDX-License-Identifier: MIT
#include <algorithm>

#include "cases.hpp"

namespace {

/// The largest message, its guards and the offsets that cases choose.
constexpr std::size_t kBufferSize = 8 * kMiB + 64 * 1024;

}  // namespace

Context::Context(const Device& device)
    : source(device.pd(), kBufferSize), target(device.pd(), kBufferSize), device_(device) {
}

EndpointOptions Context::options() const {
    EndpointOptions options;
    options.sges = static_cast<std::uint32_t>(std::min(8, device_.attributes().max_sge));
    return options;
}

Pair& Context::shared(std::unique_ptr<Pair>& pair, bool events) {
    if (pair == nullptr) {
        EndpointOptions wanted = options();
        wanted.events = events;
        pair = std::make_unique<Pair>(device_, wanted);
    }
    return *pair;
}

void Context::forget_pairs() {
    pair_.reset();
    event_pair_.reset();
}

const std::vector<SizeEdge>& size_edges() {
    static const std::vector<SizeEdge> edges = {{"0", 0},
                                                {"1", 1},
                                                {"2", 2},
                                                {"63", 63},
                                                {"64", 64},
                                                {"65", 65},
                                                {"mtu-1", std::size_t{0} - 1, true},
                                                {"mtu", 0, true},
                                                {"mtu+1", 1, true},
                                                {"4095", 4095},
                                                {"4096", 4096},
                                                {"4097", 4097},
                                                {"64k-1", 65535},
                                                {"64k", 65536},
                                                {"64k+1", 65537},
                                                {"1m-1", kMiB - 1},
                                                {"1m", kMiB},
                                                {"1m+1", kMiB + 1},
                                                {"8m", 8 * kMiB}};
    return edges;
}
