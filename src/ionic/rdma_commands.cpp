// SPDX-License-Identifier: MIT
#include "ionic/rdma_commands.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "ionic/rdma_queue_pair.hpp"
#include "ionic/rdma_stats.hpp"
#include "ionic/send_queue.hpp"
#include "net/route.hpp"

namespace ernic::ionic {

namespace rdma_wire = wire::ionic_rdma;
using rdma_wire::AdminOp;
using Status = rdma_wire::AdminStatus;

namespace {

constexpr std::uint32_t id_of(le32 id_ver) {
    return id_ver.get() & 0xffffffU;
}

constexpr std::uint8_t kTypeRc = 0;
constexpr std::uint8_t kTypeUd = 3;
constexpr std::uint8_t kMinWqeStrideLog2 = 6;
constexpr std::uint8_t kCqeStrideLog2 = 5;
constexpr std::size_t kMaxHeader = 66;

/// Reads the body as T and passes it on; a body of another length is a broken command.
template <typename T, typename Run>
std::optional<Status> with(Bytes body, Run run) {
    const auto command = read_value<T>(body);
    if (!command || body.size() != sizeof(T)) {
        return Status::BadCommand;
    }
    return run(*command);
}

/// Pages that a ring reaches into. Any number for shapes that Ring::make refuses.
std::uint64_t pages_of(const rdma_wire::RingGeometry& geometry) {
    const int size_log2 = geometry.depth_log2 + geometry.stride_log2;
    return std::uint64_t{1} << std::clamp(size_log2 - geometry.page_size_log2, 0, 63);
}

}  // namespace

RdmaCommands::Map RdmaCommands::map_of(std::uint32_t map_count, std::uint64_t needed, le64 address,
                                       std::uint8_t page_size_log2) {
    // A table stays one when a single entry of it is needed.
    const std::uint64_t count =
        map_count <= 1 ? map_count : std::max<std::uint64_t>(std::min<std::uint64_t>(map_count, needed), 1);
    return {map_count > 1, static_cast<std::uint32_t>(count), mem::Iova{address.get()}, page_size_log2};
}

RdmaCommands::Map RdmaCommands::map_of(const rdma_wire::RingGeometry& ring, std::uint32_t map_count,
                                       le64 address) {
    return map_of(map_count, pages_of(ring), address, ring.page_size_log2);
}

RdmaCommands::Outcome RdmaCommands::read(const Map& map, std::optional<mem::TableCopy>& copy) {
    if (!map.is_table) {
        return Status::Ok;
    }
    if (!copy) {
        if (map.count > rdma::kMaxTableEntries) {
            return Status::BadAttribute;
        }
        copy = mem::TableCopy::begin(objects_.memory(), map.address, map.count, map.page_size_log2,
                                     objects_.engine().memory_table().tables());
        if (!copy) {
            return Status::BadAttribute;
        }
    }
    if (!copy->complete()) {
        const std::size_t before = copy->copied();
        if (!copy->advance(objects_.memory(), rdma::kTableEntriesAtOnce)) {
            return Status::BadAttribute;
        }
        entries_read_ += copy->copied() - before;
    }
    return copy->complete() ? Outcome(Status::Ok) : std::nullopt;
}

mem::PageList RdmaCommands::pages(const Map& map, std::optional<mem::TableCopy>& copy) {
    return map.is_table ? std::move(*copy).take() : mem::PageList::contiguous(map.address);
}

RdmaCommands::Outcome RdmaCommands::run(AdminOp op, Bytes body, Tables& tables) {
    switch (op) {
        case AdminOp::Noop:
            return Status::Ok;
        case AdminOp::CreateCq:
            return with<rdma_wire::CreateCq>(body, [&](const auto& c) { return create_cq(c, tables); });
        case AdminOp::CreateQp:
            return with<rdma_wire::CreateQp>(body, [&](const auto& c) { return create_qp(c, tables); });
        case AdminOp::CreateMr:
            return with<rdma_wire::CreateMr>(body, [&](const auto& c) { return create_mr(c, tables); });
        case AdminOp::CreateAh:
            return with<rdma_wire::CreateAh>(body, [this](const auto& c) { return create_ah(c); });
        case AdminOp::ModifyQp:
            return with<rdma_wire::ModifyQp>(body, [this](const auto& c) { return modify_qp(c); });
        case AdminOp::QueryQp:
            return with<rdma_wire::QueryQp>(body, [this](const auto& c) { return query_qp(c); });
        // Destroying what does not exist succeeds: process exit must never get stuck on it.
        case AdminOp::DestroyMr:
            return with<rdma_wire::Destroy>(body, [this](const auto& c) {
                objects_.engine().memory_table().destroy(c.id.get());
                return Status::Ok;
            });
        case AdminOp::DestroyCq:
            return with<rdma_wire::Destroy>(body, [this](const auto& c) {
                objects_.remove_completion_queue(id_of(c.id));
                return Status::Ok;
            });
        case AdminOp::DestroyQp:
            return with<rdma_wire::Destroy>(body, [this](const auto& c) {
                objects_.remove_queue_pair(id_of(c.id));
                return Status::Ok;
            });
        case AdminOp::DestroyAh:
            return with<rdma_wire::Destroy>(body, [this](const auto& c) {
                objects_.engine().remove_address_handle(id_of(c.id));
                return Status::Ok;
            });
        case AdminOp::StatsHeaders:
        case AdminOp::StatsValues:
        case AdminOp::QpStatsHeaders:
        case AdminOp::QpStatsValues:
            return with<rdma_wire::Stats>(body,
                                          [this, op](const auto& c) { return run_stats(objects_, op, c); });
    }
    return Status::BadCommand;
}

RdmaCommands::Outcome RdmaCommands::create_cq(const rdma_wire::CreateCq& command, Tables& tables) {
    if (command.ring.stride_log2 != kCqeStrideLog2 ||
        !mem::Ring::possible(command.ring.depth_log2, command.ring.stride_log2)) {
        return Status::BadAttribute;
    }
    if (objects_.event_queue(command.eq_id.get()) == nullptr) {
        return Status::BadIndex;
    }
    const CompletionQueue::Identity identity{id_of(command.id_ver), command.dbid.get(), command.eq_id.get()};
    if (!objects_.completion_queue_free(identity.id)) {
        return Status::BadIndex;
    }
    const Map map = map_of(command.ring, command.map_count.get(), command.dma_addr);
    if (const Outcome read_so_far = read(map, tables[0]); read_so_far != Status::Ok) {
        return read_so_far;
    }
    auto ring = mem::Ring::make(pages(map, tables[0]), command.ring.depth_log2, command.ring.stride_log2);
    if (!ring || !objects_.engine().memory_table().reserve(ring->page_entries())) {
        return Status::BadAttribute;
    }
    objects_.add(identity.id,
                 std::make_unique<CompletionQueue>(objects_.memory(), std::move(*ring), identity));
    return Status::Ok;
}

RdmaCommands::Outcome RdmaCommands::create_qp(const rdma_wire::CreateQp& command, Tables& tables) {
    const std::uint8_t type = command.type_state & 0xfU;
    if (type != kTypeRc && type != kTypeUd) {
        return Status::BadType;
    }
    const std::uint32_t flags = command.flags.get();
    if ((flags & (rdma_wire::kQpSqCmb | rdma_wire::kQpRqCmb)) != 0 ||
        command.sq_ring.stride_log2 < kMinWqeStrideLog2 || command.rq_ring.stride_log2 < kMinWqeStrideLog2 ||
        command.sq_ring.stride_log2 > objects_.profile().max_stride_log2 ||
        command.rq_ring.stride_log2 > objects_.profile().max_stride_log2 ||
        !mem::Ring::possible(command.sq_ring.depth_log2, command.sq_ring.stride_log2) ||
        !mem::Ring::possible(command.rq_ring.depth_log2, command.rq_ring.stride_log2)) {
        return Status::BadAttribute;
    }
    const std::uint32_t qpn = id_of(command.id_ver);
    if (!objects_.queue_pair_free(qpn) || objects_.completion_queue(command.sq_cq_id.get()) == nullptr ||
        objects_.completion_queue(command.rq_cq_id.get()) == nullptr) {
        return Status::BadIndex;
    }
    const Map send_map = map_of(command.sq_ring, command.sq_map_count.get(), command.sq_dma_addr);
    if (const Outcome read_so_far = read(send_map, tables[0]); read_so_far != Status::Ok) {
        return read_so_far;
    }
    const Map receive_map = map_of(command.rq_ring, command.rq_map_count.get(), command.rq_dma_addr);
    if (const Outcome read_so_far = read(receive_map, tables[1]); read_so_far != Status::Ok) {
        return read_so_far;
    }
    auto send_ring =
        mem::Ring::make(pages(send_map, tables[0]), command.sq_ring.depth_log2, command.sq_ring.stride_log2);
    auto receive_ring = mem::Ring::make(pages(receive_map, tables[1]), command.rq_ring.depth_log2,
                                        command.rq_ring.stride_log2);
    if (!send_ring || !receive_ring ||
        !objects_.engine().memory_table().reserve(send_ring->page_entries() + receive_ring->page_entries())) {
        return Status::BadAttribute;
    }
    const RdmaQueuePair::Identity identity{command.dbid.get(), command.sq_cq_id.get(), command.rq_cq_id.get(),
                                           flags};
    rdma::QueuePair::Identity qp_identity;
    qp_identity.qpn = qpn;
    qp_identity.pd = command.pd_id.get();
    qp_identity.type = type == kTypeRc ? rdma::QpType::Rc : rdma::QpType::Ud;
    qp_identity.privileged = (flags & rdma_wire::kQpPrivileged) != 0;
    qp_identity.remote_privileged = (flags & rdma_wire::kQpRemotePrivileged) != 0;
    qp_identity.sq_depth = send_ring->depth();
    qp_identity.rq_depth = receive_ring->depth();
    objects_.add(qpn, std::make_unique<RdmaQueuePair>(objects_, std::move(*send_ring),
                                                      std::move(*receive_ring), identity, qp_identity));
    return Status::Ok;
}

RdmaCommands::Outcome RdmaCommands::create_mr(const rdma_wire::CreateMr& command, Tables& tables) {
    using Kind = rdma::MemoryRegion::Kind;
    rdma::MemoryTable& memory_table = objects_.engine().memory_table();
    const std::uint16_t flags = command.flags.get();
    rdma::MemoryRegion region;
    region.pd = command.pd_id.get();
    if ((flags & rdma_wire::kMrIsWindow) != 0) {
        region.kind = (flags & rdma_wire::kMrInvalidate) != 0 ? Kind::WindowType2 : Kind::WindowType1;
    } else if ((flags & rdma_wire::kMrUserKey) != 0) {
        region.kind = Kind::FastRegister;
    } else {
        region.kind = Kind::User;
        region.valid = true;
        region.va = command.va.get();
        region.length = command.length.get();
        region.rights = rights_of(flags);
        if (!Range::make(region.va, region.length) || (command.map_count.get() == 0 && region.length != 0)) {
            return Status::BadAttribute;
        }
        const Map map = map_of(command.map_count.get(), UINT64_MAX, command.dma_addr, command.page_size_log2);
        if (!memory_table.can_create(command.key.get(), map.is_table ? map.count : 0)) {
            return Status::BadIndex;
        }
        if (const Outcome read_so_far = read(map, tables[0]); read_so_far != Status::Ok) {
            return read_so_far;
        }
        region.pages = pages(map, tables[0]);
        if (region.pages.is_table()) {
            region.page_offset = region.va & (region.pages.page_size() - 1);
        }
    }
    return memory_table.create(command.key.get(), std::move(region)) ? Status::Ok : Status::BadIndex;
}

Status RdmaCommands::create_ah(const rdma_wire::CreateAh& command) {
    std::array<std::byte, kMaxHeader> header;
    const std::uint32_t length = command.length.get();
    if (length > header.size() ||
        !objects_.memory().read(mem::Iova{command.dma_addr.get()}, MutableBytes(header).first(length))) {
        return Status::BadAttribute;
    }
    const auto route = net::parse_route(Bytes(header).first(length));
    if (!route) {
        return Status::BadAttribute;
    }
    return objects_.engine().set_address_handle(id_of(command.id_ver), command.pd_id.get(), *route)
               ? Status::Ok
               : Status::BadIndex;
}

}  // namespace ernic::ionic
