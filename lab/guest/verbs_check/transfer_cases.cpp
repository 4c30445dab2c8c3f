// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "cases.hpp"
#include "check.hpp"
#include "pattern.hpp"

namespace {

constexpr Op kOps[] = {Op::Send, Op::SendImm, Op::SendInv, Op::Write, Op::WriteImm, Op::Read};

/// Each end is requester in turn, because the two QPs of a pair may be served by different parts of a device.
void run_in_turn(Context& context, const Transfer& transfer) {
    static bool second = false;
    second = !second;
    Pair& pair = context.pair();
    Endpoint& by = second ? pair.b : pair.a;
    Endpoint& peer = second ? pair.a : pair.b;
    run_transfer(context.source, context.target, by, peer, transfer);
}

/// The checker itself: if this passed wrong data, nothing else would mean anything.
void check_the_checker(Context& context) {
    const Layout layout(4096, 10007, 5);
    const std::uint64_t seed = fresh_seed();
    const auto must_fail = [&](const char* what) {
        try {
            verify(context.target, layout, seed, 10007);
        } catch (const Failure&) {
            fill_background(context.target, layout);
            fill(context.target, layout, seed);
            return;
        }
        fail("%s goes unnoticed", what);
    };
    fill_background(context.target, layout);
    fill(context.target, layout, seed);
    verify(context.target, layout, seed, 10007);
    for (const std::size_t position : {0UL, 1UL, 63UL, 4095UL, 4096UL, 10006UL}) {
        *context.target.at(layout.place(position)) ^= 1;
        must_fail("one wrong bit");
    }
    for (const std::size_t shift : {1UL, 2UL, 8UL, 64UL, 256UL, 1024UL}) {
        memmove(context.target.at(layout.begin()), context.target.at(layout.begin() + shift), 500);
        must_fail("shifted data");
    }
    fill_background(context.target, layout);
    must_fail("a missing message");
    fill(context.target, layout, fresh_seed());
    must_fail("another message");
    *context.target.at(layout.begin() - 1) ^= 1;
    must_fail("a byte written before the target");
    *context.target.at(layout.end()) ^= 1;
    must_fail("a byte written behind the target");
    *context.target.at(layout.pieces()[1].offset - 1) ^= 1;
    must_fail("a byte written between two pieces");
}

void split_both_sides(Context& context, Op op, std::size_t pieces) {
    const std::size_t limit = context.options().sges;
    if (pieces > limit) {
        skip("the device takes %zu SGEs", limit);
    }
    for (const std::size_t size : {pieces, std::size_t{997}, std::size_t{20011}, std::size_t{100003}}) {
        Transfer transfer{op, size};
        transfer.source_at = 8192 + 13;
        transfer.target_at = 12288 + 5;
        if (op != Op::Read) {
            transfer.source_pieces = pieces;
        }
        if (scatters_to_receive(op)) {
            // The other way round, so that cuts on the two sides do not coincide.
            transfer.target_pieces = limit + 1 - pieces;
        } else if (op == Op::Read) {
            transfer.target_pieces = pieces;
        }
        run_in_turn(context, transfer);
    }
}

void empty_pieces(Context& context) {
    Pair& pair = context.pair();
    const Layout to(4096, 300);
    const std::uint64_t seed = fresh_seed();
    fill(context.source, Layout(4096, 300), seed);
    fill_background(context.target, to);
    pair.b.receive(1, {context.target.sge(0, 0), context.target.sge(4096, 100), context.target.sge(9000, 0),
                       context.target.sge(4196, 200)});
    pair.a.post(SendRequest(IBV_WR_SEND, 2)
                    .local({context.source.sge(4096, 299), context.source.sge(100, 0),
                            context.source.sge(4395, 1), context.source.sge(0, 0)}));
    pair.b.finish_receive(1, 300);
    pair.a.finish_send(2, IBV_WC_SEND);
    verify(context.target, to, seed, 300);
}

void short_message(Context& context) {
    Pair& pair = context.pair();
    const Layout from(4096, 1500);
    const Layout to(4096, 9000, 3);
    const std::uint64_t seed = fresh_seed();
    fill(context.source, from, seed);
    fill_background(context.target, to);
    pair.b.receive(1, to.sges(context.target));
    pair.a.post(SendRequest(IBV_WR_SEND, 2).local(from.sges(context.source)));
    pair.b.finish_receive(1, 1500);
    pair.a.finish_send(2, IBV_WC_SEND);
    verify(context.target, to, seed, 1500);
}

void write_immediate_leaves_the_receive_alone(Context& context) {
    Pair& pair = context.pair();
    const Layout to(4096, 3000);
    const Layout receive(40960, 3000);
    const std::uint64_t seed = fresh_seed();
    fill(context.source, Layout(4096, 3000), seed);
    fill_background(context.target, to);
    fill_background(context.target, receive);
    pair.b.receive(1, receive.sges(context.target));
    pair.a.post(SendRequest(IBV_WR_RDMA_WRITE_WITH_IMM, 2)
                    .local({context.source.sge(4096, 3000)})
                    .remote(context.target.va(4096), context.target.rkey())
                    .immediate(7));
    pair.b.finish_receive(1, 3000, IBV_WC_RECV_RDMA_WITH_IMM);
    pair.a.finish_send(2, IBV_WC_RDMA_WRITE);
    verify(context.target, to, seed, 3000);
    verify(context.target, receive, 0, 0);
}

/// InfiniBand: a zero-length RDMA operation does not look at its address and key.
void nothing_with_any_key(Context& context) {
    Pair& pair = context.pair();
    pair.a.post(SendRequest(IBV_WR_RDMA_WRITE, 1).remote(12345, 0xdeadbeef));
    pair.a.finish_send(1, IBV_WC_RDMA_WRITE);
    pair.a.post(SendRequest(IBV_WR_RDMA_READ, 2).remote(12345, 0xdeadbeef));
    pair.a.finish_send(2, IBV_WC_RDMA_READ);
    run_in_turn(context, {Op::Write, 100});
}

/// Inline data is taken when the request is posted: from memory that is not registered and changes at once.
void inline_data(Context& context, Op op, std::uint32_t wanted) {
    EndpointOptions options = context.options();
    options.inline_bytes = wanted;
    options.sges = 2;
    Pair pair(context.device(), options);
    const std::uint32_t most = pair.a.cap().max_inline_data;
    require(most >= wanted, "%u bytes of inline data granted, %u asked for", most, wanted);
    for (const std::uint32_t size : {0U, 1U, 31U, 32U, 33U, wanted - 1, wanted, most}) {
        if (size > most) {
            continue;
        }
        const Layout to(4096, size);
        const std::uint64_t seed = fresh_seed();
        unsigned char data[2048];
        fill_pattern(data, size, seed);
        fill_background(context.target, to);
        SendRequest request(request_opcode(op), pair.a.next_id());
        const std::uint32_t first = size / 3;
        request
            .local({{reinterpret_cast<std::uint64_t>(data), first, 0},
                    {reinterpret_cast<std::uint64_t>(data) + first, size - first, 0}})
            .flags(IBV_SEND_INLINE);
        if (scatters_to_receive(op)) {
            pair.b.receive(1, to.sges(context.target));
        } else {
            request.remote(context.target.va(4096), context.target.rkey());
        }
        const std::uint64_t id = request.request.wr_id;
        pair.a.post(std::move(request));
        memset(data, 0xee, sizeof data);
        if (scatters_to_receive(op)) {
            pair.b.finish_receive(1, size);
        }
        pair.a.finish_send(id, completion_opcode(op));
        verify(context.target, to, seed, size);
    }
    unsigned char data[2048] = {};
    require(pair.a.try_post(SendRequest(request_opcode(op), 9)
                                .local({{reinterpret_cast<std::uint64_t>(data), most + 1, 0}})
                                .remote(context.target.va(4096), context.target.rkey())
                                .flags(IBV_SEND_INLINE)) != 0,
            "%u bytes of inline data accepted, %u granted", most + 1, most);
    run_transfer(context.source, context.target, pair.a, pair.b, {op, 100});
}

/// Every size of work queue entry: what a QP asks for decides how its requests are laid out.
void entry_shape(Context& context, std::uint32_t sges, std::uint32_t inline_bytes) {
    EndpointOptions options = context.options();
    options.sges = std::min(sges, options.sges);
    options.inline_bytes = inline_bytes;
    Pair pair(context.device(), options);
    const std::size_t pieces = options.sges;
    for (int round = 0; round < 3; ++round) {
        for (const Op op : {Op::Send, Op::Write, Op::Read}) {
            Transfer transfer{op, 5003 + 1000U * static_cast<unsigned>(round)};
            transfer.source_pieces = op == Op::Read ? 1 : pieces;
            transfer.target_pieces = op == Op::Write ? 1 : pieces;
            run_transfer(context.source, context.target, pair.a, pair.b, transfer);
            run_transfer(context.source, context.target, pair.b, pair.a, transfer);
        }
    }
}

void path_mtu(Context& context, std::size_t mtu) {
    if (mtu > context.mtu()) {
        skip("the port's MTU is %zu", context.mtu());
    }
    EndpointOptions options = context.options();
    options.mtu = mtu;
    Pair pair(context.device(), options);
    for (const Op op : {Op::Send, Op::WriteImm, Op::Read}) {
        for (const std::size_t size : {mtu - 1, mtu, mtu + 1, 3 * mtu, 7 * mtu + 5}) {
            run_transfer(context.source, context.target, pair.a, pair.b, {op, size});
        }
    }
}

}  // namespace

