// SPDX-License-Identifier: MIT
//
// What goes wrong goes wrong the way InfiniBand says, on both sides, and everything else that is outstanding
// ends exactly once: a request that never completes hangs a program, one that completes twice corrupts it.
#include <utility>

#include "cases.hpp"
#include "check.hpp"

namespace {

constexpr std::uint64_t kBad = 500;     ///< id of the request that fails
constexpr std::uint64_t kReceives = 5;  ///< posted on either side
constexpr std::uint64_t kTrailing = 6;  ///< requests behind the one that fails
constexpr std::size_t kTrailingAt = 3 * kMiB;

/// What happens to the other end.
enum class Peer { Lives, Dies };

/// What a scenario may need besides the pair; gone when the case ends.
struct Ground {
    Ground(Context& c, const EndpointOptions& first, const EndpointOptions& second)
        : context(c), pair(c.device(), first, second) {}
    Context& context;
    Pair pair;
    std::vector<std::unique_ptr<Buffer>> buffers;
    Owned<ibv_pd> other_pd;
    std::unique_ptr<Buffer> other;
    /// A buffer with these rights, in the common protection domain.
    const Buffer& with(int access) {
        buffers.push_back(std::make_unique<Buffer>(context.device().pd(), 65536, access));
        return *buffers.back();
    }
    /// A buffer of another protection domain.
    const Buffer& foreign() {
        other_pd.reset(ibv_alloc_pd(context.device().context()));
        other = std::make_unique<Buffer>(other_pd.get(), 65536);
        return *other;
    }
    // Owned<ibv_pd> must outlive the buffer in it.
    ~Ground() { other.reset(); }
};

struct Scenario {
    const char* name;
    std::function<SendRequest(Ground&)> bad;
    ibv_wc_status status;
    Peer peer;
    /// Pieces of the peer's first receive, and its status if it is not simply flushed.
    std::function<std::vector<ibv_sge>(Ground&)> receive{};
    ibv_wc_status receive_status = IBV_WC_WR_FLUSH_ERR;
    std::function<void(EndpointOptions& first, EndpointOptions& second)> options{};
    bool peer_receives = true;
    std::function<void(Ground&)> before{};
    /// The failure is only found in the answer, so what stands behind the request may have been done by then.
    bool found_late = false;
};

SendRequest a_send(Ground& ground, std::size_t size) {
    return SendRequest(IBV_WR_SEND, kBad).local({ground.context.source.sge(4096, size)});
}
SendRequest a_write(Ground& ground, std::uint64_t va, std::uint32_t rkey, std::size_t size = 100) {
    return SendRequest(IBV_WR_RDMA_WRITE, kBad)
        .local({ground.context.source.sge(4096, size)})
        .remote(va, rkey);
}
SendRequest a_read(Ground& ground, std::uint64_t va, std::uint32_t rkey, std::size_t size = 100) {
    return SendRequest(IBV_WR_RDMA_READ, kBad)
        .local({ground.context.source.sge(4096, size)})
        .remote(va, rkey);
}
SendRequest an_add(Ground& ground, std::uint64_t va, std::uint32_t rkey) {
    return SendRequest(IBV_WR_ATOMIC_FETCH_AND_ADD, kBad)
        .local({ground.context.source.sge(4096, 8)})
        .fetch_add(va, rkey, 1);
}
SendRequest a_swap(Ground& ground, std::uint64_t va, std::uint32_t rkey) {
    return SendRequest(IBV_WR_ATOMIC_CMP_AND_SWP, kBad)
        .local({ground.context.source.sge(4096, 8)})
        .compare_swap(va, rkey, 1, 2);
}
/// A WRITE to where it may, from `local`.
SendRequest a_write_from(Ground& ground, const ibv_sge& local) {
    return SendRequest(IBV_WR_RDMA_WRITE, kBad)
        .local({local})
        .remote(ground.context.target.va(4096), ground.context.target.rkey());
}
SendRequest a_read_into(Ground& ground, const ibv_sge& local) {
    return SendRequest(IBV_WR_RDMA_READ, kBad)
        .local({local})
        .remote(ground.context.target.va(4096), ground.context.target.rkey());
}
/// A key that looks like `key` but for its tag, and one of a region that does not exist.
std::uint32_t other_tag(std::uint32_t key) {
    return key ^ 0x5a;
}
std::uint32_t no_such_region(std::uint32_t key) {
    return key + (1U << 14U << 8U);
}

constexpr int kAllButWrite = kAllAccess & ~IBV_ACCESS_REMOTE_WRITE;
constexpr int kAllButRead = kAllAccess & ~IBV_ACCESS_REMOTE_READ;
constexpr int kAllButAtomic = kAllAccess & ~IBV_ACCESS_REMOTE_ATOMIC;

std::vector<Scenario> key_scenarios() {
    std::vector<Scenario> list;
    const auto refused = [&list](const char* name, std::function<SendRequest(Ground&)> bad) {
        list.push_back({name, std::move(bad), IBV_WC_REM_ACCESS_ERR, Peer::Dies});
    };
    const auto local = [&list](const char* name, std::function<SendRequest(Ground&)> bad) {
        list.push_back({name, std::move(bad), IBV_WC_LOC_PROT_ERR, Peer::Lives});
    };
    const auto local_late = [&list](const char* name, std::function<SendRequest(Ground&)> bad) {
        list.push_back({name, std::move(bad), IBV_WC_LOC_PROT_ERR, Peer::Lives});
        list.back().found_late = true;
    };
    using G = Ground;
    refused("rkey/write/other-tag",
            [](G& g) { return a_write(g, g.context.target.va(4096), other_tag(g.context.target.rkey())); });
    refused("rkey/read/other-tag",
            [](G& g) { return a_read(g, g.context.target.va(4096), other_tag(g.context.target.rkey())); });
    refused("rkey/add/other-tag",
            [](G& g) { return an_add(g, g.context.target.va(4096), other_tag(g.context.target.rkey())); });
    refused("rkey/swap/other-tag",
            [](G& g) { return a_swap(g, g.context.target.va(4096), other_tag(g.context.target.rkey())); });
    refused("rkey/write/none", [](G& g) {
        return a_write(g, g.context.target.va(4096), no_such_region(g.context.target.rkey()));
    });
    refused("rkey/read/none", [](G& g) {
        return a_read(g, g.context.target.va(4096), no_such_region(g.context.target.rkey()));
    });
    refused("rkey/write/zero", [](G& g) { return a_write(g, g.context.target.va(4096), 0); });
    refused("rkey/read/zero", [](G& g) { return a_read(g, g.context.target.va(4096), 0); });
    refused("rkey/write-imm/other-tag", [](G& g) {
        SendRequest request = a_write(g, g.context.target.va(4096), other_tag(g.context.target.rkey()));
        request.request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
        return request;
    });
    refused("rkey/write/other-domain", [](G& g) {
        const Buffer& it = g.foreign();
        return a_write(g, it.va(), it.rkey());
    });
    refused("rkey/read/other-domain", [](G& g) {
        const Buffer& it = g.foreign();
        return a_read(g, it.va(), it.rkey());
    });
    refused("rkey/write/deregistered", [](G& g) {
        const Buffer gone(g.context.device().pd(), 65536);
        return a_write(g, gone.va(), gone.rkey());
    });
    refused("rkey/read/deregistered", [](G& g) {
        const Buffer gone(g.context.device().pd(), 65536);
        return a_read(g, gone.va(), gone.rkey());
    });
    refused("range/write/one-beyond", [](G& g) {
        const Buffer& it = g.with(kAllAccess);
        return a_write(g, it.va(65536 - 99), it.rkey());
    });
    refused("range/write/one-before", [](G& g) {
        const Buffer& it = g.with(kAllAccess);
        return a_write(g, it.va() - 1, it.rkey());
    });
    refused("range/write/long-beyond", [](G& g) {
        const Buffer& it = g.with(kAllAccess);
        return a_write(g, it.va(), it.rkey(), 65537);
    });
    refused("range/write/wraps",
            [](G& g) { return a_write(g, ~std::uint64_t{0} - 50, g.context.target.rkey()); });
    refused("range/read/one-beyond", [](G& g) {
        const Buffer& it = g.with(kAllAccess);
        return a_read(g, it.va(65536 - 99), it.rkey());
    });
    refused("range/read/long-beyond", [](G& g) {
        const Buffer& it = g.with(kAllAccess);
        return a_read(g, it.va(), it.rkey(), 300000);
    });
    refused("range/add/beyond", [](G& g) {
        const Buffer& it = g.with(kAllAccess);
        return an_add(g, it.va(65536), it.rkey());
    });
    refused("right/write", [](G& g) {
        const Buffer& it = g.with(kAllButWrite);
        return a_write(g, it.va(), it.rkey());
    });
    refused("right/read", [](G& g) {
        const Buffer& it = g.with(kAllButRead);
        return a_read(g, it.va(), it.rkey());
    });
    refused("right/add", [](G& g) {
        const Buffer& it = g.with(kAllButAtomic);
        return an_add(g, it.va(), it.rkey());
    });
    refused("right/swap", [](G& g) {
        const Buffer& it = g.with(kAllButAtomic);
        return a_swap(g, it.va(), it.rkey());
    });

    local("lkey/send/other-tag", [](G& g) {
        SendRequest request = a_send(g, 100);
        request.pieces[0].lkey = other_tag(request.pieces[0].lkey);
        return request;
    });
    local("lkey/send/zero", [](G& g) {
        SendRequest request = a_send(g, 100);
        request.pieces[0].lkey = 0;
        return request;
    });
    local("lkey/send/second-piece", [](G& g) {
        SendRequest request = a_send(g, 100);
        request.pieces.push_back({g.context.source.va(9000), 100, no_such_region(g.context.source.lkey())});
        return request;
    });
    local("lkey/write/other-domain", [](G& g) { return a_write_from(g, g.foreign().sge(0, 100)); });
    local_late("lkey/read/other-domain", [](G& g) { return a_read_into(g, g.foreign().sge(0, 100)); });
    local("lkey/write/deregistered", [](G& g) {
        const Buffer gone(g.context.device().pd(), 65536);
        return a_write_from(g, gone.sge(0, 100));
    });
    local_late("lkey/read/other-tag", [](G& g) {
        ibv_sge piece = g.context.source.sge(4096, 100);
        piece.lkey = other_tag(piece.lkey);
        return a_read_into(g, piece);
    });
    local_late("lkey/add/other-tag", [](G& g) {
        SendRequest request = an_add(g, g.context.target.va(4096), g.context.target.rkey());
        request.pieces[0].lkey = other_tag(request.pieces[0].lkey);
        return request;
    });
    local("range/local-write/one-beyond",
          [](G& g) { return a_write_from(g, g.with(kAllAccess).sge(65536 - 99, 100)); });
    local_late("range/local-read/one-beyond",
               [](G& g) { return a_read_into(g, g.with(kAllAccess).sge(65536 - 99, 100)); });
    local_late("right/read-into-read-only",
               [](G& g) { return a_read_into(g, g.with(IBV_ACCESS_REMOTE_READ).sge(0, 100)); });
    local_late("right/add-into-read-only", [](G& g) {
        SendRequest request = an_add(g, g.context.target.va(4096), g.context.target.rkey());
        request.pieces[0] = g.with(IBV_ACCESS_REMOTE_READ).sge(0, 8);
        return request;
    });
    return list;
}

std::vector<Scenario> message_scenarios() {
    std::vector<Scenario> list;
    using G = Ground;
    // InfiniBand 9.7.5: what a queue pair is not set up for is an invalid request, not an access error.
    const auto not_enabled = [&list](const char* name, int access, std::function<SendRequest(Ground&)> bad) {
        list.push_back({name, std::move(bad), IBV_WC_REM_INV_REQ_ERR, Peer::Dies});
        list.back().options = [access](EndpointOptions&, EndpointOptions& second) { second.access = access; };
    };
    not_enabled("qp-right/write", IBV_ACCESS_REMOTE_READ,
                [](G& g) { return a_write(g, g.context.target.va(4096), g.context.target.rkey()); });
    not_enabled("qp-right/read", IBV_ACCESS_REMOTE_WRITE,
                [](G& g) { return a_read(g, g.context.target.va(4096), g.context.target.rkey()); });
    not_enabled("qp-right/add", IBV_ACCESS_REMOTE_WRITE,
                [](G& g) { return an_add(g, g.context.target.va(4096), g.context.target.rkey()); });
    list.push_back({"atomic-unaligned",
                    [](G& g) { return an_add(g, g.context.target.va(4096 + 4), g.context.target.rkey()); },
                    IBV_WC_REM_INV_REQ_ERR, Peer::Dies});

    const auto too_short = [&list](const char* name, std::size_t size, std::size_t room) {
        list.push_back({name, [size](G& g) { return a_send(g, size); }, IBV_WC_REM_INV_REQ_ERR, Peer::Dies,
                        [room](G& g) { return std::vector<ibv_sge>{g.context.target.sge(4096, room)}; },
                        IBV_WC_LOC_LEN_ERR});
    };
    too_short("receive-too-short/1-into-0", 1, 0);
    too_short("receive-too-short/100-into-99", 100, 99);
    too_short("receive-too-short/many-packets", 100000, 99999);
    too_short("receive-too-short/1m", kMiB, 300000);

    const auto bad_receive = [&list](const char* name, std::function<std::vector<ibv_sge>(Ground&)> receive) {
        list.push_back({name, [](G& g) { return a_send(g, 100); }, IBV_WC_REM_OP_ERR, Peer::Dies,
                        std::move(receive), IBV_WC_LOC_PROT_ERR});
    };
    bad_receive("receive-lkey/other-tag", [](G& g) {
        ibv_sge piece = g.context.target.sge(4096, 200);
        piece.lkey = other_tag(piece.lkey);
        return std::vector<ibv_sge>{piece};
    });
    bad_receive("receive-lkey/read-only",
                [](G& g) { return std::vector<ibv_sge>{g.with(IBV_ACCESS_REMOTE_READ).sge(0, 200)}; });
    bad_receive("receive-lkey/other-domain",
                [](G& g) { return std::vector<ibv_sge>{g.foreign().sge(0, 200)}; });

    const auto no_receive = [&list](const char* name, std::function<SendRequest(Ground&)> bad) {
        list.push_back({name, std::move(bad), IBV_WC_RNR_RETRY_EXC_ERR, Peer::Lives});
        list.back().options = [](EndpointOptions& first, EndpointOptions&) { first.rnr_retries = 2; };
        list.back().peer_receives = false;
    };
    no_receive("rnr/send", [](G& g) { return a_send(g, 100); });
    no_receive("rnr/send-1m", [](G& g) { return a_send(g, kMiB); });
    no_receive("rnr/write-imm", [](G& g) {
        SendRequest request = a_write(g, g.context.target.va(4096), g.context.target.rkey());
        request.request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
        return request;
    });

    const auto unanswered = [&list](const char* name, std::function<void(Ground&)> before) {
        list.push_back({name, [](G& g) { return a_send(g, 5000); }, IBV_WC_RETRY_EXC_ERR, Peer::Lives});
        list.back().options = [](EndpointOptions& first, EndpointOptions&) {
            first.timeout = 14;  // 67 ms
            first.retries = 2;
        };
        list.back().before = std::move(before);
    };
    unanswered("no-answer/reset", [](G& g) { g.pair.b.to_state(IBV_QPS_RESET); });
    unanswered("no-answer/init", [](G& g) {
        g.pair.b.to_state(IBV_QPS_RESET);
        g.pair.b.to_init();
    });
    unanswered("no-answer/error", [](G& g) { g.pair.b.to_state(IBV_QPS_ERR); });
    return list;
}

/// Requests behind the one that fails: all kinds, half of them unsignalled. None of them may have an effect.
std::vector<SendRequest> trailing(Context& context) {
    std::vector<SendRequest> list;
    for (std::uint64_t i = 0; i < kTrailing; ++i) {
        static const ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_SEND, IBV_WR_RDMA_READ};
        list.push_back(
            SendRequest(opcodes[i % 3], kBad + 1 + i).local({context.source.sge(kTrailingAt, 100)}));
        if (opcodes[i % 3] != IBV_WR_SEND) {
            list.back().remote(context.target.va(kTrailingAt), context.target.rkey());
        }
        if (i % 2 == 1) {
            list.back().unsignalled();
        }
    }
    return list;
}

