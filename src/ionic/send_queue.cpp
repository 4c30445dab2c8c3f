// SPDX-License-Identifier: MIT
#include "ionic/send_queue.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "ionic/recv_queue.hpp"
#include "wire/ionic_rdma.hpp"

namespace ernic::ionic {

namespace rdma_wire = wire::ionic_rdma;
using rdma::Opcode;

namespace {

constexpr std::size_t kBodyOffset = sizeof(rdma_wire::WqeHeader);
constexpr std::size_t kMaxStride = 512;
/// MW type bits in a BIND_MW entry: type 1 = 0x4000, type 2 = 0xC000 (rdma-core 65 provider).
constexpr std::uint16_t kBindType2 = rdma_wire::kMrInvalidate;

constexpr std::uint64_t join(be32 high, be32 low) {
    return std::uint64_t{high.get()} << 32U | low.get();
}

bool opcode_of(std::uint8_t op, Opcode& opcode) {
    switch (static_cast<rdma_wire::SendOp>(op)) {
        case rdma_wire::SendOp::Read:
            opcode = Opcode::Read;
            return true;
        case rdma_wire::SendOp::CompareSwap:
            opcode = Opcode::CompareSwap;
            return true;
        case rdma_wire::SendOp::FetchAdd:
            opcode = Opcode::FetchAdd;
            return true;
        case rdma_wire::SendOp::RegisterMr:
            opcode = Opcode::RegisterMr;
            return true;
        case rdma_wire::SendOp::LocalInvalidate:
            opcode = Opcode::LocalInvalidate;
            return true;
        case rdma_wire::SendOp::BindMw:
            opcode = Opcode::BindMw;
            return true;
        case rdma_wire::SendOp::Send:
            opcode = Opcode::Send;
            return true;
        case rdma_wire::SendOp::Write:
            opcode = Opcode::Write;
            return true;
        case rdma_wire::SendOp::SendImmediate:
            opcode = Opcode::SendImmediate;
            return true;
        case rdma_wire::SendOp::WriteImmediate:
            opcode = Opcode::WriteImmediate;
            return true;
        case rdma_wire::SendOp::SendInvalidate:
            opcode = Opcode::SendInvalidate;
            return true;
    }
    return false;
}

bool decode_payload(Bytes entry, const rdma_wire::WqeHeader& header, rdma::WorkRequest& request) {
    const std::uint16_t flags = header.flags.get();
    if ((flags & rdma_wire::kWqeInline) != 0) {
        const Bytes data = entry.subspan(rdma_wire::kSglOffset);
        if (request.length > data.size() || request.length > request.inline_data.size()) {
            return false;
        }
        request.is_inline = true;
        std::memcpy(request.inline_data.data(), data.data(), request.length);
        return true;
    }
    request.sge_count = header.sge_count_or_key;
    return decode_sges(entry, flags, request.sge_count, request.sges);
}

template <typename Body>
bool decode_atomic_operands(const Body& body, rdma::WorkRequest& request) {
    request.remote_va = join(body.remote_va_high, body.remote_va_low);
    request.rkey = body.rkey.get();
    request.swap_add = join(body.swap_add_high, body.swap_add_low);
    request.compare = join(body.compare_high, body.compare_low);
    request.length = sizeof(std::uint64_t);
    request.sge_count = 1;
    return true;
}

bool decode_atomic(Bytes body, WqeLayout layout, rdma::WorkRequest& request) {
    if (layout == WqeLayout::Kernel) {
        const auto atomic = read_value<rdma_wire::AtomicBodyV1>(body);
        if (!atomic) {
            return false;
        }
        request.sges[0] = {atomic->sge.va.get(), atomic->sge.length.get(), atomic->sge.lkey.get()};
        return decode_atomic_operands(*atomic, request);
    }
    const auto atomic = read_value<rdma_wire::AtomicBodyV2>(body);
    if (!atomic) {
        return false;
    }
    request.sges[0] = {atomic->local_va.get(), sizeof(std::uint64_t), atomic->lkey.get()};
    return decode_atomic_operands(*atomic, request);
}

bool decode_register(Bytes body, const rdma_wire::WqeHeader& header, rdma::WorkRequest& request) {
    const auto registration = read_value<rdma_wire::RegisterMrBody>(body);
    if (!registration) {
        return false;
    }
    request.new_tag = header.sge_count_or_key;
    request.remote_va = registration->va.get();
    request.length = registration->length.get();
    request.page_offset = registration->offset.get();
    request.table = mem::Iova{registration->dma_addr.get()};
    request.map_count = registration->map_count.get();
    request.rights = rights_of(registration->flags.get());
    request.page_size_log2 = registration->page_size_log2;
    return true;
}

bool decode_bind(Bytes body, const rdma_wire::WqeHeader& header, rdma::WorkRequest& request) {
    const auto bind = read_value<rdma_wire::BindMwBody>(body);
    if (!bind) {
        return false;
    }
    request.new_tag = header.sge_count_or_key;
    request.remote_va = bind->va.get();
    request.length = bind->length.get();
    request.lkey = bind->lkey.get();
    request.rights = rights_of(bind->flags.get());
    request.window_type2 = (bind->flags.get() & kBindType2) != 0;
    return true;
}

}  // namespace

rdma::AccessRights rights_of(std::uint16_t flags) {
    return {.local_write = (flags & rdma_wire::kMrLocalWrite) != 0,
            .remote_write = (flags & rdma_wire::kMrRemoteWrite) != 0,
            .remote_read = (flags & rdma_wire::kMrRemoteRead) != 0,
            .remote_atomic = (flags & rdma_wire::kMrRemoteAtomic) != 0,
            .window_bind = (flags & rdma_wire::kMrWindowBind) != 0,
            .zero_based = (flags & rdma_wire::kMrZeroBased) != 0};
}

bool decode_send(Bytes entry, WqeLayout layout, rdma::WorkRequest& request) {
    const auto header = read_value<rdma_wire::WqeHeader>(entry);
    if (!header) {
        request.id = 0;
        request.opcode = Opcode::Send;
        return false;
    }
    const std::uint16_t flags = header->flags.get();
    request.id = header->wqe_id;
    request.fence = (flags & rdma_wire::kWqeFence) != 0;
    request.solicited = (flags & rdma_wire::kWqeSolicited) != 0;
    request.signalled = (flags & rdma_wire::kWqeSignalled) != 0;
    request.is_inline = false;
    request.sge_count = 0;
    request.window_type2 = false;
    request.immediate_or_key = header->immediate_or_key.get();
    request.length = 0;
    if (!opcode_of(header->op, request.opcode)) {
        request.opcode = Opcode::Send;
        return false;
    }
    const Bytes body = entry.subspan(kBodyOffset);
    switch (request.opcode) {
        case Opcode::Send:
        case Opcode::SendImmediate:
        case Opcode::SendInvalidate: {
            const auto send = read_value<rdma_wire::SendBody>(body);
            if (!send) {
                return false;
            }
            request.ah_id = send->ah_id.get();
            request.destination_qpn = send->dest_qpn.get();
            request.destination_qkey = send->dest_qkey.get();
            request.rkey = 0;
            request.remote_va = 0;
            request.length = send->length.get();
            return decode_payload(entry, *header, request);
        }
        case Opcode::Write:
        case Opcode::WriteImmediate:
        case Opcode::Read: {
            const auto access = read_value<rdma_wire::RdmaBody>(body);
            if (!access) {
                return false;
            }
            request.remote_va = join(access->remote_va_high, access->remote_va_low);
            request.rkey = access->rkey.get();
            request.length = access->length.get();
            return decode_payload(entry, *header, request);
        }
        case Opcode::CompareSwap:
        case Opcode::FetchAdd:
            return decode_atomic(body, layout, request);
        case Opcode::RegisterMr:
            return decode_register(body, *header, request);
        case Opcode::BindMw:
            return decode_bind(body, *header, request);
        case Opcode::LocalInvalidate:
            return true;
    }
    return false;
}

bool fetch_send(const mem::GuestMemory& memory, const mem::Ring& ring, std::uint32_t position,
                WqeLayout layout, rdma::WorkRequest& request) {
    std::array<std::byte, kMaxStride> entry;
    const std::size_t size = std::min(ring.stride(), entry.size());
    if (!ring.read(memory, position, MutableBytes(entry).first(size))) {
        request.id = 0;
        request.opcode = Opcode::Send;
        return false;
    }
    return decode_send(Bytes(entry).first(size), layout, request);
}

}  // namespace ernic::ionic
