// SPDX-License-Identifier: MIT
//
// Failures in time: nobody answers, no receive is there, an end dies under load; and what the owner is told
// about them besides completions.
#include <fcntl.h>
#include <poll.h>
#include <time.h>

#include <cinttypes>
#include <utility>

#include "cases.hpp"
#include "check.hpp"

namespace {

constexpr std::uint64_t kReceives = 5;

void expect_error_state(const Endpoint& end) {
    const ibv_qp_state is = end.query_state();
    require(is == IBV_QPS_ERR, "the queue pair is in state %d, not ERR", is);
}

double seconds_now() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

/// The queue pair at the other end has been destroyed. The requester gives up after its own timeout, not
/// before.
void nobody_there(Context& context) {
    EndpointOptions options = context.options();
    options.timeout = 15;  // 134 ms
    options.retries = 3;
    std::uint32_t nobody = 0;
    {
        const Endpoint gone(context.device(), options);
        nobody = gone.qpn();
    }
    Endpoint a(context.device(), options);
    a.connect(nobody);
    a.receive(1);
    const double begin = seconds_now();
    a.post(std::vector<SendRequest>{SendRequest(IBV_WR_SEND, 1).local({context.source.sge(4096, 100)}),
                                    SendRequest(IBV_WR_RDMA_READ, 2)
                                        .local({context.source.sge(4096, 100)})
                                        .remote(context.target.va(4096), context.target.rkey())
                                        .unsignalled()});
    a.fail_send(1, IBV_WC_RETRY_EXC_ERR);
    const double took = seconds_now() - begin;
    a.fail_send(2, IBV_WC_WR_FLUSH_ERR);
    a.fail_receive(1, IBV_WC_WR_FLUSH_ERR);
    expect_error_state(a);
    const double least = 4 * 4.096e-6 * (1U << 15U);
    require(took >= least * 0.9, "it gave up after %.3f s, but four timeouts are %.3f s", took, least);
    require(took <= least * 5 + 2, "it only gave up after %.3f s; four timeouts are %.3f s", took, least);
}

/// RNR NAKs are repeated as often as was agreed: a receive that comes in time is used.
void rnr_in_time(Context& context) {
    EndpointOptions first = context.options();
    first.rnr_retries = 6;
    EndpointOptions second = context.options();
    second.rnr_timer = 28;  // 164 ms
    Pair pair(context.device(), first, second);
    const Layout to(4096, 5000);
    const std::uint64_t seed = fresh_seed();
    fill(context.source, to, seed);
    fill_background(context.target, to);
    pair.a.post(SendRequest(IBV_WR_SEND, 1).local({context.source.sge(4096, 5000)}));
    pair.a.expect_silence(200);
    pair.b.receive(1, to.sges(context.target));
    pair.b.finish_receive(1, 5000);
    pair.a.finish_send(1, IBV_WC_SEND);
    verify(context.target, to, seed, 5000);
}

/// RNR gives up no sooner than the peer's timer says.
void rnr_time(Context& context) {
    EndpointOptions first = context.options();
    first.rnr_retries = 2;
    EndpointOptions second = context.options();
    second.rnr_timer = 26;  // 81.92 ms
    Pair pair(context.device(), first, second);
    const double begin = seconds_now();
    pair.a.post(SendRequest(IBV_WR_SEND, 1).local({context.source.sge(4096, 100)}));
    pair.a.fail_send(1, IBV_WC_RNR_RETRY_EXC_ERR);
    const double took = seconds_now() - begin;
    require(took >= 2 * 0.0819 * 0.9, "it gave up after %.3f s; two waits are 0.164 s", took);
}

/// Moved to ERR by its owner, with requests in every stage.
void told_to_fail(Context& context) {
    EndpointOptions options = context.options();
    Pair pair(context.device(), options);
    for (std::uint64_t id = 0; id < kReceives; ++id) {
        pair.a.receive(id, {context.target.sge(8192, 4096)});
    }
    // The first waits for a receive, so all are outstanding.
    for (std::uint64_t id = 100; id < 110; ++id) {
        SendRequest request(IBV_WR_SEND, id);
        request.local({context.source.sge(4096, 2000)});
        pair.a.post(id % 3 == 0 ? request.unsignalled() : request);
    }
    pair.a.expect_silence(5);
    pair.a.to_state(IBV_QPS_ERR);
    for (std::uint64_t id = 100; id < 110; ++id) {
        pair.a.fail_send(id, IBV_WC_WR_FLUSH_ERR);
    }
    for (std::uint64_t id = 0; id < kReceives; ++id) {
        pair.a.fail_receive(id, IBV_WC_WR_FLUSH_ERR);
    }
    pair.a.expect_silence(20);
    expect_error_state(pair.a);
}

/// A receiver that dies under a long stream of messages: each of them ends once, all good ones before all bad
/// ones.
void dies_under_load(Context& context) {
    for (int round = 0; round < 4; ++round) {
        EndpointOptions options = context.options();
        options.timeout = 14;
        options.retries = 1;
        Pair pair(context.device(), options);
        constexpr std::uint64_t kCount = 50;
        std::vector<SendRequest> requests;
        for (std::uint64_t id = 0; id < kCount; ++id) {
            requests.push_back(SendRequest(id % 2 == 0 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, id)
                                   .local({context.source.sge(4096, 60000)})
                                   .remote(context.target.va(4096), context.target.rkey()));
        }
        pair.a.post(std::move(requests));
        for (std::uint64_t id = 0; id < 3U * static_cast<unsigned>(round); ++id) {
            pair.a.wait_send();
        }
        pair.b.to_state(IBV_QPS_ERR);
        const auto first = static_cast<std::uint64_t>(3 * round);
        bool failed = false;
        for (std::uint64_t id = first; id < kCount; ++id) {
            const ibv_wc completion = pair.a.wait_send();
            require(completion.wr_id == id, "request %" PRIu64 " ended where %" PRIu64 " should have",
                    completion.wr_id, id);
            const ibv_wc_status expected = failed ? IBV_WC_WR_FLUSH_ERR : IBV_WC_RETRY_EXC_ERR;
            require(completion.status == expected || (!failed && completion.status == IBV_WC_SUCCESS),
                    "request %" PRIu64 " ended as '%s'", id, ibv_wc_status_str(completion.status));
            failed = failed || completion.status != IBV_WC_SUCCESS;
        }
        pair.a.expect_silence(5);
    }
}

/// The next event about `end`, which must be of this type; others about it are not expected.
void expect_event(Context& context, const Endpoint& end, ibv_event_type type) {
    ibv_context* device = context.device().context();
    fcntl(device->async_fd, F_SETFL, fcntl(device->async_fd, F_GETFL) | O_NONBLOCK);
    const double deadline = seconds_now() + Endpoint::patience_ms / 1000.0;
    while (seconds_now() < deadline) {
        pollfd waiting{device->async_fd, POLLIN, 0};
        ::poll(&waiting, 1, 1000);
        ibv_async_event event{};
        if (ibv_get_async_event(device, &event) != 0) {
            continue;
        }
        ibv_ack_async_event(&event);
        if (event.event_type == IBV_EVENT_COMM_EST && type != IBV_EVENT_COMM_EST) {
            continue;  // of an earlier connection
        }
        if (event.event_type == IBV_EVENT_GID_CHANGE || event.event_type == IBV_EVENT_PORT_ACTIVE) {
            continue;
        }
        require(event.event_type == type, "an event of type '%s', not '%s'",
                ibv_event_type_str(event.event_type), ibv_event_type_str(type));
        require(event.element.qp == end.qp(), "the event is about another queue pair");
        return;
    }
    fail("no event of type '%s'", ibv_event_type_str(type));
}

/// What earlier cases have left.
void forget_events(Context& context) {
    ibv_context* device = context.device().context();
    fcntl(device->async_fd, F_SETFL, fcntl(device->async_fd, F_GETFL) | O_NONBLOCK);
    ibv_async_event event{};
    while (ibv_get_async_event(device, &event) == 0) {
        ibv_ack_async_event(&event);
    }
}

void event_of_refused_access(Context& context) {
    forget_events(context);
    Pair pair(context.device(), context.options());
    pair.a.post(SendRequest(IBV_WR_RDMA_WRITE, 1)
                    .local({context.source.sge(4096, 100)})
                    .remote(context.target.va(4096), context.target.rkey() ^ 0x5a));
    pair.a.fail_send(1, IBV_WC_REM_ACCESS_ERR);
    expect_event(context, pair.b, IBV_EVENT_QP_ACCESS_ERR);
}

void event_of_invalid_request(Context& context) {
    forget_events(context);
    Pair pair(context.device(), context.options());
    pair.b.receive(1, {context.target.sge(4096, 10)});
    pair.a.post(SendRequest(IBV_WR_SEND, 1).local({context.source.sge(4096, 100)}));
    pair.a.fail_send(1, IBV_WC_REM_INV_REQ_ERR);
    expect_event(context, pair.b, IBV_EVENT_QP_REQ_ERR);
}

void event_of_drained_queue(Context& context) {
    forget_events(context);
    Pair pair(context.device(), context.options());
    run_transfer(context.source, context.target, pair.a, pair.b, {Op::Write, 100000});
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_SQD;
    attributes.en_sqd_async_notify = 1;
    require_ok(ibv_modify_qp(pair.a.qp(), &attributes, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY),
               "ibv_modify_qp to SQD");
    expect_event(context, pair.a, IBV_EVENT_SQ_DRAINED);
}

void event_of_first_message(Context& context) {
    forget_events(context);
    Endpoint a(context.device(), context.options());
    Endpoint b(context.device(), context.options());
    a.connect(b.qpn());
    b.to_init();
    b.to_rtr(a.qpn());
    b.receive(1);
    a.post(SendRequest(IBV_WR_SEND, 1));
    a.finish_send(1, IBV_WC_SEND);
    b.finish_receive(1, 0);
    expect_event(context, b, IBV_EVENT_COMM_EST);
}

}  // namespace

void add_failure_cases(Cases& cases) {
    cases.push_back({"failure/no-such-qp", nobody_there});
    cases.push_back({"failure/rnr-in-time", rnr_in_time});
    cases.push_back({"failure/rnr-time", rnr_time});
    cases.push_back({"failure/told-to-fail", told_to_fail});
    cases.push_back({"failure/dies-under-load", dies_under_load});
    cases.push_back({"async/access-error", event_of_refused_access});
    cases.push_back({"async/request-error", event_of_invalid_request});
    cases.push_back({"async/queue-drained", event_of_drained_queue});
    cases.push_back({"async/established", event_of_first_message});
}
