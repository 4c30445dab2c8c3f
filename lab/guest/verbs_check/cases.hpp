// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "transfer.hpp"

/// What a case is given. The pairs are shared by the cases that leave them working; a failed case costs them.
class Context {
  public:
    explicit Context(const Device& device);

    [[nodiscard]] const Device& device() const { return device_; }
    [[nodiscard]] std::size_t mtu() const { return device_.mtu(); }
    /// 8 MiB and a bit each.
    Buffer source;
    Buffer target;

    Pair& pair() { return shared(pair_, false); }
    /// The same, waiting by events.
    Pair& event_pair() { return shared(event_pair_, true); }
    void forget_pairs();
    [[nodiscard]] EndpointOptions options() const;

  private:
    Pair& shared(std::unique_ptr<Pair>& pair, bool events);
    const Device& device_;
    std::unique_ptr<Pair> pair_;
    std::unique_ptr<Pair> event_pair_;
};

struct Case {
    std::string name;
    std::function<void(Context&)> run;
};
using Cases = std::vector<Case>;

constexpr std::size_t kMiB = std::size_t{1} << 20U;
/// One name per size edge; the sizes around the MTU are only known once there is a device.
struct SizeEdge {
    const char* name;
    std::size_t size;
    bool of_mtu = false;  ///< `size` is added to the MTU
    [[nodiscard]] std::size_t bytes(std::size_t mtu) const { return of_mtu ? mtu + size : size; }
};
const std::vector<SizeEdge>& size_edges();

void add_transfer_cases(Cases& cases);
void add_queue_cases(Cases& cases);
void add_event_cases(Cases& cases);
void add_atomic_cases(Cases& cases);
void add_memory_cases(Cases& cases);
void add_window_cases(Cases& cases);
void add_datagram_cases(Cases& cases);
void add_error_cases(Cases& cases);
void add_failure_cases(Cases& cases);
void add_extended_cases(Cases& cases);
void add_long_cases(Cases& cases);
/// Up to the limit of 2 GiB.
void add_large_cases(Cases& cases);
/// Transfers with a planted wrong byte that must be found where it was planted.
void add_corruption_cases(Cases& cases);

bool is_soft_roce(const Device& device);
/// Why soft-RoCE cannot pass this case, or null.
const char* soft_roce_gap(const std::string& name);

struct StressOptions {
    unsigned seconds;
    unsigned pairs = 4;
    unsigned window = 8;
    std::uint64_t seed = 1;
};
/// Throws Failure; returns a line that tells what was done.
std::string run_stress(const Device& device, const StressOptions& options);
