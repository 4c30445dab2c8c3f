// SPDX-License-Identifier: MIT
#include "guest_sim/guest.hpp"

#include <cstring>

#include "guest_sim/error.hpp"

namespace ernic::guest_sim {
namespace {

namespace w = wire::ionic_rdma;

/// Where a process's mappings usually lie.
constexpr std::uint64_t kFirstVa = 0x7f0000000000;
constexpr std::uint16_t kFastRegionFlags = w::kMrUserKey | w::kMrInvalidate;
constexpr std::uint16_t kWindow1Flags = w::kMrIsWindow | w::kMrUserKey;
constexpr std::uint16_t kWindow2Flags = w::kMrIsWindow | w::kMrUserKey | w::kMrInvalidate;

}  // namespace

Guest::Guest(ServerProcess& server, std::size_t ram)
    : ram_(ram), client_(server.connect()), card_(client_, ram_), rdma_(card_), next_va_(kFirstVa) {
}

CqPtr Guest::create_cq(const CompletionQueue::Options& options) {
    return std::make_unique<CompletionQueue>(rdma_, options);
}

QpPtr Guest::create_qp(CompletionQueue& send_cq, CompletionQueue& receive_cq,
                       const QueuePair::Options& options) {
    return std::make_unique<QueuePair>(rdma_, send_cq, receive_cq, options);
}

std::pair<QpPtr, QpPtr> Guest::create_pair(CompletionQueue& cq, const QueuePair::Options& options,
                                           const ConnectionOptions& connection) {
    return create_pair(cq, cq, options, connection);
}

std::pair<QpPtr, QpPtr> Guest::create_pair(CompletionQueue& first_cq, CompletionQueue& second_cq,
                                           const QueuePair::Options& options,
                                           const ConnectionOptions& connection) {
    QueuePair::Options second_options = options;
    // Like the driver: successive QPs alternate between the pipelines.
    second_options.udma = 1 - options.udma;
    auto first = create_qp(first_cq, options);
    auto second = create_qp(second_cq, second_options);
    connect(*first, *second, connection);
    return {std::move(first), std::move(second)};
}

void Guest::connect(QueuePair& first, QueuePair& second, const ConnectionOptions& connection) {
    make_receiver(first, second.qpn(), connection);
    make_ready(second, first.qpn(), connection);
    first.modify({.state = QpState::Rts,
                  .sq_psn = connection.first_psn,
                  .timeout = connection.timeout,
                  .retry_count = connection.retry_count,
                  .rnr_retry = connection.rnr_retry,
                  .max_rd_atomic = connection.max_rd_atomic});
}

void Guest::make_receiver(QueuePair& qp, std::uint32_t destination, const ConnectionOptions& connection) {
    Address address = own_address(connection.ipv6);
    address.destination = connection.peer.value_or(address.destination);
    qp.modify({.state = QpState::Init, .access = connection.access});
    qp.modify({.state = QpState::Rtr,
               .destination_qpn = destination,
               .address = address,
               .mtu_log2 = connection.mtu_log2,
               .rq_psn = connection.first_psn,
               .min_rnr_timer = connection.min_rnr_timer,
               .max_dest_rd_atomic = connection.max_dest_rd_atomic});
}

void Guest::make_ready(QueuePair& qp, std::uint32_t destination, const ConnectionOptions& connection) {
    make_receiver(qp, destination, connection);
    qp.modify({.state = QpState::Rts,
               .sq_psn = connection.first_psn,
               .timeout = connection.timeout,
               .retry_count = connection.retry_count,
               .rnr_retry = connection.rnr_retry,
               .max_rd_atomic = connection.max_rd_atomic});
}

QpPtr Guest::create_datagram_qp(CompletionQueue& cq, std::uint32_t qkey, const QueuePair::Options& options) {
    QueuePair::Options datagram = options;
    datagram.type = QpType::Ud;
    auto qp = create_qp(cq, datagram);
    qp->modify({.state = QpState::Init, .qkey = qkey});
    qp->to(QpState::Rtr);
    qp->modify({.state = QpState::Rts, .sq_psn = 0});
    return qp;
}

std::uint64_t Guest::next_va(std::uint64_t length, std::uint64_t alignment, std::uint64_t offset) {
    next_va_ = (next_va_ + alignment - 1) / alignment * alignment;
    const std::uint64_t va = next_va_ + offset;
    next_va_ = va + length + kPage;
    return va;
}

Region Guest::create_region(w::CreateMr& command, std::uint32_t pd) {
    const std::uint32_t key = rdma_.next_memory_index() << 8U;
    command.pd_id.set(pd);
    command.key.set(key);
    command.tbl_index.set(0xffffffff);
    rdma_.command(w::AdminOp::CreateMr, command);
    return {key, command.va.get(), command.length.get(), {}};
}

Region Guest::register_memory(std::size_t size, std::uint16_t access, std::uint32_t pd) {
    return register_memory(ram_.allocate(size), access, pd);
}

Region Guest::register_memory(const Buffer& memory, std::uint16_t access, std::uint32_t pd) {
    w::CreateMr command{};
    command.va.set(next_va(memory.size, kPage, memory.iova % kPage));
    command.length.set(memory.size);
    command.map_count.set(1);
    command.dma_addr.set(memory.iova);
    command.flags.set(access);
    command.page_size_log2 = 12;
    Region region = create_region(command, pd);
    region.memory = memory;
    if ((access & kZeroBased) != 0) {
        region.va = 0;
    }
    return region;
}

PageTable Guest::page_table(const std::vector<std::uint64_t>& pages, std::uint8_t page_size_log2) {
    const Buffer table = ram_.allocate(pages.size() * sizeof(le64), 64);
    for (std::size_t i = 0; i < pages.size(); ++i) {
        table.set(le64(pages[i]), i * sizeof(le64));
    }
    return {table, static_cast<std::uint32_t>(pages.size()), page_size_log2};
}

Region Guest::register_pages(const std::vector<std::uint64_t>& pages, std::uint8_t page_size_log2,
                             std::uint64_t offset, std::uint64_t length, std::uint16_t access,
                             std::uint32_t pd) {
    require(pages.size() > 1, "one page is one block, not a table");
    const PageTable table = page_table(pages, page_size_log2);
    w::CreateMr command{};
    command.va.set(next_va(length, std::uint64_t{1} << page_size_log2, offset));
    command.length.set(length);
    command.map_count.set(table.pages);
    command.dma_addr.set(table.memory.iova);
    command.flags.set(access);
    command.page_size_log2 = page_size_log2;
    Region region = create_region(command, pd);
    // The driver frees the table when the command has completed, and somebody else writes there.
    table.memory.fill(0xff);
    return region;
}

Region Guest::create_fast_region(std::uint32_t pd) {
    w::CreateMr command{};
    command.flags.set(kFastRegionFlags);
    return create_region(command, pd);
}

Region Guest::create_window(bool type2, std::uint32_t pd) {
    w::CreateMr command{};
    command.flags.set(type2 ? kWindow2Flags : kWindow1Flags);
    return create_region(command, pd);
}

void Guest::destroy(const Region& region) {
    rdma_.command(w::AdminOp::DestroyMr, w::Destroy{le32(region.key)});
}

std::uint32_t Guest::create_ah(const Address& address, std::uint32_t pd) {
    const auto header = header_template(address);
    const Buffer memory = ram_.allocate(header.size(), 64);
    std::memcpy(memory.host, header.data(), header.size());
    const std::uint32_t id = rdma_.next_address_handle();
    w::CreateAh command{};
    command.dma_addr.set(memory.iova);
    command.length.set(static_cast<std::uint32_t>(header.size()));
    command.pd_id.set(pd);
    command.id_ver.set(id);
    rdma_.command(w::AdminOp::CreateAh, command);
    memory.fill(0);
    return id;
}

void Guest::destroy_ah(std::uint32_t ah) {
    rdma_.command(w::AdminOp::DestroyAh, w::Destroy{le32(ah)});
}

}  // namespace ernic::guest_sim
