// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <optional>

#include "base/bytes.hpp"
#include "ionic/rdma_objects.hpp"
#include "mem/table_copy.hpp"
#include "wire/ionic_rdma.hpp"

namespace ernic::ionic {

/// Executes the commands of the RDMA admin queues against the objects. Thread: device.
class RdmaCommands {
  public:
    explicit RdmaCommands(RdmaObjects& objects) : objects_(objects) {}

    /// The page tables of a command under way, as far as they have been copied: a QP has two.
    using Tables = std::array<std::optional<mem::TableCopy>, 2>;

    /// Runs one command; `body` is exactly as long as its header said. nullopt: a piece of a page table has
    /// been copied into `tables` and more is to come; run() is to be called again with the same arguments,
    /// and checks everything again, because other queues go on meanwhile. On return of a status nothing of
    /// what the command ended is still being accessed, and all tables it pointed to have been copied.
    std::optional<wire::ionic_rdma::AdminStatus> run(wire::ionic_rdma::AdminOp op, Bytes body,
                                                     Tables& tables);

    /// Page table entries copied so far: what makes a command long.
    [[nodiscard]] std::uint64_t entries_read() const { return entries_read_; }

  private:
    using Status = wire::ionic_rdma::AdminStatus;
    /// nullopt: not finished yet.
    using Outcome = std::optional<Status>;

    /// What of guest memory a command describes by (map_count, dma_addr, page_size_log2): a block, or pages
    /// in a table.
    struct Map {
        bool is_table;
        /// Entries of the table.
        std::uint32_t count;
        mem::Iova address;
        std::uint8_t page_size_log2;
    };
    /// `needed` pages of it are of interest.
    static Map map_of(std::uint32_t map_count, std::uint64_t needed, le64 address,
                      std::uint8_t page_size_log2);
    static Map map_of(const wire::ionic_rdma::RingGeometry& ring, std::uint32_t map_count, le64 address);

    /// Copies a piece of the table of `map`, if it has one. Ok: pages() may be called; nullopt: not yet.
    /// Fails: BadAttribute when it is unreadable or longer than rdma::kMaxTableEntries.
    Outcome read(const Map& map, std::optional<mem::TableCopy>& copy);
    static mem::PageList pages(const Map& map, std::optional<mem::TableCopy>& copy);

    Outcome create_cq(const wire::ionic_rdma::CreateCq& command, Tables& tables);
    Outcome create_qp(const wire::ionic_rdma::CreateQp& command, Tables& tables);
    Outcome create_mr(const wire::ionic_rdma::CreateMr& command, Tables& tables);
    Status create_ah(const wire::ionic_rdma::CreateAh& command);
    Status modify_qp(const wire::ionic_rdma::ModifyQp& command);
    Status modify_attributes(RdmaQueuePair& qp, const wire::ionic_rdma::ModifyQp& command);
    Status query_qp(const wire::ionic_rdma::QueryQp& command);

    RdmaObjects& objects_;
    std::uint64_t entries_read_ = 0;
};

}  // namespace ernic::ionic
