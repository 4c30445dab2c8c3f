// SPDX-License-Identifier: MIT
#include "nvmeof/rdma_channel.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <new>

namespace ernic::nvmeof {
namespace {

/// The number of requests that are not the response of a slot.
constexpr std::uint32_t kNoSlot = UINT32_MAX;

constexpr std::size_t whole_pages(std::size_t size) {
    return (size + PageBuffer::kPage - 1) / PageBuffer::kPage * PageBuffer::kPage;
}

}  // namespace

void TransportCounters::register_metrics(metrics::Registry& registry) const {
    const metrics::CounterGroup add(registry, "nvmeof.transport.");
    add("connections", "connections", "connections of queues accepted", connections);
    add("refused", "connections", "connections of queues refused", refused);
    add("lost", "connections",
        "connections that ended by a failure; high: a host has gone, or names bad keys", lost);
    add("capsules", "capsules", "command capsules received", capsules);
    add("in_capsule_bytes", "bytes", "data that came in command capsules", in_capsule_bytes);
    add("bytes_to_hosts", "bytes", "data written to hosts' memory", bytes_to_hosts);
    add("bytes_from_hosts", "bytes", "data read from hosts' memory", bytes_from_hosts);
    add("responses", "capsules", "response capsules sent", responses);
    add("invalidations", "capsules", "responses that invalidated the host's key", invalidations);
    add("bad_capsules", "capsules", "messages too short for a command, which ended their connection",
        bad_capsules);
}

PageBuffer::PageBuffer(std::size_t size)
    : bytes_(static_cast<std::byte*>(std::aligned_alloc(kPage, std::max(whole_pages(size), kPage)))) {
    if (!bytes_) {
        throw std::bad_alloc();
    }
}

std::size_t RdmaChannel::receive_bytes(std::uint16_t depth, std::uint32_t in_capsule_bytes) {
    return depth * (whole_pages(in_capsule_bytes) + kSubmissionBytes);
}

RdmaChannel::RdmaChannel(rdma::Endpoint& endpoint, rdma::ConnectionManager& manager, Runner& runner,
                         Acceptor& acceptor, TransportCounters& counters, const Setup& setup)
    : manager_(manager),
      runner_(runner),
      acceptor_(acceptor),
      counters_(counters),
      setup_(setup),
      data_bytes_(static_cast<std::uint32_t>(whole_pages(setup.in_capsule_bytes))),
      memory_(receive_bytes(setup.depth, setup.in_capsule_bytes)),
      completions_(setup.depth),
      queue_(endpoint.engine(), *this, setup.qpn, rdma::QpType::Rc, buffers()) {
    arrivals_.reserve(setup.depth);
}

std::vector<rdma::ServiceQueue::Buffer> RdmaChannel::buffers() {
    std::vector<rdma::ServiceQueue::Buffer> slots;
    slots.reserve(setup_.depth);
    const std::size_t submissions = std::size_t{setup_.depth} * data_bytes_;
    for (std::size_t slot = 0; slot < setup_.depth; ++slot) {
        slots.push_back({memory_.part(submissions + slot * kSubmissionBytes, kSubmissionBytes),
                         memory_.part(slot * data_bytes_, setup_.in_capsule_bytes)});
    }
    return slots;
}

bool RdmaChannel::work(std::uint32_t& commands) {
    if (violated_ && !queue_.failed()) {
        counters_.bad_capsules.add();
        queue_.qp().fail();
    }
    if (queue_.failed()) {
        finish();
        return false;
    }
    if (handler_ == nullptr && (established_ || next_arrival_ != arrivals_.size())) {
        manager_.heard(setup_.connection);
        handler_ = &acceptor_.accepted(setup_.request, *this);
    }
    const std::size_t submissions = std::size_t{setup_.depth} * data_bytes_;
    while (next_arrival_ != arrivals_.size() && commands != 0 && !queue_.failed() && !runner_.late()) {
        const Arrival arrival = arrivals_[next_arrival_++];
        if (next_arrival_ == arrivals_.size()) {
            arrivals_.clear();
            next_arrival_ = 0;
        }
        --commands;
        const std::size_t data = arrival.length - kSubmissionBytes;
        counters_.capsules.add();
        counters_.in_capsule_bytes.add(data);
        handler_->command(arrival.slot,
                          memory_.part(submissions + arrival.slot * kSubmissionBytes, kSubmissionBytes),
                          memory_.part(std::size_t{arrival.slot} * data_bytes_, data));
    }
    if (closing_ && queue_.outstanding() == 0 && !queue_.failed()) {
        queue_.qp().fail();
    }
    return next_arrival_ != arrivals_.size() || queue_.failed();
}

void RdmaChannel::finish() {
    if (finished_) {
        return;
    }
    if (!closing_) {
        counters_.lost.add();
    }
    manager_.disconnect(setup_.connection);
    queue_.end_requests([](std::uint32_t, void* context) {
        if (context != nullptr) {
            static_cast<Transfer*>(context)->transferred(false);
        }
    });
    if (handler_ != nullptr) {
        handler_->gone();
    }
    finished_ = true;
}

void RdmaChannel::abandon() {
    closing_ = true;
    queue_.qp().fail();
    finish();
}

void RdmaChannel::transfer(rdma::Opcode opcode, const HostMemory& memory, std::uint32_t offset,
                           const mem::SpanList& pieces, Transfer* done) {
    rdma::ServiceQueue::Request request;
    request.opcode = opcode;
    request.key = memory.key;
    request.remote_address = memory.address + offset;
    request.number = kNoSlot;
    std::uint64_t length = 0;
    for (const mem::SpanList::Piece& piece : pieces) {
        if (request.piece_count == request.pieces.size()) {
            queue_.post(request);
            request.remote_address += length;
            request.piece_count = 0;
            length = 0;
        }
        request.pieces[request.piece_count++] = piece;
        length += piece.size;
    }
    request.context = done;
    queue_.post(request);
}

void RdmaChannel::write_host(const HostMemory& to, std::uint32_t offset, const mem::SpanList& from,
                             Transfer* done) {
    counters_.bytes_to_hosts.add(from.bytes());
    transfer(rdma::Opcode::Write, to, offset, from, done);
}

void RdmaChannel::read_host(const HostMemory& from, std::uint32_t offset, const mem::SpanList& to,
                            Transfer& done) {
    counters_.bytes_from_hosts.add(to.bytes());
    transfer(rdma::Opcode::Read, from, offset, to, &done);
}

void RdmaChannel::respond(std::uint16_t slot, Bytes completion, std::optional<std::uint32_t> invalidate_key) {
    assert(slot < setup_.depth && completion.size() == kCompletionBytes);
    counters_.responses.add();
    std::memcpy(completions_[slot].data(), completion.data(), kCompletionBytes);
    rdma::ServiceQueue::Request request;
    if (invalidate_key) {
        counters_.invalidations.add();
        request.opcode = rdma::Opcode::SendInvalidate;
        request.key = *invalidate_key;
    }
    request.number = slot;
    request.piece_count = 1;
    request.pieces[0] = {completions_[slot].data(), kCompletionBytes};
    queue_.post(request);
}

void RdmaChannel::close() {
    closing_ = true;
    runner_.wake(*this);
}

void RdmaChannel::received(std::uint32_t buffer, const rdma::ReceiveCompletion& completion) {
    if (completion.length < kSubmissionBytes) {
        violated_ = true;
    } else {
        arrivals_.push_back({static_cast<std::uint16_t>(buffer), completion.length});
    }
    runner_.wake(*this);
}

void RdmaChannel::sent(std::uint32_t number, void* context) {
    if (number == kNoSlot) {
        if (context != nullptr) {
            static_cast<Transfer*>(context)->transferred(true);
        }
    } else {
        handler_->responded(static_cast<std::uint16_t>(number));
        queue_.post_receive(number);
    }
    if (closing_ && queue_.outstanding() == 0) {
        runner_.wake(*this);
    }
}

void RdmaChannel::failed() {
    runner_.wake(*this);
}

void RdmaChannel::established() {
    established_ = true;
    runner_.wake(*this);
}

void RdmaChannel::ended() {
    closing_ = true;
    queue_.qp().fail();
}

}  // namespace ernic::nvmeof
