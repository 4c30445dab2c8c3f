// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.hpp"
#include "mem/guest_memory.hpp"
#include "rdma/queue_pair.hpp"
#include "rdma/types.hpp"

namespace ernic::rdma {

/// The queue pair of a service of this process, and its two rings. What is sent and received lies in memory
/// of the process and is named by its address. Thread: device.
class ServiceQueue final : public QueueOwner {
  public:
    /// Told what becomes of the requests. No call may destroy the queue, or close it.
    class User {
      public:
        virtual ~User() = default;
        /// A message has arrived in receive buffer `buffer`, which stays taken until post_receive(). Comes
        /// from within the sender's turn. `route` as in ReceiveCompletion.
        virtual void received(std::uint32_t buffer, const ReceiveCompletion& completion) = 0;
        /// The oldest request has been acknowledged or answered. `number` and `context` are what was given.
        virtual void sent(std::uint32_t number, void* context) = 0;
        /// The queue pair has failed: no call follows, and end_requests() tells about what was under way.
        virtual void failed() = 0;
    };

    /// One receive buffer: in these two pieces, the second of which may be empty.
    struct Buffer {
        MutableBytes first;
        MutableBytes second;
    };

    /// `buffers` are all posted. The memory behind them, engine and user must outlive the queue.
    /// Precondition: at least one and at most kMostBuffers; `qpn` is free.
    ServiceQueue(Engine& engine, User& user, std::uint32_t qpn, QpType type, std::span<const Buffer> buffers);
    static constexpr std::uint32_t kMostBuffers = 0x8000;

    [[nodiscard]] QueuePair& qp() { return qp_; }
    [[nodiscard]] const QueuePair& qp() const { return qp_; }

    /// Through INIT and RTR to RTS, with these attributes. The receive buffers are posted.
    void bring_up(const QpAttributes& attributes);

    /// Requests, which run in the order of these calls. What they name must stay until sent(). On a queue
    /// that has failed they are forgotten, and end_requests() tells.
    struct Request {
        Opcode opcode = Opcode::Send;
        std::uint8_t piece_count = 0;
        /// The key to invalidate (SendInvalidate), or of the peer's memory.
        std::uint32_t key = 0;
        std::uint64_t remote_address = 0;
        /// Of a datagram.
        std::uint32_t address_handle = 0;
        std::uint32_t destination_qpn = 0;
        std::uint32_t number = 0;
        void* context = nullptr;
        std::array<mem::SpanList::Piece, kMaxSges> pieces{};
    };
    void post(const Request& request);

    /// Buffer `buffer` may be filled again. Precondition: received() has named it since it was last posted.
    void post_receive(std::uint32_t buffer);

    /// Requests that have not ended.
    [[nodiscard]] std::uint32_t outstanding() const { return producer_ - completed_; }
    /// Hands each request that has not ended to `visit(number, context)`, oldest first, and forgets it.
    /// Precondition: the queue has failed.
    template <typename Visit>
    void end_requests(Visit&& visit) {
        while (completed_ != producer_) {
            const Request& request = at(completed_++);
            visit(request.number, request.context);
        }
    }
    /// The queue pair is in Error, and failed() has been called.
    [[nodiscard]] bool failed() const { return failed_; }

    bool fetch_send(std::uint32_t position, WorkRequest& request) override;
    bool fetch_receive(std::uint32_t position, ReceiveRequest& request) override;
    void send_completed(const SendCompletion& completion) override;
    void send_batch_done() override {}
    void receive_completed(const ReceiveCompletion& completion) override;
    void flushed(Side side) override;
    void raise(QpEvent event) override { (void)event; }

  private:
    /// Requests stand at their position modulo the size, a power of two that grows when it must.
    [[nodiscard]] Request& at(std::uint32_t position) { return requests_[position & (requests_.size() - 1)]; }

    User& user_;
    std::vector<Buffer> buffers_;
    /// Buffers that are posted. The one that was used last is filled next, because the caches know it.
    std::vector<std::uint32_t> free_buffers_;
    std::uint32_t receives_posted_ = 0;
    /// The receive request that was fetched last, and the buffer it got.
    std::optional<std::uint32_t> fetched_;
    std::uint32_t fetched_buffer_ = 0;
    std::vector<Request> requests_;
    std::uint32_t producer_ = 0;
    std::uint32_t completed_ = 0;
    bool failed_ = false;
    QueuePair qp_;
};

}  // namespace ernic::rdma
