// SPDX-License-Identifier: MIT
#include "rdma/endpoint.hpp"

#include <bit>

namespace ernic::rdma {
namespace {

/// Numbers 0 and 1 are for management (InfiniBand 3.5.3.1).
constexpr std::uint32_t kFirstQpn = 2;
/// Numbers for each queue pair that may exist.
constexpr std::uint32_t kNumbersPerQueuePair = 4;

/// Every address of the process but those of its first page, as it is. Sound because only the service's own
/// queues name addresses (their key 0 is privileged), and they name buffers of the service.
mem::Region own_memory() {
    constexpr std::uint64_t kFirst = 4096;
    constexpr std::uint64_t kEnd = std::uint64_t{1} << 48U;
    return {*Range::make(kFirst, kEnd - kFirst), std::bit_cast<std::byte*>(std::uintptr_t{kFirst}), true,
            true};
}

}  // namespace

Endpoint::Endpoint(net::Segment& segment, EventLoop& loop, const wire::MacAddress& mac, const Limits& limits)
    : limits_(limits),
      engine_({.queue_pairs = kFirstQpn + kNumbersPerQueuePair * limits.queue_pairs,
               .memory_regions = 1 + limits.memory_regions,
               .address_handles = limits.address_handles,
               .page_table_entries = 0},
              memory_, segment, loop),
      last_qpn_(kFirstQpn - 1) {
    memory_.publish({own_memory()});
    memory_.set_enabled(true);
    engine_.set_mac(mac);
}

std::optional<std::uint32_t> Endpoint::free_qpn() {
    if (engine_.queue_pairs() > limits_.queue_pairs) {
        return std::nullopt;
    }
    do {
        if (++last_qpn_ >= engine_.queue_pair_limit()) {
            last_qpn_ = kFirstQpn;
        }
    } while (engine_.find(last_qpn_) != nullptr);
    return last_qpn_;
}

}  // namespace ernic::rdma
