// SPDX-License-Identifier: MIT
#pragma once

namespace ernic::nvmeof {

class WorkQueue;

/// Something that is done in pieces. Destroying it takes it out of its queue.
class Work {
  public:
    Work() = default;
    virtual ~Work();
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;

    /// One piece, some tens of microseconds. It is out of the queue by then and may add itself again.
    virtual void run() = 0;
    /// Out of its queue, if it is in one.
    void leave();
    [[nodiscard]] bool queued() const { return queue_ != nullptr; }

  private:
    friend class WorkQueue;
    WorkQueue* queue_ = nullptr;
    Work* previous_ = nullptr;
    Work* next_ = nullptr;
};

/// Work in the order in which it was added; what adds itself again waits behind all others, so that nothing
/// starves. Adding and removing neither allocates nor searches. Thread: device.
class WorkQueue {
  public:
    WorkQueue() = default;
    ~WorkQueue();
    WorkQueue(const WorkQueue&) = delete;
    WorkQueue& operator=(const WorkQueue&) = delete;

    /// Precondition: `work` is in no queue.
    void add(Work& work);
    /// The same, in front of all others.
    void add_first(Work& work);
    void remove(Work& work);
    [[nodiscard]] bool empty() const { return first_ == nullptr; }
    /// Precondition: !empty().
    [[nodiscard]] Work& front() const { return *first_; }
    /// Takes out the first. Precondition: !empty().
    Work& pop();
    /// Runs the first piece of work, if any; true while there is more.
    bool step();
    /// Puts everything of `other` behind what is here.
    void append(WorkQueue& other);

  private:
    Work* first_ = nullptr;
    Work* last_ = nullptr;
};

}  // namespace ernic::nvmeof
