// SPDX-License-Identifier: MIT
#pragma once

#include <unordered_map>
#include <vector>

#include "net/port.hpp"
#include "rdma/turn_queue.hpp"

namespace ernic::rdma {

/// Queue pairs with something to send, each waiting for the port it goes to to become ready. One slow port
/// costs the others nothing, and of those that wait for one port none starves: those that could send nothing
/// in their last turn come before those that have been served. Thread: device. Owns: nothing.
class WaitingRoom {
  public:
    /// Precondition: `qp` is in no queue.
    void add(net::Port& port, QueuePair& qp, bool served);
    /// `port` may be ready.
    void open(net::Port& port);
    /// `port` will never be ready: its queue pairs leave for `ready`, and nothing refers to it any more.
    void close(net::Port& port, TurnQueue& ready);

    /// The next one whose port is ready, which has left the room; null when there is none.
    QueuePair* next();
    /// Perhaps next() finds one.
    [[nodiscard]] bool may_have_one() const { return !open_.empty(); }

    /// All leave, without being looked at (TurnQueue::forget()).
    void forget();

  private:
    struct Row {
        TurnQueue datagrams;
        TurnQueue hungry;
        TurnQueue served;
    };
    /// One of `row` that `port` is ready for.
    static QueuePair* pick(const Row& row, const net::Port& port);

    std::unordered_map<net::Port*, Row> rows_;
    /// Ports to ask, in turns.
    std::vector<net::Port*> open_;
};

}  // namespace ernic::rdma
