// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "base/bytes.hpp"
#include "ionic/rdma_objects.hpp"
#include "wire/ionic_rdma.hpp"

namespace ernic::ionic {

/// Pages of a ring or region described by (map_count, dma_addr, page_size_log2). Fails: nullopt when the table is
/// unreadable or longer than kMaxTableEntries.
std::optional<mem::PageList> read_pages(const mem::GuestMemory& memory, std::uint32_t map_count, mem::Iova address,
                                        std::uint8_t page_size_log2);

/// Most entries of one page table: the driver's tables are single kernel allocations of at most 4 MiB, and reading one
/// must not delay a register access by more than about a millisecond.
inline constexpr std::uint32_t kMaxTableEntries = 512 * 1024;

/// Executes the commands of the RDMA admin queues against the objects. Thread: device.
class RdmaCommands {
  public:
    explicit RdmaCommands(RdmaObjects& objects) : objects_(objects) {}

    /// Runs one command; `body` is exactly as long as its header said. On return nothing of what the command ended is
    /// still being accessed, and all tables it pointed to have been copied.
    wire::ionic_rdma::AdminStatus run(wire::ionic_rdma::AdminOp op, Bytes body);

  private:
    using Status = wire::ionic_rdma::AdminStatus;

    Status create_cq(const wire::ionic_rdma::CreateCq& command);
    Status create_qp(const wire::ionic_rdma::CreateQp& command);
    Status create_mr(const wire::ionic_rdma::CreateMr& command);
    Status create_ah(const wire::ionic_rdma::CreateAh& command);
    Status modify_qp(const wire::ionic_rdma::ModifyQp& command);
    Status modify_attributes(RdmaQueuePair& qp, const wire::ionic_rdma::ModifyQp& command);
    Status query_qp(const wire::ionic_rdma::QueryQp& command);

    RdmaObjects& objects_;
};

}  // namespace ernic::ionic
