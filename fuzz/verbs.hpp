// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "base/bytes.hpp"
#include "fuzz/driver.hpp"
#include "wire/ethernet.hpp"
#include "wire/ionic_rdma.hpp"

/// The data path of the RDMA drivers in miniature: objects by admin command, work queue entries, doorbells.
namespace ernic::fuzz {

/// A packed Ethernet, IPv4, UDP header as the driver hands it over for an address handle.
std::array<std::byte, 42> route_header(const wire::MacAddress& destination, const wire::MacAddress& source);

/// A queue in guest memory, one contiguous block.
struct RingPlan {
    std::uint64_t address = 0;
    std::uint8_t depth_log2 = 4;
    std::uint8_t stride_log2 = 6;

    [[nodiscard]] std::uint32_t mask() const { return (1U << depth_log2) - 1; }
    [[nodiscard]] std::uint64_t slot(std::uint32_t index) const {
        return address + (std::uint64_t{index & mask()} << stride_log2);
    }
};

struct QpPlan {
    std::uint32_t qpn = 0;
    std::uint32_t pd = 1;
    std::uint16_t dbid = 0;
    bool datagram = false;
    std::uint32_t flags = 0;
    std::uint32_t sq_cq = 0;
    std::uint32_t rq_cq = 0;
    RingPlan sq;
    RingPlan rq;
};

struct MrPlan {
    std::uint32_t key = 0;
    std::uint32_t pd = 1;
    std::uint16_t flags = 0;
    std::uint64_t va = 0;
    std::uint64_t length = 0;
    /// One block, or `map_count` page addresses at `address`.
    std::uint64_t address = 0;
    std::uint32_t map_count = 1;
    std::uint8_t page_size_log2 = 12;
};

/// What the peers of a connection agree on, and its limits.
struct Connection {
    std::uint32_t destination_qpn = 0;
    std::uint32_t qkey = 0;
    std::uint32_t sq_psn = 0;
    std::uint32_t rq_psn = 0;
    std::uint8_t pmtu_log2 = 12;
    std::uint8_t timeout = 14;
    std::uint8_t retry = 3;
    std::uint8_t rnr_retry = 3;
    std::uint8_t rnr_timer = 1;
    std::uint8_t depth_log2 = 2;
    std::uint16_t access = wire::ionic_rdma::kQpRemoteWrite | wire::ionic_rdma::kQpRemoteRead |
                           wire::ionic_rdma::kQpRemoteAtomic;
    wire::MacAddress destination;
};

class Verbs {
  public:
    Verbs(Driver& driver, CpuMemory& memory) : driver_(driver), memory_(memory) {}

    void create_cq(std::uint32_t id, std::uint16_t dbid, const RingPlan& ring);
    void create_qp(const QpPlan& plan);
    void create_mr(const MrPlan& plan);
    void create_ah(std::uint32_t id, std::uint32_t pd, Bytes header);
    void destroy(wire::ionic_rdma::AdminOp op, std::uint32_t id);

    /// MODIFY_QP with these attributes; `state` 0 RESET .. 6 ERROR.
    void modify(std::uint32_t qpn, std::uint8_t state, const Connection& connection,
                std::uint32_t attributes);
    /// INIT, RTR, RTS with everything set.
    void connect(std::uint32_t qpn, const Connection& connection);

    void ring_send(const QpPlan& qp, std::uint16_t index);
    void ring_receive(const QpPlan& qp, std::uint16_t index);
    void ring_cq(std::uint16_t dbid, std::uint32_t cq, std::uint8_t ring, std::uint16_t index);

  private:
    Driver& driver_;
    CpuMemory& memory_;
};

/// One work queue entry under construction; bytes nobody set are zero.
class Entry {
  public:
    static constexpr std::size_t kMaxSize = 512;

    Entry(std::uint64_t id, std::uint8_t op, std::uint16_t flags, std::uint32_t immediate_or_key);

    void set_sge_count_or_key(std::uint8_t value) { bytes_[9] = std::byte{value}; }
    /// The body behind the 16-byte header.
    template <WireValue T>
    void set_body(const T& body) {
        std::memcpy(bytes_.data() + sizeof(wire::ionic_rdma::WqeHeader), &body, sizeof body);
    }
    void set_sges(std::span<const wire::ionic_rdma::Sge> sges);
    void set_inline(Bytes data);
    /// Overwrites from `at` on, as far as there is room.
    void overwrite(std::size_t at, Bytes data);

    [[nodiscard]] Bytes bytes(std::size_t size) const {
        return Bytes(bytes_).first(std::min(size, kMaxSize));
    }

  private:
    std::array<std::byte, kMaxSize> bytes_{};
};

}  // namespace ernic::fuzz
