// SPDX-License-Identifier: MIT
#include "support/mesh_guests.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <thread>

#include "guest_sim/error.hpp"
#include "support/cpu.hpp"
#include "support/samples.hpp"

namespace ernic::bench {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20U;
/// Bytes, and requests of one queue pair, that are posted before the first has completed.
constexpr std::size_t kAhead = 16 * kMiB;
constexpr std::uint32_t kDepth = 255;
/// What is left free for other things of a guest.
constexpr std::size_t kExtra = 96 * kMiB;
/// A driver that polled all the time would take a CPU from a server. What is posted lasts for much longer.
constexpr std::chrono::microseconds kPause{100};

std::uint32_t depth(std::uint32_t queue_pairs) {
    return queue_pairs > 8 ? 15 : kDepth;
}

}  // namespace

sim::ServerProcess::Options MeshGuests::server(const Options& options, const std::string& backend,
                                               const std::string& mac, int cpu) {
    sim::ServerProcess::Options server{.arguments = {"--backend", backend, "--mac", mac}, .cpu = cpu};
    server.arguments.insert(server.arguments.end(), options.arguments.begin(), options.arguments.end());
    return server;
}

MeshGuests::MeshGuests(const Options& options)
    : port_(std::to_string(sim::manager_port())),
      left_server_(server(options, "tcp:manager:listen:" + port_, "02:00:00:00:00:01", client_cpu())),
      right_server_(server(options, "tcp:worker:127.0.0.1:" + port_, "02:00:00:00:00:02", server_cpu())),
      left_(left_server_, options.memory + kExtra),
      right_(right_server_, options.memory + kExtra),
      cq_(left_.create_cq({.entries = std::max(kDepth, options.queue_pairs)})),
      ping_cq_(left_.create_cq()),
      peer_cq_(right_.create_cq()),
      from_(left_.register_memory(options.memory)),
      to_(right_.register_memory(options.memory)) {
    sim::ConnectionOptions to_right;
    to_right.peer = right_.card().mac();
    sim::ConnectionOptions to_left;
    to_left.peer = left_.card().mac();
    // One more, for pings.
    for (std::uint32_t i = 0; i < options.queue_pairs + 1; ++i) {
        sim::CompletionQueue& cq = i == options.queue_pairs ? *ping_cq_ : *cq_;
        clients_.push_back(left_.create_qp(cq, {.max_send = i == 0 ? kDepth : depth(options.queue_pairs)}));
        peers_.push_back(right_.create_qp(*peer_cq_, {.max_send = 15, .max_receive = 15}));
        left_.make_ready(*clients_.back(), peers_.back()->qpn(), to_right);
        right_.make_ready(*peers_.back(), clients_.back()->qpn(), to_left);
    }
    // The mesh stands when the first message gets through; and all memory is there.
    from_.memory.fill(1);
    to_.memory.fill(2);
    (void)walk(kMiB, options.memory);
}

void MeshGuests::post(std::size_t queue_pair, std::size_t at, std::size_t size) {
    clients_[queue_pair]->post_send({.wr_id = 1,
                                     .op = sim::Op::Write,
                                     .sges = {from_.sge(at, size)},
                                     .remote_va = to_.va + at,
                                     .rkey = to_.key});
}

double MeshGuests::walk(std::size_t size, std::size_t total, std::uint32_t queue_pairs) {
    const std::size_t count = total / size;
    const std::size_t places = from_.length / size;
    const std::size_t ahead =
        queue_pairs > 1 ? queue_pairs : std::clamp<std::size_t>(kAhead / size, 2, kDepth);
    std::size_t posted = 0;
    std::size_t done = 0;
    const auto begin = Clock::now();
    while (done < count) {
        while (posted < count && posted < done + ahead) {
            post(posted % queue_pairs, posted % places * size, size);
            ++posted;
        }
        std::array<sim::WorkCompletion, 64> completions;
        const std::size_t got = cq_->poll(completions);
        for (std::size_t i = 0; i < got; ++i) {
            sim::require(completions[i].status == sim::Status::Ok, "transfer failed");
        }
        done += got;
        if (got == 0) {
            std::this_thread::sleep_for(kPause);
        }
    }
    return seconds_since(begin);
}

double MeshGuests::ping(std::size_t size, std::size_t queue_pair) {
    const bool own = queue_pair != 0;
    sim::QueuePair& client = own ? *clients_.back() : *clients_.front();
    sim::CompletionQueue& cq = own ? *ping_cq_ : *cq_;
    client.stage(sim::SendRequest{.wr_id = 1,
                                  .op = sim::Op::Write,
                                  .sges = {from_.sge(0, size)},
                                  .remote_va = to_.va,
                                  .rkey = to_.key});
    sim::WorkCompletion completion;
    const auto begin = Clock::now();
    client.ring_send();
    while (cq.poll(std::span(&completion, 1)) == 0) {
        if (own) {
            std::this_thread::sleep_for(kPause / 2);
        } else {
            std::this_thread::yield();
        }
    }
    sim::require(completion.status == sim::Status::Ok, "ping failed");
    return seconds_since(begin);
}

void MeshGuests::begin_large() {
    post(0, 0, from_.length);
    large_ = true;
}

bool MeshGuests::large_under_way() {
    sim::WorkCompletion completion;
    if (large_ && cq_->poll(std::span(&completion, 1)) != 0) {
        sim::require(completion.status == sim::Status::Ok, "the large transfer failed");
        large_ = false;
    }
    return large_;
}

}  // namespace ernic::bench