void add_transfer_cases(Cases& cases) {
    cases.push_back({"self/checker", check_the_checker});
    for (const Op op : kOps) {
        for (const SizeEdge& edge : size_edges()) {
            cases.push_back(
                {std::string("size/") + name_of(op) + "/" + edge.name, [op, edge](Context& context) {
                     run_in_turn(context, {op, edge.bytes(context.mtu())});
                 }});
        }
    }
    for (const Op op : {Op::Send, Op::SendImm, Op::Write, Op::WriteImm, Op::Read}) {
        for (std::size_t pieces = 1; pieces <= 8; ++pieces) {
            cases.push_back({std::string("sge/") + name_of(op) + "/" + std::to_string(pieces),
                             [=](Context& context) { split_both_sides(context, op, pieces); }});
        }
    }
    cases.push_back({"sge/empty-pieces", empty_pieces});
    cases.push_back({"sge/message-shorter-than-receive", short_message});
    cases.push_back({"sge/write-imm-leaves-receive-alone", write_immediate_leaves_the_receive_alone});
    cases.push_back({"size/nothing-with-any-key", nothing_with_any_key});
    for (const Op op : kOps) {
        cases.push_back(
            {std::string("unaligned/") + name_of(op), [op](Context& context) {
                 const std::size_t places[][2] = {{1, 0}, {0, 1}, {3, 5}, {7, 4}, {2049, 4095}, {4095, 1}};
                 for (const auto& place : places) {
                     run_in_turn(context, {op, 9001, 8192 + place[0], 16384 + place[1]});
                 }
             }});
    }
    for (const Op op : {Op::Send, Op::SendImm, Op::Write}) {
        for (const std::uint32_t bytes : {32U, 96U, 224U, 400U}) {
            cases.push_back({std::string("inline/") + name_of(op) + "/" + std::to_string(bytes),
                             [=](Context& context) { inline_data(context, op, bytes); }});
        }
    }
    for (const std::uint32_t sges : {1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U}) {
        for (const std::uint32_t inline_bytes : {0U, 200U}) {
            cases.push_back({"shape/sges-" + std::to_string(sges) + (inline_bytes != 0 ? "-inline" : ""),
                             [=](Context& context) { entry_shape(context, sges, inline_bytes); }});
        }
    }
    for (const std::size_t mtu : {256U, 512U, 1024U, 2048U, 4096U}) {
        cases.push_back(
            {"path-mtu/" + std::to_string(mtu), [mtu](Context& context) { path_mtu(context, mtu); }});
    }
}

void add_corruption_cases(Cases& cases) {
    const auto plant = [](Context& context, Op op, std::size_t size, std::size_t position) {
        Transfer transfer{op, size};
        transfer.plant = position;
        try {
            run_in_turn(context, transfer);
        } catch (const Corrupted& found) {
            require(found.position() == position, "a wrong byte at %zu was found at %zu: %s", position,
                    found.position(), found.what());
            printf("found in %s of %zu: %s\n", name_of(op), size, found.what());
            return;
        }
        fail("the wrong byte at %zu was not noticed", position);
    };
    for (const Op op : kOps) {
        for (const SizeEdge& edge : size_edges()) {
            if (edge.bytes(1024) == 0) {
                continue;
            }
            cases.push_back({std::string("corrupt/") + name_of(op) + "/" + edge.name, [=](Context& context) {
                                 const std::size_t size = edge.bytes(context.mtu());
                                 // A different place each time, always including both ends somewhere.
                                 const std::size_t place = static_cast<std::size_t>(op) % 3;
                                 plant(context, op, size, place == 0 ? 0 : place == 1 ? size - 1 : size / 2);
                             }});
        }
    }
}
