// SPDX-License-Identifier: MIT
#pragma once

#include "nvmeof/work_queue.hpp"

namespace ernic::nvmeof {

/// One at a time, the others in the order in which they came. Thread: device.
class FusedLock {
  public:
    /// True when `owner` has it now, or had it already.
    bool acquire(const Work& owner) {
        if (owner_ == nullptr) {
            owner_ = &owner;
        }
        return owner_ == &owner;
    }
    /// Whoever comes after the owner waits here.
    [[nodiscard]] WorkQueue& waiting() { return waiting_; }
    /// `owner` needs it no longer, if it had it; the next one has it, and goes into
    /// `work`.
    void release(const Work& owner, WorkQueue& work) {
        if (owner_ == &owner) {
            owner_ = nullptr;
            if (!waiting_.empty()) {
                Work& next = waiting_.pop();
                owner_ = &next;
                work.add(next);
            }
        }
    }

  private:
    const Work* owner_ = nullptr;
    WorkQueue waiting_;
};

}  // namespace ernic::nvmeof
