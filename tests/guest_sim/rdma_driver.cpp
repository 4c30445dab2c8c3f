// SPDX-License-Identifier: MIT
#include "guest_sim/rdma_driver.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <string>

#include "guest_sim/error.hpp"
#include "guest_sim/wait.hpp"

namespace ernic::guest_sim {
namespace {

namespace rdma_wire = wire::ionic_rdma;
using rdma_wire::AdminOp;

constexpr std::uint8_t kAdminDepthLog2 = 9;
constexpr std::uint32_t kAdminDepth = 1U << kAdminDepthLog2;
constexpr std::uint8_t kAdminStrideLog2 = 6;
constexpr std::uint8_t kAdminCqDepthLog2 = 8;
constexpr std::uint32_t kAdminCqDepth = 1U << kAdminCqDepthLog2;
constexpr std::uint8_t kCqeStrideLog2 = 5;
constexpr std::uint32_t kAdminQueue = 0;
/// Vector 0 is the AdminQ's.
constexpr std::uint32_t kFirstEventVector = 1;

constexpr std::uint32_t slots_of(std::size_t body) {
    return static_cast<std::uint32_t>(
        (sizeof(rdma_wire::AdminHeader) + body + rdma_wire::kAdminSlotSize - 1) / rdma_wire::kAdminSlotSize);
}

}  // namespace

RdmaDriver::RdmaDriver(Card& card)
    : card_(card),
      udma_shift_(card.lif().rdma.udma_shift),
      queue_pair_ids_(card.lif().rdma.send_queues.count.get(), udma_shift_),
      completion_queue_ids_(card.lif().rdma.completion_queues.count.get(), udma_shift_),
      queue_pairs_(card.lif().rdma.send_queues.count.get(), nullptr) {
    reset_lif();
    for (std::uint32_t id = 0; id < kEventQueues; ++id) {
        event_queues_.push_back(std::make_unique<EventQueue>(card_, id, kFirstEventVector + id));
    }
    // 0 and 1 are the management QPs.
    queue_pair_ids_.reserve(0);
    queue_pair_ids_.reserve(1);
    create_admin_queue();
}

void RdmaDriver::reset_lif() {
    wire::ionic::Command command{};
    command.opcode = static_cast<std::uint8_t>(wire::ionic::Opcode::RdmaResetLif);
    require(card_.admin(command).status == 0, "RDMA_RESET_LIF failed");
}

void RdmaDriver::create_admin_queue() {
    admin_cq_ = completion_queue_ids_.take(0);
    admin_completions_ = card_.ram().allocate(kAdminCqDepth * rdma_wire::kCqeSize);
    admin_ring_ = card_.ram().allocate(kAdminDepth * rdma_wire::kAdminSlotSize);
    wire::ionic::RdmaQueueCommand cq{};
    cq.opcode = static_cast<std::uint8_t>(wire::ionic::Opcode::RdmaCreateCompletionQueue);
    cq.qid_ver.set(admin_cq_);
    cq.cid.set(2);
    cq.depth_log2 = kAdminCqDepthLog2;
    cq.stride_log2 = kCqeStrideLog2;
    cq.dma_addr.set(admin_completions_.iova);
    require(card_.admin(cq).status == 0, "CREATE_CQ of the admin queue failed");
    wire::ionic::RdmaQueueCommand queue{};
    queue.opcode = static_cast<std::uint8_t>(wire::ionic::Opcode::RdmaCreateAdminQueue);
    queue.qid_ver.set(kAdminQueue);
    queue.cid.set(admin_cq_);
    queue.depth_log2 = kAdminDepthLog2;
    queue.stride_log2 = kAdminStrideLog2;
    queue.dma_addr.set(admin_ring_.iova);
    require(card_.admin(queue).status == 0, "CREATE_ADMINQ failed");
}

EventQueue& RdmaDriver::completion_events(std::uint32_t vector, std::uint32_t udma) {
    // `ionic_rdma` 7.2: vectors start behind the two asynchronous queues.
    return *event_queues_[(vector % (kEventQueues / 2 - 1) + 1) * 2 + udma];
}

void RdmaDriver::check(AdminOp op, Status status) {
    if (status != Status::Ok) {
        throw GuestError("admin command " + std::to_string(static_cast<unsigned>(op)) +
                         " failed with status " + std::to_string(static_cast<unsigned>(status)));
    }
}

void RdmaDriver::post_command(AdminOp op, Bytes body) {
    const std::uint32_t slots = slots_of(body.size());
    // One slot stays empty, and the completion ring is the smaller one.
    while (kAdminDepth - 1 - (producer_ - oldest_) < slots || producer_ - oldest_ >= kAdminCqDepth - 2) {
        check(op, take_completion());
    }
    std::array<std::byte, 2 * rdma_wire::kAdminSlotSize> command{};
    const rdma_wire::AdminHeader header{static_cast<std::uint8_t>(op), 0,
                                        le16(static_cast<std::uint16_t>(body.size()))};
    std::memcpy(command.data(), &header, sizeof(header));
    std::copy(body.begin(), body.end(), command.begin() + sizeof(header));
    for (std::uint32_t i = 0; i < slots; ++i) {
        std::memcpy(admin_ring_.host + (producer_ + i) % kAdminDepth * rdma_wire::kAdminSlotSize,
                    command.data() + i * rdma_wire::kAdminSlotSize, rdma_wire::kAdminSlotSize);
    }
    producer_ += slots;
    card_.ring(0, identity().admin_queues.type,
               rdma_wire::Doorbell::make(kAdminQueue, rdma_wire::kRingConsumer,
                                         static_cast<std::uint16_t>(producer_ % kAdminDepth))
                   .value());
}

RdmaDriver::Status RdmaDriver::take_completion() {
    std::byte* const slot = admin_completions_.host + completions_read_ % kAdminCqDepth * rdma_wire::kCqeSize;
    const std::uint32_t color = completions_read_ / kAdminCqDepth % 2 == 0 ? rdma_wire::kCqeColor : 0;
    auto* const last = reinterpret_cast<std::uint32_t*>(slot + rdma_wire::kCqeSize - sizeof(be32));
    const bool done = wait_until([last, color] {
        return (byte_swap(std::atomic_ref<std::uint32_t>(*last).load(std::memory_order_acquire)) &
                rdma_wire::kCqeColor) == color;
    });
    require(done, "RDMA admin command timed out");
    const auto cqe = *read_value<rdma_wire::AdminCqe>(Bytes(slot, rdma_wire::kCqeSize));
    require(cqe.command_index.get() == oldest_ % kAdminDepth, "admin completion out of order");
    require(cqe.qid_type_flags.get() >> 8U == kAdminQueue, "admin completion of another queue");
    const auto header = *read_value<rdma_wire::AdminHeader>(
        Bytes(admin_ring_.host + oldest_ % kAdminDepth * rdma_wire::kAdminSlotSize,
              sizeof(rdma_wire::AdminHeader)));
    require(cqe.command_op == header.op, "admin completion of another command");
    oldest_ += slots_of(header.length.get());
    ++completions_read_;
    card_.ring(0, identity().completion_queues.type,
               rdma_wire::Doorbell::make(admin_cq_, rdma_wire::kRingConsumer,
                                         static_cast<std::uint16_t>(completions_read_ % kAdminCqDepth))
                   .value());
    const bool failed = (cqe.qid_type_flags.get() & rdma_wire::kCqeError) != 0;
    const auto status = static_cast<Status>(cqe.status_length.get());
    require(failed == (status != Status::Ok),
            "admin completion with a status that contradicts its error bit");
    return status;
}

void RdmaDriver::finish_commands() {
    while (oldest_ != producer_) {
        check(AdminOp::Noop, take_completion());
    }
}

RdmaDriver::Status RdmaDriver::try_command(AdminOp op, Bytes body) {
    finish_commands();
    post_command(op, body);
    return take_completion();
}

}  // namespace ernic::guest_sim
