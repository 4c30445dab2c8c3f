// SPDX-License-Identifier: MIT
#include "net/stack/stack.hpp"

#include "net/stack/core.hpp"

namespace ernic::net::stack {

Stack::Stack(EventLoop& loop, Counters& counters, const log::Logger& log, const Limits& limits)
    : core_(std::make_unique<Core>(loop, counters, log, limits)) {
}

Stack::~Stack() = default;

bool Stack::step() {
    return core_->step();
}

std::size_t Stack::memory_in_use() const {
    return core_->memory_in_use();
}

bool Stack::timer_armed() const {
    return core_->timer_armed();
}

void Counters::register_metrics(metrics::Registry& registry) const {
    registry.add({"stack.frames_taken", "frames", "frames for a service's host that reached its IP stack"},
                 frames_taken);
    registry.add(
        {"stack.not_for_us", "frames",
         "frames a host ignored: for other addresses, broadcasts, tagged, protocols it does not speak"},
        not_for_us);
    registry.add(
        {"stack.unwanted", "frames",
         "frames to a host dropped for what they are: IP options, odd ICMP types, impossible sources; "
         "high: somebody probes the services"},
        unwanted);
    registry.add({"stack.malformed", "frames", "frames to a host that were cut short or made no sense"},
                 malformed);
    registry.add({"stack.no_memory", "frames",
                  "frames dropped because the stack's memory was used up; high: readers are too slow, or "
                  "somebody sends fragments and gaps"},
                 no_memory);
    registry.add({"stack.queue_full", "frames", "frames dropped because too many waited for the stack"},
                 queue_full);
    registry.add({"stack.frames_sent", "frames", "frames the hosts have sent"}, frames_sent);
    registry.add({"stack.not_ours", "packets",
                  "packets the stack wanted to send from an address that no host has, dropped; never"},
                 not_ours);
    registry.add({"stack.unresolved", "packets",
                  "packets dropped because their receiver's MAC address was not known, or no router"},
                 unresolved);
    registry.add(
        {"stack.send_queue_full", "frames", "frames dropped because the receivers had no room for too long"},
        send_queue_full);
    registry.add({"stack.pauses", "times", "sending waited for room in the guest's receive queues"}, pauses);
    registry.add({"stack.connections_accepted", "connections", "TCP connections opened"},
                 connections_accepted);
    registry.add({"stack.connections_refused", "connections",
                  "TCP connections not answered because as many were open as memory allows"},
                 connections_refused);
    registry.add({"stack.connections_lost", "connections",
                  "TCP connections reset by the peer, or given up because it did not answer"},
                 connections_lost);
    registry.add(
        {"stack.timer_ticks", "times", "runs of the TCP timer, four a second while a connection is open"},
        timer_ticks);
}

}  // namespace ernic::net::stack
