// SPDX-License-Identifier: MIT
//
// Sleeping until the completion channel has something.
#include <time.h>
#include <unistd.h>

#include "cases.hpp"
#include "check.hpp"

namespace {

void by_events(Context& context, Op op) {
    Pair& pair = context.event_pair();
    for (const std::size_t size : {std::size_t{1}, std::size_t{5000}, kMiB}) {
        run_transfer(context.source, context.target, pair.a, pair.b, {op, size});
        run_transfer(context.source, context.target, pair.b, pair.a, {op, size});
    }
}

void burst(Context& context) {
    Pair& pair = context.event_pair();
    for (int round = 0; round < 3; ++round) {
        for (std::uint64_t id = 0; id < 40; ++id) {
            pair.b.receive(id, {context.target.sge(4096 + 128 * id, 100)});
        }
        for (std::uint64_t id = 0; id < 40; ++id) {
            pair.a.post(SendRequest(IBV_WR_SEND, id).local({context.source.sge(4096, 100)}));
        }
        for (std::uint64_t id = 0; id < 40; ++id) {
            pair.b.finish_receive(id, 100);
            pair.a.finish_send(id, IBV_WC_SEND);
        }
    }
}

/// Waits without arming anything.
void poll_for_receive(Endpoint& end, std::uint64_t id) {
    for (int looks = 0; looks < Endpoint::patience_ms; ++looks) {
        if (const auto completion = end.poll()) {
            require(completion->wr_id == (id | kReceive) && completion->status == IBV_WC_SUCCESS,
                    "a wrong completion: %s", ibv_wc_status_str(completion->status));
            return;
        }
        usleep(1000);
    }
    fail("no receive completed");
}

/// No arm and no event is left over: a message takes the arm that earlier waits may have left behind.
void settle(Pair& pair, std::uint64_t id) {
    pair.b.receive(id);
    pair.a.post(SendRequest(IBV_WR_SEND, id));
    poll_for_receive(pair.b, id);
    pair.a.finish_send(id, IBV_WC_SEND);
    while (pair.b.wait_event(50)) {
    }
}

EndpointOptions with_events(Context& context) {
    EndpointOptions options = context.options();
    options.events = true;
    return options;
}

void unarmed(Context& context) {
    Pair pair(context.device(), context.options(), with_events(context));
    settle(pair, 1);
    pair.b.receive(2);
    pair.a.post(SendRequest(IBV_WR_SEND, 2));
    pair.a.finish_send(2, IBV_WC_SEND);
    require(!pair.b.wait_event(50), "an event although nothing was armed");
    poll_for_receive(pair.b, 2);
}

void solicited(Context& context) {
    Pair pair(context.device(), context.options(), with_events(context));
    for (int round = 0; round < 2; ++round) {
        settle(pair, 1);
        pair.b.receive(2);
        pair.b.receive(3);
        pair.b.arm(true);
        require(!pair.b.poll(), "a completion out of nothing");
        pair.a.post(SendRequest(IBV_WR_SEND, 2));
        pair.a.finish_send(2, IBV_WC_SEND);
        require(!pair.b.wait_event(50), "a message without the solicited flag raised a solicited event");
        pair.a.post(SendRequest(IBV_WR_SEND, 3).flags(IBV_SEND_SOLICITED));
        require(pair.b.wait_event(Endpoint::patience_ms), "no event for a solicited message");
        poll_for_receive(pair.b, 2);
        poll_for_receive(pair.b, 3);
        pair.a.finish_send(3, IBV_WC_SEND);
    }
}

/// Somebody who sleeps must wake up when the queue pair dies.
void error_wakes(Context& context, bool solicited_only) {
    Pair pair(context.device(), context.options(), with_events(context));
    pair.b.receive(1);
    pair.b.receive(2);
    pair.b.arm(solicited_only);
    require(!pair.b.poll(), "a completion out of nothing");
    pair.b.to_state(IBV_QPS_ERR);
    require(pair.b.wait_event(Endpoint::patience_ms), "no event for flushed receives");
    pair.b.fail_receive(1, IBV_WC_WR_FLUSH_ERR);
    pair.b.fail_receive(2, IBV_WC_WR_FLUSH_ERR);
}

/// What had completed before it was armed raises an event too, or a sleeper would miss it for ever.
/// InfiniBand leaves this to the program, which therefore looks once more after arming: both ways must work.
void look_after_arming(Context& context) {
    Pair pair(context.device(), context.options(), with_events(context));
    for (std::uint64_t id = 1; id <= 20; ++id) {
        settle(pair, 100 + id);
        pair.b.receive(id);
        pair.a.post(SendRequest(IBV_WR_SEND, id));
        pair.a.finish_send(id, IBV_WC_SEND);
        pair.b.arm(false);
        pair.b.finish_receive(id, 0);
    }
}

}  // namespace

void add_event_cases(Cases& cases) {
    for (const Op op : {Op::Send, Op::SendImm, Op::Write, Op::WriteImm, Op::Read}) {
        cases.push_back(
            {std::string("event/") + name_of(op), [op](Context& context) { by_events(context, op); }});
    }
    cases.push_back({"event/burst", burst});
    cases.push_back({"event/not-armed", unarmed});
    cases.push_back({"event/solicited", solicited});
    cases.push_back({"event/look-after-arming", look_after_arming});
    cases.push_back({"event/error-wakes", [](Context& context) { error_wakes(context, false); }});
    cases.push_back({"event/error-wakes-solicited", [](Context& context) { error_wakes(context, true); }});
}
