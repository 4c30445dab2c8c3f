// SPDX-License-Identifier: MIT
#include <atomic>
#include <cinttypes>
#include <cstring>
#include <thread>
#include <utility>

#include "cases.hpp"
#include "check.hpp"

namespace {

constexpr std::uint64_t kOld = 0x0123456789abcdefU;
constexpr std::uint64_t kNew = 0xfedcba9876543210U;

std::uint64_t word_at(const Buffer& buffer, std::size_t offset) {
    std::uint64_t value = 0;
    memcpy(&value, buffer.at(offset), sizeof value);
    return value;
}

void set_word(const Buffer& buffer, std::size_t offset, std::uint64_t value) {
    memcpy(buffer.at(offset), &value, sizeof value);
}

/// One atomic on target[at], its answer to source[answer_at]; the eight bytes on either side of both stay as
/// they are.
void run_one(Context& context, Endpoint& by, std::size_t at, std::size_t answer_at, bool swap,
             std::uint64_t first, std::uint64_t second, std::uint64_t before, std::uint64_t after) {
    for (const std::size_t neighbour : {at - 8, at + 8}) {
        set_word(context.target, neighbour, ~neighbour);
    }
    for (const std::size_t neighbour : {answer_at - 8, answer_at + 8}) {
        set_word(context.source, neighbour, ~neighbour);
    }
    set_word(context.target, at, before);
    set_word(context.source, answer_at, 0x5555);
    const std::uint64_t id = by.next_id();
    SendRequest request(swap ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD, id);
    request.local({context.source.sge(answer_at, 8)});
    if (swap) {
        request.compare_swap(context.target.va(at), context.target.rkey(), first, second);
    } else {
        request.fetch_add(context.target.va(at), context.target.rkey(), first);
    }
    by.post(request);
    by.finish_send(id, swap ? IBV_WC_COMP_SWAP : IBV_WC_FETCH_ADD);
    require(word_at(context.target, at) == after, "the target is 0x%" PRIx64 ", not 0x%" PRIx64,
            word_at(context.target, at), after);
    require(word_at(context.source, answer_at) == before, "the answer is 0x%" PRIx64 ", not 0x%" PRIx64,
            word_at(context.source, answer_at), before);
    require(word_at(context.target, at - 8) == ~(at - 8) && word_at(context.target, at + 8) == ~(at + 8),
            "a neighbour of the target was changed");
    require(word_at(context.source, answer_at - 8) == ~(answer_at - 8) &&
                word_at(context.source, answer_at + 8) == ~(answer_at + 8),
            "a neighbour of the answer was changed");
}

void simple(Context& context, bool swap, std::uint64_t first, std::uint64_t second, std::uint64_t before,
            std::uint64_t after) {
    Pair& pair = context.pair();
    run_one(context, pair.a, 4096, 8192, swap, first, second, before, after);
    run_one(context, pair.b, 4096, 8192, swap, first, second, before, after);
    // Last and first word of a page, and an answer that spans two pages.
    run_one(context, pair.a, 8192 - 8, 12288 - 3, swap, first, second, before, after);
    run_one(context, pair.b, 8192, 12289, swap, first, second, before, after);
}

/// More at once than the peer takes: the requester has to hold some back.
void outstanding(Context& context) {
    constexpr std::uint64_t kCount = 60;
    Pair& pair = context.pair();
    set_word(context.target, 4096, 1000);
    std::vector<SendRequest> requests;
    for (std::uint64_t i = 0; i < kCount; ++i) {
        requests.push_back(SendRequest(IBV_WR_ATOMIC_FETCH_AND_ADD, i)
                               .local({context.source.sge(4096 + 8 * i, 8)})
                               .fetch_add(context.target.va(4096), context.target.rkey(), i));
    }
    pair.a.post(std::move(requests));
    std::uint64_t expected = 1000;
    for (std::uint64_t i = 0; i < kCount; ++i) {
        pair.a.finish_send(i, IBV_WC_FETCH_ADD);
        const std::uint64_t answer = word_at(context.source, 4096 + 8 * i);
        require(answer == expected, "answer %" PRIu64 " is %" PRIu64 ", not %" PRIu64, i, answer, expected);
        expected += i;
    }
    require(word_at(context.target, 4096) == expected, "the sum is %" PRIu64 ", not %" PRIu64,
            word_at(context.target, 4096), expected);
}

/// A lock handed round between the two ends: each swap only succeeds on what the other one left.
void hand_over(Context& context) {
    Pair& pair = context.pair();
    set_word(context.target, 4096, 0);
    for (std::uint64_t i = 0; i < 20; ++i) {
        Endpoint& by = i % 2 == 0 ? pair.a : pair.b;
        const std::uint64_t id = by.next_id();
        by.post(SendRequest(IBV_WR_ATOMIC_CMP_AND_SWP, id)
                    .local({context.source.sge(4096, 8)})
                    .compare_swap(context.target.va(4096), context.target.rkey(), i, i + 1));
        by.finish_send(id, IBV_WC_COMP_SWAP);
        require(word_at(context.source, 4096) == i, "round %" PRIu64 ": the answer is %" PRIu64, i,
                word_at(context.source, 4096));
    }
}

/// ATOMIC_GLOB promises that atomics of the processor and of the device do not lose each other's updates.
void against_processor(Context& context) {
    if (context.device().attributes().atomic_cap != IBV_ATOMIC_GLOB) {
        skip("the device does not promise it");
    }
    constexpr std::uint64_t kCount = 1500;
    Pair& pair = context.pair();
    set_word(context.target, 4096, 0);
    auto* word = reinterpret_cast<std::atomic<std::uint64_t>*>(context.target.at(4096));
    std::atomic<bool> stop{false};
    std::uint64_t added = 0;
    std::thread processor([&] {
        while (!stop.load(std::memory_order_relaxed)) {
            word->fetch_add(std::uint64_t{1} << 32U);
            ++added;
        }
    });
    std::string problem;
    try {
        for (std::uint64_t i = 0; i < kCount; i += 50) {
            std::vector<SendRequest> requests;
            for (int k = 0; k < 50; ++k) {
                requests.push_back(SendRequest(IBV_WR_ATOMIC_FETCH_AND_ADD, 7)
                                       .local({context.source.sge(4096, 8)})
                                       .fetch_add(context.target.va(4096), context.target.rkey(), 1));
                if (k != 49) {
                    requests.back().unsignalled();
                }
            }
            pair.a.post(std::move(requests));
            pair.a.finish_send(7, IBV_WC_FETCH_ADD);
        }
    } catch (const Failure& reason) {
        problem = reason.what();
    }
    stop = true;
    processor.join();
    require(problem.empty(), "%s", problem.c_str());
    const std::uint64_t expected = (added << 32U) + kCount;
    require(*word == expected, "the sum is 0x%" PRIx64 ", not 0x%" PRIx64, word->load(), expected);
}

/// READ shares its limit of outstanding requests with the atomics.
void outstanding_reads(Context& context) {
    constexpr std::size_t kCount = 60;
    constexpr std::size_t kSize = 2500;
    Pair& pair = context.pair();
    const std::uint64_t seed = fresh_seed();
    fill(context.source, Layout(4096, kCount * kSize), seed);
    const Layout to(4096, kCount * kSize);
    fill_background(context.target, to);
    std::vector<SendRequest> requests;
    for (std::size_t i = 0; i < kCount; ++i) {
        requests.push_back(SendRequest(IBV_WR_RDMA_READ, i)
                               .local({context.target.sge(4096 + kSize * i, kSize)})
                               .remote(context.source.va(4096 + kSize * i), context.source.rkey()));
    }
    pair.a.post(std::move(requests));
    for (std::size_t i = 0; i < kCount; ++i) {
        pair.a.finish_send(i, IBV_WC_RDMA_READ);
    }
    verify(context.target, to, seed, kCount * kSize);
}

}  // namespace

void add_atomic_cases(Cases& cases) {
    cases.push_back(
        {"atomic/swap-hits", [](Context& context) { simple(context, true, kOld, kNew, kOld, kNew); }});
    cases.push_back(
        {"atomic/swap-misses", [](Context& context) { simple(context, true, kOld ^ 1, kNew, kOld, kOld); }});
    cases.push_back({"atomic/swap-misses-high", [](Context& context) {
                         simple(context, true, kOld ^ (1ULL << 63U), kNew, kOld, kOld);
                     }});
    cases.push_back(
        {"atomic/add", [](Context& context) { simple(context, false, kNew, 0, kOld, kOld + kNew); }});
    cases.push_back({"atomic/add-carries",
                     [](Context& context) { simple(context, false, 1, 0, 0xffffffffU, 0x100000000U); }});
    cases.push_back({"atomic/add-wraps", [](Context& context) { simple(context, false, 3, 0, ~0ULL, 2); }});
    cases.push_back({"atomic/outstanding", outstanding});
    cases.push_back({"atomic/outstanding-reads", outstanding_reads});
    cases.push_back({"atomic/hand-over", hand_over});
    cases.push_back({"atomic/against-processor", against_processor});
}
