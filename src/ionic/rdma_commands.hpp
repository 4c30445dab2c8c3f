// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "base/bytes.hpp"
#include "ionic/rdma_objects.hpp"
#include "wire/ionic_rdma.hpp"

namespace ernic::ionic {

/// Executes the commands of the RDMA admin queues against the objects. Thread: device.
class RdmaCommands {
  public:
    explicit RdmaCommands(RdmaObjects& objects) : objects_(objects) {}

    /// Runs one command; `body` is exactly as long as its header said. On return nothing of what the command
    /// ended is still being accessed, and all tables it pointed to have been copied.
    wire::ionic_rdma::AdminStatus run(wire::ionic_rdma::AdminOp op, Bytes body);

    /// Page table entries copied so far: what makes a command long.
    [[nodiscard]] std::uint64_t entries_read() const { return entries_read_; }

  private:
    using Status = wire::ionic_rdma::AdminStatus;

    /// Pages of a ring or region described by (map_count, dma_addr, page_size_log2), of which `needed` are of
    /// interest. Fails: nullopt when the table is unreadable or longer than rdma::kMaxTableEntries.
    std::optional<mem::PageList> read_pages(std::uint32_t map_count, std::uint64_t needed, mem::Iova address,
                                            std::uint8_t page_size_log2);
    std::optional<mem::Ring> read_ring(const wire::ionic_rdma::RingGeometry& geometry,
                                       std::uint32_t map_count, mem::Iova address);

    Status create_cq(const wire::ionic_rdma::CreateCq& command);
    Status create_qp(const wire::ionic_rdma::CreateQp& command);
    Status create_mr(const wire::ionic_rdma::CreateMr& command);
    Status create_ah(const wire::ionic_rdma::CreateAh& command);
    Status modify_qp(const wire::ionic_rdma::ModifyQp& command);
    Status modify_attributes(RdmaQueuePair& qp, const wire::ionic_rdma::ModifyQp& command);
    Status query_qp(const wire::ionic_rdma::QueryQp& command);

    RdmaObjects& objects_;
    std::uint64_t entries_read_ = 0;
};

}  // namespace ernic::ionic
