// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "base/bytes.hpp"
#include "guest_sim/error.hpp"
#include "wire/ethernet.hpp"
#include "wire/ionic_rdma.hpp"

/// Work requests and completions in verbs terms.
namespace ernic::guest_sim {

using Op = wire::ionic_rdma::SendOp;
using ReceiveOp = wire::ionic_rdma::ReceiveOp;
using Status = wire::ionic_rdma::CqeStatus;

struct Sge {
    std::uint64_t va = 0;
    std::uint32_t length = 0;
    std::uint32_t lkey = 0;
};

/// Up to eight SGEs without a heap allocation.
class SgeList {
  public:
    SgeList() = default;
    SgeList(std::initializer_list<Sge> sges) {
        for (const Sge& sge : sges) {
            add(sge);
        }
    }
    void add(const Sge& sge) {
        require(count_ < sges_.size(), "more than eight SGEs");
        sges_[count_++] = sge;
    }
    [[nodiscard]] std::size_t size() const { return count_; }
    [[nodiscard]] const Sge* begin() const { return sges_.data(); }
    [[nodiscard]] const Sge* end() const { return sges_.data() + count_; }
    [[nodiscard]] std::uint64_t bytes() const {
        std::uint64_t sum = 0;
        for (const Sge& sge : *this) {
            sum += sge.length;
        }
        return sum;
    }

  private:
    std::array<Sge, wire::ionic_rdma::kMaxSges> sges_{};
    std::size_t count_ = 0;
};

/// SEND*, WRITE*, READ and atomics.
struct SendRequest {
    std::uint64_t wr_id = 0;
    Op op = Op::Send;
    SgeList sges{};
    /// Not empty: the payload travels inside the request.
    Bytes inline_data{};
    std::uint64_t remote_va = 0;
    std::uint32_t rkey = 0;
    std::uint32_t immediate = 0;
    std::uint32_t invalidate_key = 0;
    std::uint64_t compare = 0;
    std::uint64_t swap_add = 0;
    bool signalled = true;
    bool solicited = false;
    bool fence = false;
    /// Datagrams only.
    std::uint32_t ah = 0;
    std::uint32_t remote_qpn = 0;
    std::uint32_t remote_qkey = 0;
};

/// REG_MR: `key` already carries the new tag.
struct RegisterRequest {
    std::uint64_t wr_id = 0;
    std::uint32_t key = 0;
    std::uint64_t va = 0;
    std::uint64_t length = 0;
    /// The data itself for one page, a table of page addresses for more.
    std::uint64_t dma_addr = 0;
    std::uint32_t pages = 1;
    std::uint8_t page_size_log2 = 12;
    std::uint16_t access = 0;
    bool signalled = true;
};

/// BIND_MW: `key` is the window's present key, `new_tag` the low byte of the key it gets.
struct BindRequest {
    std::uint64_t wr_id = 0;
    std::uint32_t key = 0;
    std::uint8_t new_tag = 0;
    std::uint32_t lkey = 0;
    std::uint64_t va = 0;
    std::uint64_t length = 0;
    std::uint16_t access = 0;
    bool type2 = true;
    bool signalled = true;
};

struct InvalidateRequest {
    std::uint64_t wr_id = 0;
    std::uint32_t key = 0;
    bool signalled = true;
};

struct ReceiveRequest {
    std::uint64_t wr_id = 0;
    SgeList sges{};
};

/// What ibv_poll_cq returns.
struct WorkCompletion {
    std::uint64_t wr_id = 0;
    Status status = Status::Ok;
    bool receive = false;
    std::uint32_t qpn = 0;
    /// Sends: what was asked for. Receives: what arrived.
    Op op = Op::Send;
    ReceiveOp receive_op = ReceiveOp::Send;
    std::uint32_t length = 0;
    /// Immediate data in host order, or the invalidated key.
    std::uint32_t immediate_or_key = 0;
    std::uint32_t source_qpn = 0;
    bool ipv4 = false;
    bool has_vlan = false;
    std::uint16_t vlan = 0;
    wire::MacAddress source_mac{};
};

}  // namespace ernic::guest_sim
