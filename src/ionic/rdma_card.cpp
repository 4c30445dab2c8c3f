// SPDX-License-Identifier: MIT
#include "ionic/rdma_card.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "ionic/rdma_queue_pair.hpp"
#include "ionic/rdma_stats.hpp"

namespace ernic::ionic {

namespace rdma_wire = wire::ionic_rdma;
using wire::ionic::Status;

namespace {

/// What Linux gives an Ethernet interface; the driver tells the card only of changes.
constexpr std::uint32_t kDefaultMtu = 1500;
constexpr std::uint8_t kEventStrideLog2 = 2;
constexpr std::uint8_t kCqeStrideLog2 = 5;
constexpr std::uint8_t kAdminStrideLog2 = 6;
/// Admin commands per step and queue: each takes a few microseconds.
constexpr int kCommandsPerStep = 4;
/// All admin queues together end a step after this many page table entries or this time, which depends on
/// how long the host takes for a page fault, give or take a piece of a table.
constexpr std::uint64_t kTableEntriesPerStep = 32 * 1024;
constexpr Nanoseconds kCommandTimePerStep = 50'000;
constexpr int kSweepsPerStep = 32;

std::uint32_t id_of(const wire::ionic::RdmaQueueCommand& command) {
    return command.qid_ver.get() & 0xffffffU;
}

std::optional<mem::Ring> ring_of(const wire::ionic::RdmaQueueCommand& command, std::uint8_t stride_log2) {
    if (command.stride_log2 != stride_log2) {
        return std::nullopt;
    }
    return mem::Ring::make(mem::PageList::contiguous(mem::Iova{command.dma_addr.get()}), command.depth_log2,
                           command.stride_log2);
}

}  // namespace

RdmaCard::RdmaCard(const RdmaProfile& profile, wire::MacAddress mac, pci::Host& host, Interrupts& interrupts,
                   EventLoop& loop, net::Segment& segment, metrics::Registry& registry,
                   const log::Logger& log)
    : profile_(profile),
      loop_(loop),
      log_(log.named("rdma")),
      event_losses_{{}, {}, log_},
      engine_(
          {profile.queue_pairs, profile.memory_regions, profile.address_handles, profile.page_table_entries},
          host.memory(), segment, loop),
      objects_(profile_, host.memory(), interrupts, engine_),
      commands_(objects_),
      admin_queues_(profile.admin_queues) {
    engine_.set_mac(mac);
    set_mtu(kDefaultMtu);
    engine_.register_metrics(registry);
    RdmaCounters& c = objects_.counters();
    registry.add({"rdma.doorbells", "writes", "doorbells of RDMA queues"}, c.doorbells);
    registry.add({"rdma.ignored_doorbells", "writes",
                  "doorbells for queues that do not exist or belong to another page; high: a program rings "
                  "dead queues"},
                 c.ignored_doorbells);
    registry.add({"rdma.admin_commands", "commands", "RDMA admin commands executed"}, c.admin_commands);
    registry.add({"rdma.admin_errors", "commands", "RDMA admin commands refused"}, c.admin_errors);
    registry.add({"rdma.cqes", "entries", "completion queue entries written"}, c.cqes);
    registry.add({"rdma.events", "entries", "events for event queues, lost ones included"}, c.events);
    registry.add({"rdma.events_lost", "entries",
                  "events nobody will see: the driver does not read its event queue, or the ring's memory is "
                  "gone"},
                 event_losses_.events);
    registry.add(
        {"rdma.cq_overflows", "queues", "completion queues killed because the host did not read them"},
        c.cq_overflows);
    registry.add_list("queue_pairs", [this] { return queue_pair_rows(objects_); });
}

void RdmaCard::set_mtu(std::uint32_t mtu) {
    // As Linux 7.2 does it (iboe_get_mtu): the largest IB MTU that fits with all headers RoCE v2 may need.
    constexpr std::uint32_t kHeaders = 96;
    constexpr std::uint32_t kSmallest = 256;
    const std::uint32_t room = mtu > kHeaders ? mtu - kHeaders : 0;
    engine_.set_port_mtu(std::clamp(std::bit_floor(room), kSmallest, rdma::kMaxMtu));
}

void RdmaCard::reset() {
    for (auto& queue : admin_queues_) {
        queue.reset();
    }
    objects_.clear();
}

Status RdmaCard::create_queue(const wire::ionic::RdmaQueueCommand& command) {
    switch (static_cast<wire::ionic::Opcode>(command.opcode)) {
        case wire::ionic::Opcode::RdmaCreateEventQueue:
            return create_event_queue(command);
        case wire::ionic::Opcode::RdmaCreateCompletionQueue:
            return create_completion_queue(command);
        case wire::ionic::Opcode::RdmaCreateAdminQueue:
            return create_admin_queue(command);
        default:
            return Status::BadOpcode;
    }
}

Status RdmaCard::create_event_queue(const wire::ionic::RdmaQueueCommand& command) {
    auto ring = ring_of(command, kEventStrideLog2);
    if (!ring || command.cid.get() >= objects_.interrupts().count()) {
        return Status::Invalid;
    }
    auto queue = std::make_unique<EventQueue>(objects_.memory(), objects_.interrupts(), std::move(*ring),
                                              static_cast<std::uint16_t>(command.cid.get()), event_losses_);
    return objects_.add(id_of(command), std::move(queue)) ? Status::Success : Status::BadQueueId;
}

Status RdmaCard::create_completion_queue(const wire::ionic::RdmaQueueCommand& command) {
    auto ring = ring_of(command, kCqeStrideLog2);
    if (!ring || objects_.event_queue(command.cid.get()) == nullptr) {
        return Status::Invalid;
    }
    const CompletionQueue::Identity identity{id_of(command), command.dbid.get(), command.cid.get()};
    return objects_.add(identity.id,
                        std::make_unique<CompletionQueue>(objects_.memory(), std::move(*ring), identity))
               ? Status::Success
               : Status::BadQueueId;
}

Status RdmaCard::create_admin_queue(const wire::ionic::RdmaQueueCommand& command) {
    auto ring = ring_of(command, kAdminStrideLog2);
    if (!ring || objects_.completion_queue(command.cid.get()) == nullptr) {
        return Status::Invalid;
    }
    const std::uint32_t id = id_of(command);
    if (id >= admin_queues_.size() || admin_queues_[id]) {
        return Status::BadQueueId;
    }
    admin_queues_[id] = std::make_unique<RdmaAdminQueue>(objects_, commands_, log_, admin_limiter_, id,
                                                         command.cid.get(), std::move(*ring));
    return Status::Success;
}

void RdmaCard::doorbell(std::uint8_t queue_type, std::uint32_t dbid, std::uint64_t value) {
    const rdma_wire::Doorbell bell(value);
    objects_.counters().doorbells.add();
    switch (static_cast<QueueType>(queue_type)) {
        case QueueType::RdmaSend:
        case QueueType::RdmaRecv: {
            RdmaQueuePair* qp = objects_.queue_pair(bell.queue_id());
            // A page may ring only the queues that were created for it: this is what isolates processes.
            if (qp == nullptr || qp->identity().dbid != dbid) {
                break;
            }
            if (static_cast<QueueType>(queue_type) == QueueType::RdmaSend) {
                qp->qp().send_posted(bell.index());
            } else {
                qp->qp().receive_posted(bell.index());
            }
            return;
        }
        case QueueType::RdmaCompletion: {
            CompletionQueue* cq = objects_.completion_queue(bell.queue_id());
            if (cq == nullptr || cq->identity().dbid != dbid) {
                break;
            }
            if (cq->doorbell(bell.ring(), bell.index())) {
                objects_.notify(*cq);
            }
            return;
        }
        case QueueType::RdmaAdmin: {
            const std::uint32_t id = bell.queue_id();
            if (id >= admin_queues_.size() || !admin_queues_[id] || dbid != 0) {
                break;
            }
            admin_queues_[id]->doorbell(bell.index());
            return;
        }
        default:
            break;
    }
    objects_.counters().ignored_doorbells.add();
}

bool RdmaCard::step() {
    // What has been destroyed is given back before anything new is made, or a guest that makes and destroys
    // quickly would take more of the host's memory than it was offered.
    const bool more = give_back() || step_commands();
    return engine_.step() || more;
}

bool RdmaCard::give_back() {
    const Nanoseconds end = loop_.clock().now() + kCommandTimePerStep;
    for (int left = kSweepsPerStep; objects_.give_back(); --left) {
        if (left == 0 || loop_.clock().now() >= end) {
            return true;
        }
    }
    return false;
}

bool RdmaCard::step_commands() {
    bool more = false;
    const Nanoseconds end = loop_.clock().now() + kCommandTimePerStep;
    const std::uint64_t enough = commands_.entries_read() + kTableEntriesPerStep;
    for (std::size_t i = 0; i < admin_queues_.size(); ++i) {
        const std::size_t index = (admin_turn_ + i) % admin_queues_.size();
        const auto& queue = admin_queues_[index];
        int left = kCommandsPerStep;
        while (queue && left > 0) {
            const auto progress = queue->step();
            if (progress == RdmaAdminQueue::Progress::Idle) {
                break;
            }
            left -= progress == RdmaAdminQueue::Progress::Done ? 1 : 0;
            if (commands_.entries_read() >= enough || loop_.clock().now() >= end) {
                admin_turn_ = index + 1;
                return true;
            }
        }
        more = more || left == 0;
    }
    return more;
}

}  // namespace ernic::ionic
