// SPDX-License-Identifier: MIT
#include "fuzz/request_source.hpp"

#include <array>

namespace ernic::fuzz {

namespace rw = wire::ionic_rdma;

namespace {

constexpr std::array<rw::SendOp, 11> kOps = {rw::SendOp::Send,           rw::SendOp::SendImmediate,
                                             rw::SendOp::SendInvalidate, rw::SendOp::Write,
                                             rw::SendOp::WriteImmediate, rw::SendOp::Read,
                                             rw::SendOp::CompareSwap,    rw::SendOp::FetchAdd,
                                             rw::SendOp::RegisterMr,     rw::SendOp::LocalInvalidate,
                                             rw::SendOp::BindMw};

/// One input byte in sixteen is at least this.
constexpr std::uint8_t kRare = 0xf0;

be32 high(std::uint64_t address) {
    return be32(static_cast<std::uint32_t>(address >> 32U));
}
be32 low(std::uint64_t address) {
    return be32(static_cast<std::uint32_t>(address));
}

}  // namespace

std::uint64_t RequestSource::address(std::uint32_t region) {
    const std::uint64_t base = region == kTableRegion ? kVirtual : kData;
    switch (input_.u8() % 8U) {
        case 0:
            return base + kDataSize - input_.u8();
        case 1:
            return input_.u64();
        case 2:
            return base - input_.u8();
        case 3:
            return wild_ ? GuestRam::address(input_) : trap_;
        default:
            return base + 8 * input_.below(kDataSize / 8 - 1024);
    }
}

std::uint32_t RequestSource::length() {
    switch (input_.u8() % 8U) {
        case 0:
            return 0;
        case 1:
            return input_.u32();
        case 2:
            return 1U << input_.below(18);
        case 3:
            return 4096U * input_.below(kDataPages);
        default:
            return input_.u8();
    }
}

std::uint32_t RequestSource::some_key() {
    const std::uint32_t region = input_.below(kRegions + 1);
    if (region == kRegions) {
        return input_.u32();
    }
    return input_.u8() >= 0xe0 ? key(region, input_.u8()) : key(region);
}

Entry RequestSource::send(bool datagram, std::uint8_t& op, bool& signalled) {
    op = input_.u8();
    op = op >= kRare ? input_.u8() : static_cast<std::uint8_t>(kOps[op % kOps.size()]);
    if (datagram && input_.u8() < kRare) {
        op = static_cast<std::uint8_t>(input_.flag() ? rw::SendOp::Send : rw::SendOp::SendImmediate);
    }
    std::uint16_t flags = input_.u8() & 0x0fU;
    if (input_.u8() >= kRare) {
        flags |= static_cast<std::uint16_t>(input_.u8() << 8U);
    }
    signalled = (flags & rw::kWqeSignalled) != 0;
    Entry entry(0, op, flags, input_.flag() ? some_key() : input_.u32());
    add_body(entry, static_cast<rw::SendOp>(op), (flags & rw::kWqeInline) != 0);
    disfigure(entry);
    return entry;
}

Entry RequestSource::receive() {
    Entry entry(0, 0, 0, 0);
    add_payload(entry, false);
    disfigure(entry);
    return entry;
}

void RequestSource::disfigure(Entry& entry) {
    if (input_.u8() >= kRare) {
        entry.set_sge_count_or_key(input_.u8());
    }
    if (input_.u8() >= kRare) {  // id, op and flags stay, or nobody could say what to expect
        entry.overwrite(12 + input_.u8(), input_.bytes(input_.u8() % 32U));
    }
}

void RequestSource::add_body(Entry& entry, rw::SendOp op, bool is_inline) {
    switch (op) {
        case rw::SendOp::CompareSwap:
        case rw::SendOp::FetchAdd:
        case rw::SendOp::Write:
        case rw::SendOp::WriteImmediate:
        case rw::SendOp::Read:
            add_remote(entry, op, is_inline);
            return;
        case rw::SendOp::RegisterMr:
            add_registration(entry);
            return;
        case rw::SendOp::BindMw:
            add_bind(entry);
            return;
        case rw::SendOp::LocalInvalidate:
            return;
        default:
            break;
    }
    const be32 ah(input_.below(4));
    const be32 destination(1 + input_.below(7));
    const be32 qkey(input_.u8() >= 0xe0 ? input_.u32() : kQkey);
    entry.set_body(rw::SendBody{ah, destination, qkey, be32(add_payload(entry, is_inline))});
}

void RequestSource::add_remote(Entry& entry, rw::SendOp op, bool is_inline) {
    const std::uint64_t va = address(input_.below(kRegions));
    const be32 rkey(some_key());
    if (op == rw::SendOp::CompareSwap || op == rw::SendOp::FetchAdd) {
        rw::AtomicBodyV2 body{};  // the kernel's layout is the same up to the local address
        body.remote_va_high = high(va);
        body.remote_va_low = low(va);
        body.rkey = rkey;
        body.swap_add_low.set(input_.u8());
        body.compare_low.set(input_.u8());
        body.lkey.set(some_key());
        body.local_va.set(address(1));
        entry.set_body(body);
        return;
    }
    entry.set_body(rw::RdmaBody{high(va), low(va), rkey, be32(add_payload(entry, is_inline))});
}

void RequestSource::add_registration(Entry& entry) {
    rw::RegisterMrBody body{};
    body.va.set(address(input_.below(kRegions)));
    body.length.set(length());
    body.offset.set(input_.u8());
    body.dma_addr.set(wild_ ? GuestRam::address(input_) : kData);
    body.map_count.set(wild_ ? input_.below(5000) : 1);
    body.flags.set(input_.u8());
    body.page_size_log2 = static_cast<std::uint8_t>(12 + input_.below(2));
    entry.set_sge_count_or_key(input_.u8());
    entry.set_body(body);
}

void RequestSource::add_bind(Entry& entry) {
    constexpr std::uint16_t kType1 = 0x4000;
    constexpr std::uint16_t kType2 = 0xc000;
    rw::BindMwBody body{};
    body.va.set(address(input_.below(kRegions)));
    body.length.set(length());
    body.lkey.set(some_key());
    body.flags.set(static_cast<std::uint16_t>(input_.u8() | (input_.flag() ? kType2 : kType1)));
    entry.set_sge_count_or_key(input_.u8());
    entry.set_body(body);
}

std::uint32_t RequestSource::add_payload(Entry& entry, bool is_inline) {
    std::uint32_t sum = 0;
    if (is_inline) {
        const Bytes data = input_.bytes(input_.u8() % 97U);
        entry.set_inline(data);
        sum = static_cast<std::uint32_t>(data.size());
    } else {
        std::array<rw::Sge, 6> sges{};
        const std::uint32_t count = input_.below(6);
        for (std::uint32_t i = 0; i < count; ++i) {
            sges[i] = {be64(address(1)), be32(length()), be32(some_key())};
            sum += sges[i].length.get();
        }
        entry.set_sges(std::span(sges).first(count));
    }
    return input_.u8() >= kRare ? input_.u32() : sum;
}

}  // namespace ernic::fuzz
