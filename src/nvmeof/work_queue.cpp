// SPDX-License-Identifier: MIT
#include "nvmeof/work_queue.hpp"

#include <cassert>

namespace ernic::nvmeof {

Work::~Work() {
    leave();
}

void Work::leave() {
    if (queue_ != nullptr) {
        queue_->remove(*this);
    }
}

WorkQueue::~WorkQueue() {
    while (!empty()) {
        pop();
    }
}

void WorkQueue::add(Work& work) {
    assert(work.queue_ == nullptr);
    work.queue_ = this;
    work.previous_ = last_;
    work.next_ = nullptr;
    (last_ != nullptr ? last_->next_ : first_) = &work;
    last_ = &work;
}

void WorkQueue::add_first(Work& work) {
    assert(work.queue_ == nullptr);
    work.queue_ = this;
    work.previous_ = nullptr;
    work.next_ = first_;
    (first_ != nullptr ? first_->previous_ : last_) = &work;
    first_ = &work;
}

void WorkQueue::remove(Work& work) {
    assert(work.queue_ == this);
    (work.previous_ != nullptr ? work.previous_->next_ : first_) = work.next_;
    (work.next_ != nullptr ? work.next_->previous_ : last_) = work.previous_;
    work.queue_ = nullptr;
}

Work& WorkQueue::pop() {
    Work& work = *first_;
    remove(work);
    return work;
}

bool WorkQueue::step() {
    if (!empty()) {
        pop().run();
    }
    return !empty();
}

void WorkQueue::append(WorkQueue& other) {
    while (!other.empty()) {
        add(other.pop());
    }
}

}  // namespace ernic::nvmeof
