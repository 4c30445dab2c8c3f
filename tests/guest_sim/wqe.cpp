// SPDX-License-Identifier: MIT
#include "guest_sim/wqe.hpp"

#include <cstring>

#include "base/byte_order.hpp"
#include "wire/ionic_rdma.hpp"

namespace ernic::guest_sim {
namespace {

namespace w = wire::ionic_rdma;

constexpr std::size_t kBody = sizeof(w::WqeHeader);
/// MW type bits of BIND_MW as the provider writes them.
constexpr std::uint16_t kBindType1 = w::kMrIsWindow;
constexpr std::uint16_t kBindType2 = w::kMrIsWindow | w::kMrInvalidate;

template <WireValue T>
void put(MutableBytes entry, std::size_t offset, const T& value) {
    require(entry.size() >= offset + sizeof(T), "request does not fit its slot");
    std::memcpy(entry.data() + offset, &value, sizeof(T));
}

void put_header(MutableBytes entry, std::uint16_t slot, Op op, std::size_t count_or_key, std::uint16_t flags,
                std::uint32_t immediate_or_key) {
    w::WqeHeader header{};
    header.wqe_id = slot;
    header.op = static_cast<std::uint8_t>(op);
    header.sge_count_or_key = static_cast<std::uint8_t>(count_or_key);
    header.flags.set(flags);
    header.immediate_or_key.set(immediate_or_key);
    put(entry, 0, header);
}

std::uint16_t put_sges(MutableBytes entry, SglFormat format, const SgeList& sges) {
    const bool spec = format == SglFormat::Spec32;
    std::size_t at = spec ? w::kSpecSglOffset : w::kSglOffset;
    std::size_t length_at = w::kSglOffset;
    for (const Sge& sge : sges) {
        put(entry, at, w::Sge{be64(sge.va), be32(sge.length), be32(sge.lkey)});
        at += sizeof(w::Sge);
        if (spec) {
            put(entry, length_at, be32(sge.length));
            length_at += sizeof(be32);
        }
    }
    return spec ? w::kWqeSpec32 : std::uint16_t{0};
}

bool is_atomic(Op op) {
    return op == Op::CompareSwap || op == Op::FetchAdd;
}

bool is_send(Op op) {
    return op == Op::Send || op == Op::SendImmediate || op == Op::SendInvalidate;
}

be32 high(std::uint64_t value) {
    return be32(static_cast<std::uint32_t>(value >> 32U));
}
be32 low(std::uint64_t value) {
    return be32(static_cast<std::uint32_t>(value));
}

void put_atomic(MutableBytes entry, const SendRequest& request) {
    const Sge& target = *request.sges.begin();
    put(entry, kBody,
        w::AtomicBodyV2{high(request.remote_va), low(request.remote_va), be32(request.rkey),
                        high(request.swap_add), low(request.swap_add), high(request.compare),
                        low(request.compare), be32(target.lkey), be64(target.va)});
}

}  // namespace

void encode(MutableBytes entry, std::uint16_t slot, SglFormat format, bool datagram,
            const SendRequest& request) {
    std::memset(entry.data(), 0, entry.size());
    std::uint16_t flags = 0;
    flags |= request.signalled ? w::kWqeSignalled : 0U;
    flags |= request.solicited ? w::kWqeSolicited : 0U;
    flags |= request.fence ? w::kWqeFence : 0U;
    const bool inlined = !request.inline_data.empty();
    const auto length =
        static_cast<std::uint32_t>(inlined ? request.inline_data.size() : request.sges.bytes());
    const std::uint32_t word = request.op == Op::SendInvalidate ? request.invalidate_key : request.immediate;
    if (is_atomic(request.op)) {
        require(request.sges.size() == 1, "an atomic has one SGE");
        put_atomic(entry, request);
        put_header(entry, slot, request.op, 1, flags, 0);
        return;
    }
    if (is_send(request.op)) {
        w::SendBody body{};
        if (datagram) {
            body.ah_id.set(request.ah);
            body.dest_qpn.set(request.remote_qpn);
            body.dest_qkey.set(request.remote_qkey);
        }
        body.length.set(length);
        put(entry, kBody, body);
    } else {
        put(entry, kBody,
            w::RdmaBody{high(request.remote_va), low(request.remote_va), be32(request.rkey), be32(length)});
    }
    if (inlined) {
        require(entry.size() >= w::kSglOffset + request.inline_data.size(),
                "inline data does not fit its slot");
        std::memcpy(entry.data() + w::kSglOffset, request.inline_data.data(), request.inline_data.size());
        flags |= w::kWqeInline;
    } else {
        flags |= put_sges(entry, format, request.sges);
    }
    put_header(entry, slot, request.op, inlined ? 0 : request.sges.size(), flags, word);
}

void encode(MutableBytes entry, std::uint16_t slot, const RegisterRequest& request) {
    std::memset(entry.data(), 0, entry.size());
    w::RegisterMrBody body{};
    body.va.set(request.va);
    body.length.set(request.length);
    const std::uint64_t page = std::uint64_t{1} << request.page_size_log2;
    body.offset.set(request.pages > 1 ? request.va & (page - 1) : 0);
    body.dma_addr.set(request.dma_addr);
    body.map_count.set(request.pages);
    body.flags.set(request.access);
    body.page_size_log2 = request.page_size_log2;
    put(entry, kBody, body);
    put_header(entry, slot, Op::RegisterMr, request.key & 0xffU, request.signalled ? w::kWqeSignalled : 0,
               request.key);
}

void encode(MutableBytes entry, std::uint16_t slot, const BindRequest& request) {
    std::memset(entry.data(), 0, entry.size());
    w::BindMwBody body{};
    body.va.set(request.va);
    body.length.set(request.length);
    body.lkey.set(request.lkey);
    body.flags.set(request.access | (request.type2 ? kBindType2 : kBindType1));
    put(entry, kBody, body);
    put_header(entry, slot, Op::BindMw, request.new_tag, request.signalled ? w::kWqeSignalled : 0,
               request.key);
}

void encode(MutableBytes entry, std::uint16_t slot, const InvalidateRequest& request) {
    std::memset(entry.data(), 0, entry.size());
    put_header(entry, slot, Op::LocalInvalidate, 0, request.signalled ? w::kWqeSignalled : 0, request.key);
}

void encode(MutableBytes entry, std::uint16_t slot, SglFormat format, const ReceiveRequest& request) {
    std::memset(entry.data(), 0, entry.size());
    const std::uint16_t flags = put_sges(entry, format, request.sges);
    put_header(entry, slot, Op{}, request.sges.size(), flags,
               static_cast<std::uint32_t>(request.sges.bytes()));
}

}  // namespace ernic::guest_sim
