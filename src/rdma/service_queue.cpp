// SPDX-License-Identifier: MIT
#include "rdma/service_queue.hpp"

#include <algorithm>
#include <bit>
#include <cassert>

#include "rdma/engine.hpp"

namespace ernic::rdma {
namespace {

/// What the engine believes about the rings: more than ever stands in them.
constexpr std::uint32_t kRingEntries = 0x10000;
constexpr std::size_t kFirstRequests = 16;

/// The service's own memory: plain addresses (see Endpoint).
constexpr std::uint32_t kPlainKey = 0;
constexpr std::uint32_t kPd = 1;

std::uint64_t address_of(const std::byte* bytes) {
    return std::bit_cast<std::uintptr_t>(bytes);
}

}  // namespace

ServiceQueue::ServiceQueue(Engine& engine, User& user, std::uint32_t qpn, QpType type,
                           std::span<const Buffer> buffers)
    : user_(user),
      buffers_(buffers.begin(), buffers.end()),
      requests_(kFirstRequests),
      qp_(engine, *this,
          {.qpn = qpn,
           .pd = kPd,
           .type = type,
           .privileged = true,
           .remote_privileged = false,
           .sq_depth = kRingEntries,
           .rq_depth = kRingEntries}) {
    assert(!buffers.empty() && buffers.size() <= kMostBuffers);
    free_buffers_.reserve(buffers_.size());
    for (std::uint32_t i = static_cast<std::uint32_t>(buffers_.size()); i != 0; --i) {
        free_buffers_.push_back(i - 1);
    }
}

void ServiceQueue::bring_up(const QpAttributes& attributes) {
    qp_.enter(QpState::Init);
    qp_.attributes() = attributes;
    receives_posted_ = static_cast<std::uint32_t>(free_buffers_.size());
    qp_.receive_posted(receives_posted_ & (kRingEntries - 1));
    qp_.enter(QpState::Rtr);
    qp_.enter(QpState::Rts);
}

void ServiceQueue::post(const Request& request) {
    if (outstanding() == requests_.size()) {
        std::vector<Request> larger(2 * requests_.size());
        for (std::uint32_t position = completed_; position != producer_; ++position) {
            larger[position & (larger.size() - 1)] = at(position);
        }
        requests_ = std::move(larger);
    }
    at(producer_++) = request;
    if (!failed_) {
        qp_.send_posted(producer_ & (kRingEntries - 1));
    }
}

void ServiceQueue::post_receive(std::uint32_t buffer) {
    if (failed_) {
        return;
    }
    free_buffers_.push_back(buffer);
    qp_.receive_posted(++receives_posted_ & (kRingEntries - 1));
}

bool ServiceQueue::fetch_send(std::uint32_t position, WorkRequest& request) {
    const Request& from = at(position);
    request.id = position;
    request.opcode = from.opcode;
    request.fence = request.solicited = request.is_inline = false;
    request.signalled = true;
    request.immediate_or_key = request.rkey = from.key;
    request.remote_va = from.remote_address;
    request.ah_id = from.address_handle;
    request.destination_qpn = from.destination_qpn;
    // The queue pair's own (InfiniBand 10.2.5).
    request.destination_qkey = 0x80000000U;
    request.sge_count = from.piece_count;
    request.length = 0;
    for (std::uint8_t i = 0; i < from.piece_count; ++i) {
        const auto size = static_cast<std::uint32_t>(from.pieces[i].size);
        request.sges[i] = {address_of(from.pieces[i].data), size, kPlainKey};
        request.length += size;
    }
    return true;
}

bool ServiceQueue::fetch_receive(std::uint32_t position, ReceiveRequest& request) {
    // A message whose beginning was lost takes the same request again.
    if (fetched_ != position) {
        fetched_ = position;
        fetched_buffer_ = free_buffers_.back();
        free_buffers_.pop_back();
    }
    const Buffer& buffer = buffers_[fetched_buffer_];
    request.id = fetched_buffer_;
    request.sge_count = 2;
    request.sges[0] = {address_of(buffer.first.data()), static_cast<std::uint32_t>(buffer.first.size()),
                       kPlainKey};
    request.sges[1] = {address_of(buffer.second.data()), static_cast<std::uint32_t>(buffer.second.size()),
                       kPlainKey};
    return true;
}

void ServiceQueue::send_completed(const SendCompletion& completion) {
    if (completion.status != CompletionStatus::Success) {
        return;  // it stays for end_requests(), as all behind it
    }
    const Request& request = at(completed_);
    assert(completion.position == completed_);
    const std::uint32_t number = request.number;
    void* const context = request.context;
    ++completed_;
    user_.sent(number, context);
}

void ServiceQueue::receive_completed(const ReceiveCompletion& completion) {
    if (completion.status == CompletionStatus::Success) {
        user_.received(static_cast<std::uint32_t>(completion.id), completion);
    }
}

void ServiceQueue::flushed(Side side) {
    (void)side;
    if (!failed_) {
        failed_ = true;
        user_.failed();
    }
}

}  // namespace ernic::rdma
