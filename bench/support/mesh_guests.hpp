// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "guest_sim/guest.hpp"
#include "guest_sim/mesh_server.hpp"

namespace ernic::bench {

namespace sim = guest_sim;

/// Two servers joined by the mesh on loopback, one on each CPU, and their guests in this process, which
/// leaves the CPUs to them as far as it can.
class MeshGuests {
  public:
    struct Options {
        std::uint32_t queue_pairs = 1;
        /// Bytes of each side's memory region.
        std::size_t memory = std::size_t{64} << 20U;
        /// Added to both servers' command lines.
        std::vector<std::string> arguments = {};
    };
    explicit MeshGuests(const Options& options);

    /// Seconds for RC WRITEs of `size` bytes, `total` in all, over the first `queue_pairs` queue pairs in
    /// turn.
    double walk(std::size_t size, std::size_t total, std::uint32_t queue_pairs = 1);
    /// Seconds for one WRITE and its acknowledgement. On the first queue pair, which is alone then, the
    /// caller gives its CPU away while it waits; on any other number, which means one of its own beside the
    /// traffic of the first, it sleeps between its looks, because the CPU is a server's.
    double ping(std::size_t size, std::size_t queue_pair = 0);
    /// Posts one WRITE of the whole region on the first queue pair.
    void begin_large();
    /// Whether that one has not completed yet; completions are taken.
    bool large_under_way();

    [[nodiscard]] pid_t sender() const { return left_server_.pid(); }
    [[nodiscard]] pid_t receiver() const { return right_server_.pid(); }

  private:
    [[nodiscard]] static sim::ServerProcess::Options server(const Options& options,
                                                            const std::string& backend,
                                                            const std::string& mac, int cpu);
    void post(std::size_t queue_pair, std::size_t at, std::size_t size);

    std::string port_;
    sim::ServerProcess left_server_;
    sim::ServerProcess right_server_;
    sim::Guest left_;
    sim::Guest right_;
    sim::CqPtr cq_;
    sim::CqPtr ping_cq_;
    sim::CqPtr peer_cq_;
    std::vector<sim::QpPtr> clients_;
    std::vector<sim::QpPtr> peers_;
    sim::Region from_;
    sim::Region to_;
    bool large_ = false;
};

}  // namespace ernic::bench
