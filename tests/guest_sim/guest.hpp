// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "guest_sim/address.hpp"
#include "guest_sim/card.hpp"
#include "guest_sim/completion_queue.hpp"
#include "guest_sim/guest_ram.hpp"
#include "guest_sim/memory.hpp"
#include "guest_sim/queue_pair.hpp"
#include "guest_sim/rdma_driver.hpp"
#include "guest_sim/server_process.hpp"
#include "guest_sim/vfio_client.hpp"

namespace ernic::guest_sim {

/// How two connected QPs see each other; the defaults are those of ibv_rc_pingpong.
struct ConnectionOptions {
    std::uint8_t mtu_log2 = 12;
    std::uint8_t timeout = 14;
    std::uint8_t retry_count = 7;
    std::uint8_t rnr_retry = 7;
    std::uint8_t min_rnr_timer = 12;
    std::uint32_t max_rd_atomic = 16;
    std::uint32_t max_dest_rd_atomic = 16;
    std::uint16_t access = wire::ionic_rdma::kQpRemoteWrite | wire::ionic_rdma::kQpRemoteRead |
                           wire::ionic_rdma::kQpRemoteAtomic;
    std::uint32_t first_psn = 0xfffff0;  ///< close to the wrap, so that every longer test crosses it
    bool ipv6 = false;
    /// The MAC address of the card with the other QP; the guest's own by default.
    std::optional<wire::MacAddress> peer = std::nullopt;
};

using CqPtr = std::unique_ptr<CompletionQueue>;
using QpPtr = std::unique_ptr<QueuePair>;

/// A small guest with the card's drivers, attached to a server: a program reads like one with verbs.
///
///     ServerProcess server;
///     Guest guest(server);
///     auto cq = guest.create_cq();
///     auto [client, peer] = guest.create_pair(*cq);
///     auto from = guest.register_memory(4096), to = guest.register_memory(4096);
///     client->post_send({.op = Op::Write, .sges = from.list(), .remote_va = to.va, .rkey = to.key});
///     EXPECT_EQ(cq->wait().status, Status::Ok);
class Guest {
  public:
    static constexpr std::size_t kDefaultRam = std::size_t{128} << 20U;

    explicit Guest(ServerProcess& server, std::size_t ram = kDefaultRam);
    Guest(const Guest&) = delete;
    Guest& operator=(const Guest&) = delete;

    CqPtr create_cq(const CompletionQueue::Options& options = {});
    QpPtr create_qp(CompletionQueue& cq, const QueuePair::Options& options = {}) {
        return create_qp(cq, cq, options);
    }
    QpPtr create_qp(CompletionQueue& send_cq, CompletionQueue& receive_cq,
                    const QueuePair::Options& options = {});

    /// Two RC QPs connected to each other through the card's own port, ready to send.
    std::pair<QpPtr, QpPtr> create_pair(CompletionQueue& cq, const QueuePair::Options& options = {},
                                        const ConnectionOptions& connection = {});
    std::pair<QpPtr, QpPtr> create_pair(CompletionQueue& first_cq, CompletionQueue& second_cq,
                                        const QueuePair::Options& options = {},
                                        const ConnectionOptions& connection = {});
    void connect(QueuePair& first, QueuePair& second, const ConnectionOptions& connection = {});
    /// Takes one QP to RTR (and RTS) towards QP `destination` at the card's own address.
    void make_ready(QueuePair& qp, std::uint32_t destination, const ConnectionOptions& connection = {});
    void make_receiver(QueuePair& qp, std::uint32_t destination, const ConnectionOptions& connection = {});
    /// An unreliable-datagram QP ready to send.
    QpPtr create_datagram_qp(CompletionQueue& cq, std::uint32_t qkey, const QueuePair::Options& options = {});

    Buffer allocate(std::size_t size, std::size_t alignment = kPage) {
        return ram_.allocate(size, alignment);
    }
    /// Registers fresh or given memory with rights, described as one contiguous block.
    Region register_memory(std::size_t size, std::uint16_t access = kAllAccess, std::uint32_t pd = 0);
    Region register_memory(const Buffer& memory, std::uint16_t access = kAllAccess, std::uint32_t pd = 0);
    /// Registers pages listed in their order, the first one from byte `offset` on.
    Region register_pages(const std::vector<std::uint64_t>& pages, std::uint8_t page_size_log2,
                          std::uint64_t offset, std::uint64_t length, std::uint16_t access = kAllAccess,
                          std::uint32_t pd = 0);
    /// An empty fast-register region or window; its key starts with tag 0.
    Region create_fast_region(std::uint32_t pd = 0);
    Region create_window(bool type2, std::uint32_t pd = 0);
    void destroy(const Region& region);
    /// A table of page addresses in guest memory.
    PageTable page_table(const std::vector<std::uint64_t>& pages, std::uint8_t page_size_log2);

    std::uint32_t create_ah(const Address& address, std::uint32_t pd = 0);
    void destroy_ah(std::uint32_t ah);
    /// The card's own address.
    [[nodiscard]] Address own_address(bool ipv6 = false) const {
        return {.destination = card_.mac(), .source = card_.mac(), .ipv6 = ipv6, .vlan = std::nullopt};
    }

    VfioClient& client() { return client_; }
    Card& card() { return card_; }
    RdmaDriver& rdma() { return rdma_; }
    GuestRam& ram() { return ram_; }

  private:
    Region create_region(wire::ionic_rdma::CreateMr& command, std::uint32_t pd);
    std::uint64_t next_va(std::uint64_t length, std::uint64_t alignment, std::uint64_t offset);

    GuestRam ram_;
    VfioClient client_;
    Card card_;
    RdmaDriver rdma_;
    std::uint64_t next_va_;
};

}  // namespace ernic::guest_sim
