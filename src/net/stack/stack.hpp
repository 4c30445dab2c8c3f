// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>

#include "base/event_loop.hpp"
#include "base/log.hpp"
#include "metrics/registry.hpp"

namespace ernic::net::stack {

/// What the whole stack may use.
struct Limits {
    /// Bytes of frames that wait or are kept (being reassembled, out of order, not yet read, not yet sent),
    /// and of connections.
    std::size_t memory = std::size_t{32} << 20U;

    /// What one connection may hold, both ways: a window of 64 KiB each, and its bookkeeping.
    static constexpr std::size_t kConnection = std::size_t{160} << 10U;
    /// Half of the memory is for connections, the other for frames.
    [[nodiscard]] std::size_t connections() const { return memory / 2 / kConnection; }
    [[nodiscard]] std::size_t frame_bytes() const { return memory / 2; }
};

/// Numbers of the stack, which are there (and zero) without one too.
struct Counters {
    metrics::Counter frames_taken;
    metrics::Counter not_for_us;
    metrics::Counter unwanted;
    metrics::Counter malformed;
    metrics::Counter no_memory;
    metrics::Counter queue_full;
    metrics::Counter frames_sent;
    metrics::Counter not_ours;
    metrics::Counter unresolved;
    metrics::Counter send_queue_full;
    metrics::Counter pauses;
    metrics::Counter connections_accepted;
    metrics::Counter connections_refused;
    metrics::Counter connections_lost;
    metrics::Counter timer_ticks;

    void register_metrics(metrics::Registry& registry) const;
};

class Core;

/// The IP stack that all hosts of the process share: ARP, IPv4, IPv6 with neighbour discovery, ICMP, UDP,
/// TCP. It is Debian's lwIP, driven from the device thread without a thread of its own. lwIP's state is
/// global, so there is at most one Stack at a time. Hosts, sockets and connections must not outlive it.
///
/// Its timers run only while a connection is open or a neighbour is being looked for; what has aged meanwhile
/// is made up for when the next frame comes. Thread: device.
class Stack {
  public:
    /// All references must outlive this.
    Stack(EventLoop& loop, Counters& counters, const log::Logger& log, const Limits& limits = {});
    ~Stack();
    Stack(const Stack&) = delete;
    Stack& operator=(const Stack&) = delete;

    /// One budgeted piece of work: frames that have come in, what they mean to sockets and connections, and
    /// frames that wait for room. To be called by the loop's worker. True when there was some.
    bool step();

    /// Bytes of received frames that are kept now.
    [[nodiscard]] std::size_t memory_in_use() const;
    /// Some timer is armed: there is a connection or a neighbour to look after.
    [[nodiscard]] bool timer_armed() const;

  private:
    friend class Host;
    std::unique_ptr<Core> core_;
};

}  // namespace ernic::net::stack
