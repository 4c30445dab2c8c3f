// SPDX-License-Identifier: MIT
#include "guest_sim/event_queue.hpp"

#include <unistd.h>

#include <atomic>

#include "guest_sim/error.hpp"

namespace ernic::guest_sim {
namespace {

constexpr std::uint32_t kDepth = 1U << EventQueue::kDepthLog2;
/// Events one interrupt handler reads before it leaves the rest to deferred work.
constexpr std::uint32_t kIsrBudget = 10;
constexpr std::uint8_t kStrideLog2 = 2;

}  // namespace

EventQueue::EventQueue(Card& card, std::uint32_t id, std::uint32_t vector)
    : card_(card),
      id_(id),
      vector_(vector),
      eventfd_(card.vector_eventfd(vector)),
      ring_(card.ram().allocate(kDepth * sizeof(be32))) {
    card_.prepare_event_vector(vector);
    wire::ionic::RdmaQueueCommand command{};
    command.opcode = static_cast<std::uint8_t>(wire::ionic::Opcode::RdmaCreateEventQueue);
    command.qid_ver.set(id);
    command.cid.set(vector);
    command.depth_log2 = kDepthLog2;
    command.stride_log2 = kStrideLog2;
    command.dma_addr.set(ring_.iova);
    require(card_.admin(command).status == 0, "CREATE_EQ failed");
    card_.unmask_vector(vector);
}

bool EventQueue::read_one() {
    auto* const slot = reinterpret_cast<std::uint32_t*>(ring_.host + consumer_ % kDepth * sizeof(be32));
    const std::uint32_t word =
        byte_swap(std::atomic_ref<std::uint32_t>(*slot).load(std::memory_order_acquire));
    const std::uint32_t color = consumer_ / kDepth % 2 == 0 ? 1 : 0;
    if ((word & 1U) != color) {
        return false;
    }
    ++consumer_;
    events_.push_back({static_cast<wire::ionic_rdma::EventType>(word >> 1U & 7U),
                       static_cast<std::uint8_t>(word >> 4U & 0xfU), word >> 8U});
    return true;
}

void EventQueue::service() {
    std::uint64_t count = 0;
    if (::read(eventfd_, &count, sizeof(count)) != sizeof(count)) {
        return;
    }
    ++interrupts_;
    for (;;) {
        std::uint32_t found = 0;
        while (found < kIsrBudget && read_one()) {
            ++found;
        }
        if (found < kIsrBudget) {
            card_.return_credits(vector_, 0, true);
            return;
        }
        card_.return_credits(vector_, found, false);
    }
}

std::optional<Event> EventQueue::wait(std::chrono::nanoseconds patience) {
    wait_until(
        [this] {
            if (events_.empty()) {
                service();
            }
            return !events_.empty();
        },
        patience);
    if (events_.empty()) {
        return std::nullopt;
    }
    const Event event = events_.front();
    events_.pop_front();
    return event;
}

bool EventQueue::wait_for(const Event& wanted, std::chrono::nanoseconds patience) {
    while (const auto event = wait(patience)) {
        if (*event == wanted) {
            return true;
        }
    }
    return false;
}

bool EventQueue::silent(std::chrono::milliseconds quiet) {
    return !wait(quiet).has_value();
}

void EventQueue::discard() {
    service();
    events_.clear();
}

}  // namespace ernic::guest_sim
