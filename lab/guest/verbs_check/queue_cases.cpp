// SPDX-License-Identifier: MIT
//
// Order, signalling, fences, receivers that are late, and the lives of queue pairs.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "cases.hpp"
#include "check.hpp"
#include "pattern.hpp"

namespace {

/// Slots of one page for requests that are outstanding together.
constexpr std::size_t kSlot = 4096;
std::size_t slot(std::size_t index) {
    return kSlot * (index + 1);
}

void fill_slots(Context& context, std::size_t count, std::size_t size, std::uint64_t seed) {
    for (std::size_t i = 0; i < count; ++i) {
        fill(context.source, Layout(slot(i), size), seed + i);
        fill_background(context.target, Layout(slot(i), size));
    }
}

void verify_slots(Context& context, std::size_t count, std::size_t size, std::uint64_t seed) {
    for (std::size_t i = 0; i < count; ++i) {
        verify(context.target, Layout(slot(i), size), seed + i, size);
    }
}

std::uint64_t fresh_seeds(std::size_t count) {
    const std::uint64_t first = fresh_seed();
    for (std::size_t i = 1; i < count; ++i) {
        fresh_seed();
    }
    return first;
}

SendRequest slot_request(Context& context, Op op, std::uint64_t id, std::size_t index, std::size_t size) {
    SendRequest request(request_opcode(op), id);
    if (op == Op::Read) {
        return request.local({context.target.sge(slot(index), size)})
            .remote(context.source.va(slot(index)), context.source.rkey());
    }
    return request.local({context.source.sge(slot(index), size)})
        .remote(context.target.va(slot(index)), context.target.rkey());
}

void signalled_now_and_then(Context& context, Op op) {
    constexpr std::size_t kCount = 48;
    constexpr std::size_t kSize = 1500;
    Pair& pair = context.pair();
    const std::uint64_t seed = fresh_seeds(kCount);
    fill_slots(context, kCount, kSize, seed);
    std::vector<SendRequest> requests;
    for (std::size_t i = 0; i < kCount; ++i) {
        if (takes_receive(op)) {
            pair.b.receive(i, {context.target.sge(slot(i), kSize)});
        }
        requests.push_back(slot_request(context, op, 100 + i, i, kSize));
        if (i % 16 != 15) {
            requests.back().unsignalled();
        }
    }
    pair.a.post(std::move(requests));
    for (const std::uint64_t id : {115U, 131U, 147U}) {
        pair.a.finish_send(id, completion_opcode(op));
    }
    for (std::size_t i = 0; takes_receive(op) && i < kCount; ++i) {
        pair.b.finish_receive(i, kSize);
    }
    pair.a.expect_silence(5);
    verify_slots(context, kCount, kSize, seed);
}

void signal_all(Context& context) {
    EndpointOptions options = context.options();
    options.signal_all = true;
    Pair pair(context.device(), options);
    for (std::uint64_t id = 1; id <= 10; ++id) {
        pair.a.post(SendRequest(IBV_WR_RDMA_WRITE, id)
                        .local({context.source.sge(4096, 100)})
                        .remote(context.target.va(4096), context.target.rkey())
                        .unsignalled());
    }
    for (std::uint64_t id = 1; id <= 10; ++id) {
        pair.a.finish_send(id, IBV_WC_RDMA_WRITE);
    }
}

/// Every entry of both queues in use at once, several times around the rings.
void full_queues(Context& context) {
    constexpr std::size_t kSize = 200;
    Pair pair(context.device(), context.options());
    const std::size_t depth = EndpointOptions{}.send_depth;
    for (int round = 0; round < 7; ++round) {
        const std::uint64_t seed = fresh_seeds(depth);
        fill_slots(context, depth, kSize, seed);
        for (std::size_t i = 0; i < depth; ++i) {
            pair.b.receive(i, {context.target.sge(slot(i), kSize)});
        }
        for (std::size_t i = 0; i < depth; ++i) {
            pair.a.post(slot_request(context, Op::Send, i, i, kSize));
        }
        for (std::size_t i = 0; i < depth; ++i) {
            pair.b.finish_receive(i, kSize);
            pair.a.finish_send(i, IBV_WC_SEND);
        }
        verify_slots(context, depth, kSize, seed);
    }
}

/// Requests of all kinds complete in the order in which they were posted.
void mixed_in_order(Context& context) {
    constexpr std::size_t kCount = 60;
    constexpr std::size_t kSize = 3000;
    Pair& pair = context.pair();
    static const Op ops[] = {Op::Write, Op::Read, Op::Send, Op::Read, Op::Write, Op::Send, Op::Read};
    const auto op_of = [](std::size_t i) { return ops[i % std::size(ops)]; };
    const std::uint64_t seed = fresh_seeds(kCount);
    fill_slots(context, kCount, kSize, seed);
    std::vector<std::size_t> sends;
    std::vector<SendRequest> requests;
    for (std::size_t i = 0; i < kCount; ++i) {
        if (op_of(i) == Op::Send) {
            pair.b.receive(i, {context.target.sge(slot(i), kSize)});
            sends.push_back(i);
        }
        requests.push_back(slot_request(context, op_of(i), i, i, kSize));
    }
    pair.a.post(std::move(requests));
    for (std::size_t i = 0; i < kCount; ++i) {
        pair.a.finish_send(i, completion_opcode(op_of(i)));
    }
    for (const std::size_t i : sends) {
        pair.b.finish_receive(i, kSize);
    }
    verify_slots(context, kCount, kSize, seed);
}

/// Once a message has arrived, the WRITE before it must be in memory.
void write_then_send(Context& context) {
    Pair& pair = context.pair();
    for (const std::size_t size : {10U, 5000U, 65536U, 300000U}) {
        const Layout to(4096, size);
        const std::uint64_t seed = fresh_seed();
        fill(context.source, to, seed);
        fill_background(context.target, to);
        pair.b.receive(1);
        pair.a.post(std::vector<SendRequest>{SendRequest(IBV_WR_RDMA_WRITE, 2)
                                                 .local({context.source.sge(4096, size)})
                                                 .remote(context.target.va(4096), context.target.rkey())
                                                 .unsignalled(),
                                             SendRequest(IBV_WR_SEND, 3)});
        pair.b.finish_receive(1, 0);
        verify(context.target, to, seed, size);
        pair.a.finish_send(3, IBV_WC_SEND);
    }
}

/// A READ sees the WRITE before it; a fenced request sends what the READ or atomic before it has brought.
void chained(Context& context, Op last, bool atomic) {
    Pair& pair = context.pair();
    for (const std::size_t size : {std::size_t{8}, std::size_t{5000}, std::size_t{200000}}) {
        const std::size_t bytes = atomic ? 8 : size;
        // source -(WRITE)-> far -(READ or FETCH_ADD)-> near -(fenced SEND or WRITE)-> end
        const std::size_t far = kMiB;
        const std::size_t near = 2 * kMiB;
        const Layout end(4096, bytes);
        const std::uint64_t seed = fresh_seed();
        fill(context.source, Layout(4096, bytes), seed);
        fill(context.source, Layout(near, bytes), fresh_seed());
        fill_background(context.target, end);
        std::vector<SendRequest> requests;
        requests.push_back(SendRequest(IBV_WR_RDMA_WRITE, 1)
                               .local({context.source.sge(4096, bytes)})
                               .remote(context.target.va(far), context.target.rkey())
                               .unsignalled());
        requests.push_back(SendRequest(atomic ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_RDMA_READ, 2)
                               .local({context.source.sge(near, bytes)})
                               .unsignalled());
        if (atomic) {
            requests.back().fetch_add(context.target.va(far), context.target.rkey(), 1);
        } else {
            requests.back().remote(context.target.va(far), context.target.rkey());
        }
        requests.push_back(SendRequest(request_opcode(last), 3)
                               .local({context.source.sge(near, bytes)})
                               .flags(IBV_SEND_FENCE));
        if (last == Op::Send) {
            pair.b.receive(4, {context.target.sge(4096, bytes)});
        } else {
            requests.back().remote(context.target.va(4096), context.target.rkey());
        }
        pair.a.post(std::move(requests));
        if (last == Op::Send) {
            pair.b.finish_receive(4, bytes);
        }
        pair.a.finish_send(3, completion_opcode(last));
        verify(context.target, end, seed, bytes);
    }
}

/// With infinite RNR retries a message waits for its receive, and so does everything behind it.
void late_receive(Context& context, Op op, std::size_t size) {
    constexpr std::size_t kCount = 3;
    Pair& pair = context.pair();
    const std::uint64_t seed = fresh_seeds(kCount);
    std::vector<Layout> places;
    std::vector<SendRequest> requests;
    for (std::size_t i = 0; i < kCount; ++i) {
        places.emplace_back(4096 + i * 2 * kMiB, size);
        fill(context.source, places[i], seed + i);
        fill_background(context.target, places[i]);
        requests.push_back(SendRequest(request_opcode(op), i)
                               .local(places[i].sges(context.source))
                               .remote(context.target.va(places[i].begin()), context.target.rkey()));
    }
    pair.a.post(std::move(requests));
    for (std::size_t i = 0; i < kCount; ++i) {
        pair.a.expect_silence(10);
        pair.b.expect_silence(0);
        pair.b.receive(i, op == Op::Send ? places[i].sges(context.target) : std::vector<ibv_sge>{});
        pair.b.finish_receive(i, size, op == Op::Send ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM);
        pair.a.finish_send(i, completion_opcode(op));
        verify(context.target, places[i], seed + i, size);
    }
}

void both_directions(Context& context) {
    constexpr std::size_t kCount = 24;
    constexpr std::size_t kSize = 3500;
    Pair& pair = context.pair();
    const std::uint64_t seed = fresh_seeds(2 * kCount);
    fill_slots(context, 2 * kCount, kSize, seed);
    for (std::size_t i = 0; i < kCount; ++i) {
        pair.b.receive(i, {context.target.sge(slot(i), kSize)});
        pair.a.receive(i, {context.target.sge(slot(kCount + i), kSize)});
    }
    for (std::size_t i = 0; i < kCount; ++i) {
        pair.a.post(slot_request(context, Op::Send, i, i, kSize));
        pair.b.post(slot_request(context, Op::Send, i, kCount + i, kSize));
    }
    for (std::size_t i = 0; i < kCount; ++i) {
        for (Endpoint* end : {&pair.a, &pair.b}) {
            end->finish_send(i, IBV_WC_SEND);
            end->finish_receive(i, kSize);
        }
    }
    verify_slots(context, 2 * kCount, kSize, seed);
}

void few_of_everything(Context& context, Endpoint& by, Endpoint& peer) {
    run_transfer(context.source, context.target, by, peer, {Op::Send, 5000});
    run_transfer(context.source, context.target, by, peer, {Op::WriteImm, 100});
    run_transfer(context.source, context.target, by, peer, {Op::Read, 3000});
}

/// Connected with itself.
void itself(Context& context) {
    Endpoint end(context.device(), context.options());
    end.connect(end.qpn());
    few_of_everything(context, end, end);
}

/// After RESET a queue pair is as good as new: nothing that was posted or received before comes back.
void reset_and_reuse(Context& context) {
    Pair pair(context.device(), context.options());
    for (int round = 0; round < 3; ++round) {
        few_of_everything(context, pair.a, pair.b);
        pair.b.receive(77);
        pair.b.receive(78);
        pair.a.to_state(IBV_QPS_RESET);
        pair.b.to_state(IBV_QPS_RESET);
        require(pair.a.query_state() == IBV_QPS_RESET, "the queue pair is in state %d after RESET",
                pair.a.query_state());
        pair.a.expect_silence(2);
        pair.b.expect_silence(2);
        pair.connect();
    }
    few_of_everything(context, pair.b, pair.a);
}

void churn(Context& context) {
    for (int round = 0; round < 40; ++round) {
        Pair pair(context.device(), context.options());
        run_transfer(context.source, context.target, pair.a, pair.b, {Op::Send, 100});
        run_transfer(context.source, context.target, pair.b, pair.a, {Op::Write, 5000});
        // Gone with a receive posted and a request under way.
        pair.b.receive(1);
        pair.a.post(slot_request(context, Op::Read, 2, 0, 4000));
    }
}

void many(Context& context) {
    EndpointOptions options = context.options();
    options.send_depth = options.receive_depth = 4;
    options.sges = 1;
    std::vector<std::unique_ptr<Pair>> pairs;
    for (int i = 0; i < 32; ++i) {
        pairs.push_back(std::make_unique<Pair>(context.device(), options));
    }
    for (int round = 0; round < 2; ++round) {
        for (const auto& pair : pairs) {
            run_transfer(context.source, context.target, pair->a, pair->b, {Op::Send, 700});
            run_transfer(context.source, context.target, pair->b, pair->a, {Op::Read, 600});
        }
    }
}

/// SQD: what has begun ends, what was posted later waits for RTS.
void drain_send_queue(Context& context) {
    Pair pair(context.device(), context.options());
    few_of_everything(context, pair.a, pair.b);
    pair.a.to_state(IBV_QPS_SQD);
    require(pair.a.query_state() == IBV_QPS_SQD, "the queue pair is in state %d after SQD",
            pair.a.query_state());
    const Layout to(4096, 4000);
    const std::uint64_t seed = fresh_seed();
    fill(context.source, to, seed);
    fill_background(context.target, to);
    pair.a.post(SendRequest(IBV_WR_RDMA_WRITE, 1000)
                    .local({context.source.sge(4096, 4000)})
                    .remote(context.target.va(4096), context.target.rkey()));
    pair.a.expect_silence(20);
    verify(context.target, to, 0, 0);
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_RTS;
    attributes.cur_qp_state = IBV_QPS_SQD;
    require_ok(ibv_modify_qp(pair.a.qp(), &attributes, IBV_QP_STATE | IBV_QP_CUR_STATE),
               "ibv_modify_qp SQD to RTS");
    pair.a.finish_send(1000, IBV_WC_RDMA_WRITE);
    verify(context.target, to, seed, 4000);
    few_of_everything(context, pair.a, pair.b);
}

void every_gid(Context& context) {
    std::vector<ibv_gid_entry> entries(256);
    const ssize_t count = ibv_query_gid_table(context.device().context(), entries.data(), entries.size(), 0);
    for (ssize_t i = 0; i < count; ++i) {
        const ibv_gid_entry& entry = entries[static_cast<std::size_t>(i)];
        if (entry.port_num != kPort || entry.gid_type != IBV_GID_TYPE_ROCE_V2) {
            continue;
        }
        EndpointOptions options = context.options();
        options.gid_index = static_cast<int>(entry.gid_index);
        Pair pair(context.device(), options);
        few_of_everything(context, pair.a, pair.b);
        few_of_everything(context, pair.b, pair.a);
    }
}

void first_psns(Context& context) {
    for (const std::uint32_t psn : {0U, 1U, 0x7fffffU, 0x800000U, 0xffffffU}) {
        EndpointOptions options = context.options();
        options.first_psn = psn;
        Pair pair(context.device(), options);
        few_of_everything(context, pair.a, pair.b);
        few_of_everything(context, pair.b, pair.a);
    }
}

void too_many_pieces(Context& context) {
    EndpointOptions options = context.options();
    options.sges = 2;
    Pair pair(context.device(), options);
    const std::vector<ibv_sge> pieces(pair.a.cap().max_send_sge + 1, context.source.sge(4096, 10));
    require(pair.a.try_post(SendRequest(IBV_WR_SEND, 1).local(pieces)) != 0, "%zu SGEs accepted, %u granted",
            pieces.size(), pair.a.cap().max_send_sge);
    few_of_everything(context, pair.a, pair.b);
}

}  // namespace

