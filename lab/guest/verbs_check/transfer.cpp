// SPDX-License-Identifier: MIT
#include "transfer.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "pattern.hpp"

namespace {

constexpr std::uint64_t kBackground = 0xb0;
/// Odd, so that pieces start at every alignment.
constexpr std::size_t kGap = 67;

/// Where the wrong bytes seem to come from: this shortens the search for the fault.
const char* guess(const unsigned char* at, std::size_t readable, std::uint64_t offset, std::uint64_t seed,
                  std::uint64_t position) {
    const std::size_t size = std::min<std::size_t>(readable, 16);
    if (!find_difference(at, size, kBackground, offset)) {
        return "; it is what was there before";
    }
    if (std::all_of(at, at + size, [](unsigned char byte) { return byte == 0; })) {
        return "; it is zeros";
    }
    if (size == 16) {
        for (std::uint64_t shift = 1; shift <= 8192; ++shift) {
            if (!find_difference(at, size, seed, position + shift)) {
                return "; it is data of a later place";
            }
            if (shift <= position && !find_difference(at, size, seed, position - shift)) {
                return "; it is data of an earlier place";
            }
        }
    }
    return "";
}

void verify_background(const Buffer& buffer, std::size_t from, std::size_t to, const char* where) {
    if (const auto at = find_difference(buffer.at(from), to - from, kBackground, from)) {
        fail("the byte at %zu of %zu %s was overwritten with 0x%02x", *at, to - from, where,
             *buffer.at(from + *at));
    }
}

}  // namespace

Layout::Layout(std::size_t offset, std::size_t size, std::size_t count) {
    std::size_t left = size;
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t fair = left / (count - i);
        // Alternately a bit more and a bit less, and odd.
        const std::size_t piece =
            i + 1 == count ? left : std::min(left, (fair + (i % 2 == 0 ? fair / 3 : 0)) | std::size_t{1});
        pieces_.push_back({offset, piece});
        offset += piece + kGap;
        left -= piece;
    }
}

std::vector<ibv_sge> Layout::sges(const Buffer& buffer) const {
    std::vector<ibv_sge> list;
    for (const Piece& piece : pieces_) {
        list.push_back(buffer.sge(piece.offset, piece.size));
    }
    return list;
}

void Layout::shorten(std::size_t size) {
    std::size_t kept = 1;
    for (; kept < pieces_.size() && size > pieces_[kept - 1].size; ++kept) {
        size -= pieces_[kept - 1].size;
    }
    pieces_.erase(pieces_.begin() + static_cast<std::ptrdiff_t>(kept), pieces_.end());
    pieces_.back().size = std::min(pieces_.back().size, size);
}

std::size_t Layout::place(std::size_t position) const {
    for (const Piece& piece : pieces_) {
        if (position < piece.size) {
            return piece.offset + position;
        }
        position -= piece.size;
    }
    return end();
}

void fill(const Buffer& buffer, const Layout& layout, std::uint64_t seed) {
    std::size_t position = 0;
    for (const Layout::Piece& piece : layout.pieces()) {
        fill_pattern(buffer.at(piece.offset), piece.size, seed, position);
        position += piece.size;
    }
}

void fill_background(const Buffer& buffer, const Layout& layout) {
    const std::size_t from = layout.begin() - kGuard;
    fill_pattern(buffer.at(from), layout.end() + kGuard - from, kBackground, from);
}

void verify(const Buffer& buffer, const Layout& layout, std::uint64_t seed, std::size_t size) {
    std::size_t position = 0;
    std::size_t checked = layout.begin() - kGuard;
    for (const Layout::Piece& piece : layout.pieces()) {
        verify_background(buffer, checked, piece.offset,
                          position == 0 ? "before the target" : "between two pieces");
        const std::size_t data = std::min(piece.size, size - position);
        const unsigned char* bytes = buffer.at(piece.offset);
        if (const auto at = find_difference(bytes, data, seed, position)) {
            char text[256];
            snprintf(text, sizeof text,
                     "byte %zu of %zu (piece %zu) is 0x%02x, not 0x%02x; %zu wrong in this piece%s",
                     position + *at, size, static_cast<std::size_t>(&piece - layout.pieces().data()),
                     bytes[*at], pattern_byte(seed, position + *at),
                     count_differences(bytes, data, seed, position),
                     guess(bytes + *at, data - *at, piece.offset + *at, seed, position + *at));
            throw Corrupted(text, position + *at);
        }
        position += data;
        checked = piece.offset + data;
    }
    verify_background(buffer, checked, layout.end() + kGuard, "behind the data");
}