void flush_receives(Endpoint& end, std::uint64_t first) {
    for (std::uint64_t id = first; id < kReceives; ++id) {
        end.fail_receive(id, IBV_WC_WR_FLUSH_ERR);
    }
}

void expect_state(const Endpoint& end, ibv_qp_state state, const char* which) {
    const ibv_qp_state is = end.query_state();
    require(is == state, "the %s is in state %d, not %d", which, is, state);
}

void post_receives(Ground& ground, const Scenario& scenario, bool b_receives) {
    const std::vector<ibv_sge> room{ground.context.target.sge(8192, 4096)};
    for (std::uint64_t id = 0; id < kReceives; ++id) {
        ground.pair.a.receive(id, room);
        if (b_receives) {
            ground.pair.b.receive(id, id == 0 && scenario.receive ? scenario.receive(ground) : room);
        }
    }
}

void flush_trailing(Endpoint& end) {
    for (std::uint64_t i = 0; i < kTrailing; ++i) {
        end.fail_send(kBad + 1 + i, IBV_WC_WR_FLUSH_ERR);
    }
}

/// One good request, which must still succeed, the bad one, and the trailing ones, with one call.
void fail_requester(Ground& ground, const Scenario& scenario, bool with_good) {
    constexpr std::uint64_t kGood = kBad - 1;
    std::vector<SendRequest> requests;
    if (with_good) {
        requests.push_back(a_read_into(ground, ground.context.source.sge(20000, 64)));
        requests.back().request.wr_id = kGood;
    }
    requests.push_back(scenario.bad(ground));
    for (SendRequest& request : trailing(ground.context)) {
        requests.push_back(std::move(request));
    }
    Endpoint& a = ground.pair.a;
    a.post(std::move(requests));
    if (with_good) {
        a.finish_send(kGood, IBV_WC_RDMA_READ);
    }
    a.fail_send(kBad, scenario.status);
    flush_trailing(a);
    flush_receives(a, 0);
    expect_state(a, IBV_QPS_ERR, "requester");
}

