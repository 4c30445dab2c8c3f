// SPDX-License-Identifier: MIT
//
// Memory windows: type 1 is bound by a verb and open to every queue pair of the protection domain, type 2 is
// bound by a work request and belongs to the queue pair that did it.
#include "cases.hpp"
#include "check.hpp"

namespace {

constexpr unsigned kWindowAccess =
    IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
constexpr std::size_t kStart = 8192 + 77;
constexpr std::size_t kLength = 20001;

/// A WRITE through a window, which covers target[kStart, kStart + kLength).
SendRequest write_through(Context& context, std::uint64_t id, std::uint32_t rkey, std::size_t at,
                          std::size_t size) {
    return SendRequest(IBV_WR_RDMA_WRITE, id)
        .local({context.source.sge(at, size)})
        .remote(context.target.va(at), rkey);
}

void reach(Context& context, Endpoint& by, std::uint32_t rkey) {
    const std::uint64_t seed = fresh_seed();
    const Layout all(kStart, kLength);
    fill(context.source, all, seed);
    fill_background(context.target, all);
    const std::uint64_t id = by.next_id();
    by.post(write_through(context, id, rkey, kStart, kLength));
    by.finish_send(id, IBV_WC_RDMA_WRITE);
    verify(context.target, all, seed, kLength);

    const Layout back(kMiB, kLength);
    fill_background(context.source, back);
    by.post(SendRequest(IBV_WR_RDMA_READ, id + 1000)
                .local({context.source.sge(kMiB, kLength)})
                .remote(context.target.va(kStart), rkey));
    by.finish_send(id + 1000, IBV_WC_RDMA_READ);
    verify(context.source, back, seed, kLength);

    by.post(SendRequest(IBV_WR_ATOMIC_FETCH_AND_ADD, id + 2000)
                .local({context.source.sge(64, 8)})
                .fetch_add(context.target.va(16384), rkey, 0));
    by.finish_send(id + 2000, IBV_WC_FETCH_ADD);
}

/// The peer refuses, and its memory stays as it was.
void refused(Context& context, Endpoint& by, std::uint32_t rkey, std::size_t at = kStart,
             std::size_t size = 100) {
    const Layout all(at, size);
    fill(context.source, all, fresh_seed());
    fill_background(context.target, all);
    by.post(write_through(context, 9000, rkey, at, size));
    by.fail_send(9000, IBV_WC_REM_ACCESS_ERR);
    verify(context.target, all, 0, 0);
}

/// Every case has its own pair: a refused request ends both ends.
struct Ground {
    explicit Ground(Context& context) : pair(context.device(), context.options()) {}
    Pair pair;
};

void reaches(Context& context, ibv_mw_type type) {
    Ground ground(context);
    Window window(context.device(), type);
    window.bind(ground.pair.b, context.target, kStart, kLength, kWindowAccess);
    reach(context, ground.pair.a, window.rkey());
    refused(context, ground.pair.a, window.rkey(), kStart + kLength - 99);
}

void starts_exactly(Context& context, ibv_mw_type type) {
    Ground ground(context);
    Window window(context.device(), type);
    window.bind(ground.pair.b, context.target, kStart, kLength, kWindowAccess);
    refused(context, ground.pair.a, window.rkey(), kStart - 1);
}

void only_what_it_allows(Context& context, ibv_mw_type type) {
    Ground ground(context);
    Window window(context.device(), type);
    window.bind(ground.pair.b, context.target, kStart, kLength, IBV_ACCESS_REMOTE_READ);
    ground.pair.a.post(SendRequest(IBV_WR_RDMA_READ, 1)
                           .local({context.source.sge(4096, 500)})
                           .remote(context.target.va(kStart), window.rkey()));
    ground.pair.a.finish_send(1, IBV_WC_RDMA_READ);
    refused(context, ground.pair.a, window.rkey());
}

void not_before_it_is_bound(Context& context, ibv_mw_type type) {
    Ground ground(context);
    Window window(context.device(), type);
    refused(context, ground.pair.a, window.rkey());
}

/// A region may open less than a window of it.
void more_than_the_region(Context& context, ibv_mw_type type) {
    Ground ground(context);
    const Buffer closed(context.device().pd(), 65536, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    Window window(context.device(), type);
    window.bind(ground.pair.b, closed, 5000, 10000, IBV_ACCESS_REMOTE_WRITE);
    const Layout all(5000, 10000);
    const std::uint64_t seed = fresh_seed();
    fill(context.source, all, seed);
    fill_background(closed, all);
    ground.pair.a.post(SendRequest(IBV_WR_RDMA_WRITE, 1)
                           .local({context.source.sge(5000, 10000)})
                           .remote(closed.va(5000), window.rkey()));
    ground.pair.a.finish_send(1, IBV_WC_RDMA_WRITE);
    verify(closed, all, seed, 10000);
    // The region itself stays closed.
    ground.pair.a.post(SendRequest(IBV_WR_RDMA_WRITE, 2)
                           .local({context.source.sge(5000, 100)})
                           .remote(closed.va(5000), closed.rkey()));
    ground.pair.a.fail_send(2, IBV_WC_REM_ACCESS_ERR);
}

void region_without_the_right(Context& context, ibv_mw_type type) {
    Ground ground(context);
    const Buffer plain(context.device().pd(), 65536, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    Window window(context.device(), type);
    window.bind(ground.pair.b, plain, 0, 4096, IBV_ACCESS_REMOTE_WRITE, IBV_WC_MW_BIND_ERR);
}

void beyond_the_region(Context& context, ibv_mw_type type) {
    Ground ground(context);
    const Buffer small(context.device().pd(), 8192);
    Window window(context.device(), type);
    window.bind(ground.pair.b, small, 4096, 4097, IBV_ACCESS_REMOTE_READ, IBV_WC_MW_BIND_ERR);
}

void write_without_local_write(Context& context, ibv_mw_type type) {
    Ground ground(context);
    const Buffer read_only(context.device().pd(), 8192, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND);
    Window window(context.device(), type);
    window.bind(ground.pair.b, read_only, 0, 4096, IBV_ACCESS_REMOTE_WRITE, IBV_WC_MW_BIND_ERR);
}

void type1_any_queue_pair(Context& context) {
    Ground first(context);
    Ground second(context);
    Window window(context.device(), IBV_MW_TYPE_1);
    window.bind(first.pair.b, context.target, kStart, kLength, kWindowAccess);
    reach(context, second.pair.a, window.rkey());
    reach(context, first.pair.a, window.rkey());
}

void type1_bound_again(Context& context) {
    Ground ground(context);
    Window window(context.device(), IBV_MW_TYPE_1);
    window.bind(ground.pair.b, context.target, 0, 4096, IBV_ACCESS_REMOTE_READ);
    const std::uint32_t old = window.rkey();
    window.bind(ground.pair.b, context.target, kStart, kLength, kWindowAccess);
    require(window.rkey() != old, "binding again kept the key");
    reach(context, ground.pair.a, window.rkey());
    refused(context, ground.pair.a, old, 1000, 100);
}

void type1_unbound(Context& context) {
    Ground ground(context);
    Window window(context.device(), IBV_MW_TYPE_1);
    window.bind(ground.pair.b, context.target, kStart, kLength, kWindowAccess);
    const std::uint32_t old = window.rkey();
    reach(context, ground.pair.a, old);
    window.bind(ground.pair.b, context.target, kStart, 0, 0);
    refused(context, ground.pair.a, old);
}

void type2_own_queue_pair_only(Context& context) {
    Ground owner(context);
    Ground other(context);
    Window window(context.device(), IBV_MW_TYPE_2);
    window.bind(owner.pair.b, context.target, kStart, kLength, kWindowAccess);
    refused(context, other.pair.a, window.rkey());
    reach(context, owner.pair.a, window.rkey());
}

void type2_invalidated_here(Context& context) {
    Ground ground(context);
    Window window(context.device(), IBV_MW_TYPE_2);
    for (int round = 0; round < 3; ++round) {
        window.bind(ground.pair.b, context.target, kStart, kLength, kWindowAccess);
        reach(context, ground.pair.a, window.rkey());
        ground.pair.b.post(SendRequest(IBV_WR_LOCAL_INV, 5).invalidate(window.rkey()));
        ground.pair.b.finish_send(5, IBV_WC_LOCAL_INV);
    }
    refused(context, ground.pair.a, window.rkey());
}

void type2_invalidated_by_peer(Context& context) {
    Ground ground(context);
    Window window(context.device(), IBV_MW_TYPE_2);
    for (int round = 0; round < 3; ++round) {
        window.bind(ground.pair.b, context.target, kStart, kLength, kWindowAccess);
        reach(context, ground.pair.a, window.rkey());
        ground.pair.b.receive(6);
        ground.pair.a.post(SendRequest(IBV_WR_SEND_WITH_INV, 7).invalidate(window.rkey()));
        const ibv_wc completion = ground.pair.b.finish_receive(6, 0);
        require((completion.wc_flags & IBV_WC_WITH_INV) != 0 && completion.invalidated_rkey == window.rkey(),
                "the receive does not name the invalidated key");
        ground.pair.a.finish_send(7, IBV_WC_SEND);
    }
    refused(context, ground.pair.a, window.rkey());
}

void type2_bound_twice(Context& context) {
    Ground ground(context);
    Window window(context.device(), IBV_MW_TYPE_2);
    window.bind(ground.pair.b, context.target, kStart, kLength, kWindowAccess);
    window.bind(ground.pair.b, context.target, 0, 4096, kWindowAccess, IBV_WC_MW_BIND_ERR);
}

/// A window is opened, used and closed by requests that stand in the send queue together.
void type2_in_a_row(Context& context) {
    Ground ground(context);
    Window window(context.device(), IBV_MW_TYPE_2);
    window.bind(ground.pair.b, context.target, kStart, kLength, kWindowAccess);
    const std::uint32_t old = window.rkey();
    Endpoint& b = ground.pair.b;
    ground.pair.a.receive(1, {context.source.sge(4096, 4)});
    // Unsignalled local operations between signalled remote ones: all must complete in order.
    b.post(std::vector<SendRequest>{
        SendRequest(IBV_WR_RDMA_WRITE, 1)
            .local({context.source.sge(4096, 3000)})
            .remote(context.target.va(kMiB), context.target.rkey()),
        SendRequest(IBV_WR_LOCAL_INV, 2).invalidate(old).unsignalled(),
        SendRequest(IBV_WR_RDMA_READ, 3)
            .local({context.source.sge(9000, 3000)})
            .remote(context.target.va(kMiB), context.target.rkey()),
        SendRequest(IBV_WR_SEND, 4).local({context.target.sge(64, 4)}).flags(IBV_SEND_FENCE)});
    b.finish_send(1, IBV_WC_RDMA_WRITE);
    b.finish_send(3, IBV_WC_RDMA_READ);
    b.finish_send(4, IBV_WC_SEND);
    ground.pair.a.finish_receive(1, 4);
    refused(context, ground.pair.a, old);
}

void not_a_window(Context& context) {
    Ground ground(context);
    ground.pair.b.post(SendRequest(IBV_WR_LOCAL_INV, 1).invalidate(context.target.rkey()));
    const ibv_wc completion = ground.pair.b.wait_send();
    require(completion.status != IBV_WC_SUCCESS, "an ordinary region was invalidated");
    // Whatever it was called, the region must still be there.
    Ground fresh(context);
    run_transfer(context.source, context.target, fresh.pair.a, fresh.pair.b, {Op::Write, 500});
}

void not_as_local_key(Context& context) {
    Ground ground(context);
    Window window(context.device(), IBV_MW_TYPE_1);
    window.bind(ground.pair.a, context.target, kStart, kLength, kWindowAccess);
    ground.pair.a.post(SendRequest(IBV_WR_RDMA_WRITE, 1)
                           .local({{context.target.va(kStart), 100, window.rkey()}})
                           .remote(context.source.va(4096), context.source.rkey()));
    ground.pair.a.fail_send(1, IBV_WC_LOC_PROT_ERR);
}

}  // namespace

void add_window_cases(Cases& cases) {
    struct Both {
        const char* name;
        void (*run)(Context&, ibv_mw_type);
    };
    static const Both both[] = {{"reaches", reaches},
                                {"starts-exactly", starts_exactly},
                                {"only-what-it-allows", only_what_it_allows},
                                {"not-before-it-is-bound", not_before_it_is_bound},
                                {"more-than-the-region", more_than_the_region},
                                {"region-without-the-right", region_without_the_right},
                                {"beyond-the-region", beyond_the_region},
                                {"write-without-local-write", write_without_local_write}};
    for (const auto& item : both) {
        cases.push_back({std::string("window/1/") + item.name,
                         [&item](Context& context) { item.run(context, IBV_MW_TYPE_1); }});
        cases.push_back({std::string("window/2/") + item.name,
                         [&item](Context& context) { item.run(context, IBV_MW_TYPE_2); }});
    }
    cases.push_back({"window/1/any-queue-pair", type1_any_queue_pair});
    cases.push_back({"window/1/bound-again", type1_bound_again});
    cases.push_back({"window/1/unbound", type1_unbound});
    cases.push_back({"window/1/not-as-local-key", not_as_local_key});
    cases.push_back({"window/2/own-queue-pair-only", type2_own_queue_pair_only});
    cases.push_back({"window/2/invalidated-here", type2_invalidated_here});
    cases.push_back({"window/2/invalidated-by-peer", type2_invalidated_by_peer});
    cases.push_back({"window/2/bound-twice", type2_bound_twice});
    cases.push_back({"window/2/in-a-row", type2_in_a_row});
    cases.push_back({"window/2/region-is-no-window", not_a_window});
}