void add_queue_cases(Cases& cases) {
    for (const Op op : {Op::Send, Op::Write, Op::Read}) {
        cases.push_back({std::string("signal/now-and-then/") + name_of(op),
                         [op](Context& context) { signalled_now_and_then(context, op); }});
    }
    cases.push_back({"signal/all", signal_all});
    cases.push_back({"queue/full", full_queues});
    cases.push_back({"queue/too-many-pieces-refused", too_many_pieces});
    cases.push_back({"order/mixed", mixed_in_order});
    cases.push_back({"order/write-then-send", write_then_send});
    for (const Op op : {Op::Send, Op::Write}) {
        cases.push_back({std::string("fence/read-then-") + name_of(op),
                         [op](Context& context) { chained(context, op, false); }});
        cases.push_back({std::string("fence/atomic-then-") + name_of(op),
                         [op](Context& context) { chained(context, op, true); }});
    }
    for (const Op op : {Op::Send, Op::WriteImm}) {
        for (const std::size_t size : {std::size_t{100}, std::size_t{700000}}) {
            cases.push_back({std::string("rnr/late-receive/") + name_of(op) + "/" + std::to_string(size),
                             [=](Context& context) { late_receive(context, op, size); }});
        }
    }
    cases.push_back({"qp/both-directions", both_directions});
    cases.push_back({"qp/connected-with-itself", itself});
    cases.push_back({"qp/reset-and-reuse", reset_and_reuse});
    cases.push_back({"qp/create-and-destroy", churn});
    cases.push_back({"qp/many", many});
    cases.push_back({"qp/drain-send-queue", drain_send_queue});
    cases.push_back({"qp/every-gid", every_gid});
    cases.push_back({"qp/first-psns", first_psns});
}
