// SPDX-License-Identifier: MIT
#pragma once

#include "rdma/queue_pair.hpp"

namespace ernic::rdma {

/// Queue pairs in a row, linked by their turn, so that one can leave from anywhere at no cost. A queue pair
/// is in one queue at most. Thread: device. Owns: nothing.
class TurnQueue {
  public:
    [[nodiscard]] bool empty() const { return first_ == nullptr; }
    [[nodiscard]] QueuePair* first() const { return first_; }

    /// Precondition: `qp` is in no queue.
    void push_back(QueuePair& qp) {
        qp.turn = {this, last_, nullptr};
        (last_ != nullptr ? last_->turn.behind : first_) = &qp;
        last_ = &qp;
    }
    /// Precondition: `qp` is in this queue.
    void remove(QueuePair& qp) {
        QueuePair* const before = qp.turn.before;
        QueuePair* const behind = qp.turn.behind;
        (before != nullptr ? before->turn.behind : first_) = behind;
        (behind != nullptr ? behind->turn.before : last_) = before;
        qp.turn = {};
    }
    /// All leave without being looked at: they keep saying that they are in here, and must not be asked.
    void forget() { first_ = last_ = nullptr; }

  private:
    QueuePair* first_ = nullptr;
    QueuePair* last_ = nullptr;
};

}  // namespace ernic::rdma