/// The responder noticed nothing, and ends when it is told to.
void end_responder(Endpoint& b, const Scenario& scenario, bool b_receives) {
    if (!scenario.found_late) {
        b.expect_silence(5);
    }
    expect_state(b, IBV_QPS_RTS, "responder");
    b.to_state(IBV_QPS_ERR);
    // SENDs behind a failure that is found late may have used receives, in order.
    bool may_succeed = scenario.found_late;
    for (std::uint64_t id = 0; b_receives && id < kReceives; ++id) {
        const ibv_wc completion = b.wait_receive();
        may_succeed = may_succeed && completion.status == IBV_WC_SUCCESS;
        require(
            completion.wr_id == (id | kReceive) && (may_succeed || completion.status == IBV_WC_WR_FLUSH_ERR),
            "receive %d of the responder ended as '%s'", static_cast<int>(id),
            ibv_wc_status_str(completion.status));
    }
}

void fail_both(Context& context, const Scenario& scenario) {
    EndpointOptions first = context.options();
    EndpointOptions second = context.options();
    if (scenario.options) {
        scenario.options(first, second);
    }
    Ground ground(context, first, second);
    Endpoint& a = ground.pair.a;
    Endpoint& b = ground.pair.b;
    const Layout victim(kTrailingAt, 100);
    fill(context.source, victim, fresh_seed());
    fill_background(context.target, victim);
    if (scenario.before) {
        scenario.before(ground);
    }
    const bool b_is_alive = !scenario.before;
    const bool b_receives = scenario.peer_receives && b_is_alive;
    post_receives(ground, scenario, b_receives);
    fail_requester(ground, scenario, b_is_alive && (second.access & IBV_ACCESS_REMOTE_READ) != 0);
    if (scenario.peer == Peer::Dies) {
        b.fail_receive(0, scenario.receive_status);
        flush_receives(b, 1);
        expect_state(b, IBV_QPS_ERR, "responder");
    } else if (b_is_alive) {
        end_responder(b, scenario, b_receives);
    }
    if (!scenario.found_late) {
        verify(context.target, victim, 0, 0);
    }
    // What is posted to a dead queue pair comes back at once.
    for (SendRequest& request : trailing(context)) {
        a.post(request);
    }
    flush_trailing(a);
    a.expect_silence(10);
    b.expect_silence(10);
}

void run(Context& context, const Scenario& scenario) {
    fail_both(context, scenario);
    Pair fresh(context.device(), context.options());
    run_transfer(context.source, context.target, fresh.a, fresh.b, {Op::Send, 5000});
    run_transfer(context.source, context.target, fresh.b, fresh.a, {Op::Write, 5000});
    run_transfer(context.source, context.target, fresh.a, fresh.b, {Op::Read, 5000});
}

}  // namespace

void add_error_cases(Cases& cases) {
    for (auto list : {key_scenarios(), message_scenarios()}) {
        for (const Scenario& scenario : list) {
            cases.push_back({std::string("error/") + scenario.name,
                             [scenario](Context& context) { run(context, scenario); }});
        }
    }
}
