// SPDX-License-Identifier: MIT
#include "ionic/event_queue.hpp"

namespace ernic::ionic {

std::optional<std::uint64_t> EventQueue::post(std::uint32_t word) {
    if (!parked_.empty() || producer_ - serviced_ >= ring_.mask()) {
        if (parked_.size() == kParked) {
            lose(word, "the driver does not read them");
            return std::nullopt;
        }
        parked_.push_back(word);
        return passed_ + parked_.size();
    }
    if (!write(word)) {
        return std::nullopt;
    }
    ++passed_;
    interrupts_.post_event(vector_);
    return passed_;
}

bool EventQueue::write(std::uint32_t word) {
    // The first lap carries colour 1; it flips whenever the producer returns to index 0.
    const std::uint32_t color = (producer_ / ring_.depth()) % 2 == 0 ? 1U : 0U;
    const be32 entry(word | color);
    if (!ring_.publish(memory_, producer_, bytes_of(entry))) {
        lose(word, "its ring is not in guest memory");
        return false;
    }
    ++producer_;
    return true;
}

void EventQueue::lose(std::uint32_t word, const char* reason) {
    losses_.events.add();
    losses_.log.warn_limited(losses_.limiter, "event lost vector={} word={:#x}: {}", vector_, word, reason);
}

void EventQueue::serviced() {
    serviced_ = producer_;
    read_ = passed_;
    if (parked_.empty()) {
        return;
    }
    while (!parked_.empty() && producer_ - serviced_ < ring_.mask()) {
        write(parked_.front());
        parked_.pop_front();
        ++passed_;
    }
    interrupts_.post_event(vector_);
}

}  // namespace ernic::ionic
