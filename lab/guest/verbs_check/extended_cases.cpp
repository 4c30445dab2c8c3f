// SPDX-License-Identifier: MIT
//
// The other way to post: ibv_wr_start(), any number of requests, ibv_wr_complete().
#include <arpa/inet.h>

#include <cstring>

#include "cases.hpp"
#include "check.hpp"

namespace {

constexpr std::size_t kSlot = 8192;
std::size_t slot(std::size_t index) {
    return kSlot * (index + 1);
}

/// Starts the next request of a batch.
void begin(ibv_qp_ex* qp, std::uint64_t id) {
    qp->wr_id = id;
    qp->wr_flags = IBV_SEND_SIGNALED;
}

void set_sges(ibv_qp_ex* qp, const std::vector<ibv_sge>& pieces) {
    if (pieces.size() == 1) {
        ibv_wr_set_sge(qp, pieces[0].lkey, pieces[0].addr, pieces[0].length);
    } else {
        ibv_wr_set_sge_list(qp, pieces.size(), pieces.data());
    }
}

constexpr std::size_t kSize = 5000;
constexpr std::size_t kInline = 100;
constexpr std::size_t kTransfers = 7;
std::size_t size_of(std::size_t transfer) {
    return transfer >= 5 ? kInline : kSize;
}

/// Data of every transfer of a batch; words for the atomics are in slot(20) of both buffers.
struct Batch {
    Batch(Context& c, Pair& p) : context(c), pair(p), seed(fresh_seed()) {
        for (std::size_t i = 0; i < kTransfers; ++i) {
            from.emplace_back(slot(i), size_of(i), i == 4 ? 1 : i % 4 + 1);
            to.emplace_back(slot(i), size_of(i), i == 4 ? 3 : 1);
            fill(context.source, from[i], seed + 10000 * i);
            fill_background(context.target, to[i]);
        }
        memset(context.target.at(slot(20)), 0, 16);
        memset(context.source.at(slot(20)), 0xff, 16);
        for (const std::size_t i : {0U, 1U, 3U, 5U}) {
            pair.b.receive(i, i == 3 ? std::vector<ibv_sge>{} : to[i].sges(context.target));
        }
    }
    void post(ibv_qp_ex* qp);
    void set_inline_list(ibv_qp_ex* qp, const Layout& layout);
    void check();

    Context& context;
    Pair& pair;
    std::uint64_t seed;
    std::vector<Layout> from;
    std::vector<Layout> to;
};

void Batch::set_inline_list(ibv_qp_ex* qp, const Layout& layout) {
    std::vector<ibv_data_buf> blocks;
    for (const Layout::Piece& piece : layout.pieces()) {
        blocks.push_back({context.source.at(piece.offset), piece.size});
    }
    ibv_wr_set_inline_data_list(qp, blocks.size(), blocks.data());
}

/// Every opcode in one batch, with all ways to name local memory.
void Batch::post(ibv_qp_ex* qp) {
    const Buffer& source = context.source;
    const Buffer& target = context.target;
    ibv_wr_start(qp);
    begin(qp, 0);
    ibv_wr_send(qp);
    set_sges(qp, from[0].sges(source));
    begin(qp, 1);
    ibv_wr_send_imm(qp, htonl(11));
    set_sges(qp, from[1].sges(source));
    begin(qp, 2);
    ibv_wr_rdma_write(qp, target.rkey(), target.va(to[2].begin()));
    set_sges(qp, from[2].sges(source));
    begin(qp, 3);
    ibv_wr_rdma_write_imm(qp, target.rkey(), target.va(to[3].begin()), htonl(33));
    set_sges(qp, from[3].sges(source));
    begin(qp, 4);
    ibv_wr_rdma_read(qp, source.rkey(), source.va(from[4].begin()));
    set_sges(qp, to[4].sges(target));
    begin(qp, 5);
    ibv_wr_send(qp);
    set_inline_list(qp, from[5]);
    begin(qp, 6);
    ibv_wr_rdma_write(qp, target.rkey(), target.va(to[6].begin()));
    set_inline_list(qp, from[6]);
    begin(qp, 7);
    ibv_wr_atomic_fetch_add(qp, target.rkey(), target.va(slot(20)), 5);
    set_sges(qp, {source.sge(slot(20), 8)});
    begin(qp, 8);
    ibv_wr_atomic_cmp_swp(qp, target.rkey(), target.va(slot(20)), 5, 77);
    set_sges(qp, {source.sge(slot(20) + 8, 8)});
    require_ok(ibv_wr_complete(qp), "ibv_wr_complete");
}

void Batch::check() {
    static const ibv_wc_opcode opcodes[] = {IBV_WC_SEND,       IBV_WC_SEND,      IBV_WC_RDMA_WRITE,
                                            IBV_WC_RDMA_WRITE, IBV_WC_RDMA_READ, IBV_WC_SEND,
                                            IBV_WC_RDMA_WRITE, IBV_WC_FETCH_ADD, IBV_WC_COMP_SWAP};
    std::uint64_t id = 0;
    for (const ibv_wc_opcode opcode : opcodes) {
        pair.a.finish_send(id++, opcode);
    }
    pair.b.finish_receive(0, kSize);
    require(ntohl(pair.b.finish_receive(1, kSize).imm_data) == 11, "other immediate data");
    require(ntohl(pair.b.finish_receive(3, kSize, IBV_WC_RECV_RDMA_WITH_IMM).imm_data) == 33,
            "other immediate data");
    pair.b.finish_receive(5, kInline);
    for (std::size_t i = 0; i < kTransfers; ++i) {
        verify(context.target, to[i], seed + 10000 * i, size_of(i));
    }
    std::uint64_t words[3];
    memcpy(words, context.source.at(slot(20)), 16);
    memcpy(words + 2, context.target.at(slot(20)), 8);
    require(words[0] == 0 && words[1] == 5 && words[2] == 77, "the atomics left %lu %lu %lu", words[0],
            words[1], words[2]);
}

void one_batch(Context& context) {
    EndpointOptions options = context.options();
    options.extended = true;
    options.inline_bytes = 128;
    Pair pair(context.device(), options);
    ibv_qp_ex* qp = ibv_qp_to_qp_ex(pair.a.qp());
    if (qp == nullptr) {
        skip("the library has no ibv_wr_*() for it");
    }
    for (int round = 0; round < 3; ++round) {
        Batch batch(context, pair);
        batch.post(qp);
        batch.check();
    }
}

}  // namespace

void add_extended_cases(Cases& cases) {
    cases.push_back({"extended/one-batch", one_batch});
}