const char* name_of(Op op) {
    static const char* const names[] = {"send", "send-imm", "send-inv", "write", "write-imm", "read"};
    return names[static_cast<int>(op)];
}

ibv_wr_opcode request_opcode(Op op) {
    static const ibv_wr_opcode opcodes[] = {
        IBV_WR_SEND,       IBV_WR_SEND_WITH_IMM,       IBV_WR_SEND_WITH_INV,
        IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ};
    return opcodes[static_cast<int>(op)];
}

ibv_wc_opcode completion_opcode(Op op) {
    if (op == Op::Read) {
        return IBV_WC_RDMA_READ;
    }
    return op == Op::Write || op == Op::WriteImm ? IBV_WC_RDMA_WRITE : IBV_WC_SEND;
}

void run_transfer(const Buffer& source, const Buffer& target, Endpoint& by, Endpoint& peer,
                  const Transfer& transfer) {
    const Op op = transfer.op;
    const Layout from(transfer.source_at, transfer.size, transfer.source_pieces);
    const Layout to(transfer.target_at, transfer.size, transfer.target_pieces);
    const std::uint64_t seed = fresh_seed();
    const std::uint64_t id = by.next_id();
    const std::uint64_t receive_id = peer.next_id();
    const auto immediate = static_cast<std::uint32_t>(seed * 0x9e3779b9U);

    fill(source, from, seed);
    fill_background(target, to);
    if (transfer.plant) {
        *source.at(from.place(*transfer.plant)) ^= 0x40;
    }

    std::optional<Window> window;
    if (op == Op::SendInv) {
        window.emplace(by.device(), IBV_MW_TYPE_2);
        window->bind(peer, target, 0, 4096, IBV_ACCESS_REMOTE_WRITE);
    }
    if (takes_receive(op)) {
        peer.receive(receive_id, scatters_to_receive(op) ? to.sges(target) : std::vector<ibv_sge>{});
    }

    SendRequest request(request_opcode(op), id);
    request.local(op == Op::Read ? to.sges(target) : from.sges(source)).flags(transfer.flags);
    if (op == Op::Write || op == Op::WriteImm) {
        request.remote(target.va(to.begin()), target.rkey());
    } else if (op == Op::Read) {
        request.remote(source.va(from.begin()), source.rkey());
    }
    if (op == Op::SendImm || op == Op::WriteImm) {
        request.immediate(immediate);
    } else if (op == Op::SendInv) {
        request.invalidate(window->rkey());
    }
    by.post(request);

    if (takes_receive(op)) {
        const ibv_wc completion = peer.finish_receive(
            receive_id, transfer.size, op == Op::WriteImm ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV);
        const unsigned expected = op == Op::Send      ? 0U
                                  : op == Op::SendInv ? unsigned{IBV_WC_WITH_INV}
                                                      : unsigned{IBV_WC_WITH_IMM};
        require((completion.wc_flags & (IBV_WC_WITH_IMM | IBV_WC_WITH_INV)) == expected,
                "the receive has flags 0x%x", completion.wc_flags);
        require(op == Op::Send || op == Op::SendInv || ntohl(completion.imm_data) == immediate,
                "immediate data 0x%x, not 0x%x", ntohl(completion.imm_data), immediate);
        const std::uint32_t invalidated = window ? window->rkey() : 0;
        require(!window || completion.invalidated_rkey == invalidated, "invalidated rkey 0x%x, not 0x%x",
                completion.invalidated_rkey, invalidated);
    }
    by.finish_send(id, completion_opcode(op));

    verify(target, to, seed, transfer.size);
    if (!transfer.plant && transfer.size <= 65536) {
        for (std::size_t i = 0, position = 0; i < from.pieces().size(); position += from.pieces()[i++].size) {
            require(
                !find_difference(source.at(from.pieces()[i].offset), from.pieces()[i].size, seed, position),
                "the source was changed");
        }
    }
}

std::uint64_t fresh_seed() {
    static std::uint64_t last = 1000;
    return ++last;
}
