// SPDX-License-Identifier: MIT
#include "guest_sim/mesh_exchange.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "guest_sim/error.hpp"

namespace ernic::guest_sim {
namespace {

constexpr std::size_t kRam = 2 * MeshGuest::kLanes * MeshGuest::kLaneSize;
constexpr std::size_t kRequests = 4;
constexpr std::size_t kWord = sizeof(std::uint64_t);

void fill_random(const Buffer& buffer, Exchange::Random& random) {
    // A cheap generator of its own: a debug build would spend its time on the Mersenne Twister.
    std::uint64_t state = random() | 1U;
    for (std::size_t at = 0; at < buffer.size; at += sizeof(state)) {
        state ^= state << 13U;
        state ^= state >> 7U;
        state ^= state << 17U;
        std::memcpy(buffer.host + at, &state, sizeof(state));
    }
}

std::string difference(const char* whose, const Buffer& memory, const std::vector<std::byte>& expected) {
    if (std::memcmp(memory.host, expected.data(), expected.size()) == 0) {
        return {};
    }
    const auto [here, there] = std::mismatch(expected.begin(), expected.end(), memory.host);
    return std::string("byte ") + std::to_string(here - expected.begin()) + " of " + whose +
           "'s memory is wrong; ";
}

}  // namespace

MeshGuest::MeshGuest(ServerProcess& server) : guest_(server, kRam), cq_(guest_.create_cq()), lanes_(kLanes) {
    std::uint32_t udma = 0;
    for (Lane& lane : lanes_) {
        lane.qp = guest_.create_qp(*cq_, {.max_send = 15, .max_receive = 15, .udma = udma});
        lane.region = guest_.register_memory(kLaneSize);
        udma ^= 1U;
    }
}

Lane* MeshGuest::free_lane() {
    const auto found =
        std::find_if(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return !lane.busy; });
    return found == lanes_.end() ? nullptr : &*found;
}

void MeshGuest::collect(const Lane& lane, std::vector<WorkCompletion>& out) {
    std::array<WorkCompletion, 16> found;
    const std::size_t count = cq_->poll(found);
    seen_.insert(seen_.end(), found.begin(), found.begin() + static_cast<std::ptrdiff_t>(count));
    const auto mine = std::stable_partition(
        seen_.begin(), seen_.end(), [&lane](const WorkCompletion& wc) { return wc.qpn != lane.qp->qpn(); });
    out.insert(out.end(), mine, seen_.end());
    seen_.erase(mine, seen_.end());
}

Exchange::Piece Exchange::piece(std::size_t part, std::size_t largest, Random& random) {
    // Small ones are as likely as large ones.
    const double most = std::log2(static_cast<double>(largest));
    const double bits = std::uniform_real_distribution<double>(0, most)(random);
    const auto size = static_cast<std::size_t>(std::exp2(bits));
    const std::size_t start = part * MeshGuest::kPart;
    const std::size_t room = MeshGuest::kPart - size;
    return {size, start + random() % (room + 1), start + random() % (room + 1)};
}

Exchange::Exchange(MeshGuest& from, MeshGuest& to, Random& random, std::size_t largest)
    : from_(&from),
      to_(&to),
      near_(from.free_lane()),
      far_(to.free_lane()),
      write_(piece(0, largest, random)),
      read_(piece(1, largest, random)),
      send_(piece(2, largest, random)),
      word_{kWord, 3 * MeshGuest::kPart + random() % 1000 * kWord,
            3 * MeshGuest::kPart + random() % 1000 * kWord},
      add_(random()) {
    require(near_ != nullptr && far_ != nullptr, "no lane is free");
    near_->busy = true;
    far_->busy = true;
    // What the last exchange may have left behind must be gone before the memory has its new contents.
    reset();
    expect(random);
    connect(random);
    post();
}

Exchange::~Exchange() {
    for (Lane* const lane : {near_, far_}) {
        if (lane != nullptr) {
            lane->busy = false;
        }
    }
}

void Exchange::expect(Random& random) {
    const Buffer& near = near_->region.memory;
    const Buffer& far = far_->region.memory;
    fill_random(near, random);
    fill_random(far, random);
    near_expected_.assign(near.host, near.host + near.size);
    far_expected_.assign(far.host, far.host + far.size);
    for (const Piece& out : {write_, send_}) {
        std::memcpy(far_expected_.data() + out.far, near.host + out.near, out.size);
    }
    std::memcpy(near_expected_.data() + read_.near, far.host + read_.far, read_.size);
    std::memcpy(near_expected_.data() + word_.near, far.host + word_.far, kWord);
    std::uint64_t sum = 0;
    std::memcpy(&sum, far.host + word_.far, kWord);
    sum += add_;
    std::memcpy(far_expected_.data() + word_.far, &sum, kWord);
}

void Exchange::reset() {
    std::vector<WorkCompletion> stale;
    near_->qp->to(QpState::Reset);
    from_->collect(*near_, stale);
    far_->qp->to(QpState::Reset);
    to_->collect(*far_, stale);
}

void Exchange::connect(Random& random) {
    ConnectionOptions to_far;
    to_far.peer = to_->guest().card().mac();
    to_far.first_psn = static_cast<std::uint32_t>(random()) & 0xffffffU;
    ConnectionOptions to_near = to_far;
    to_near.peer = from_->guest().card().mac();
    to_->guest().make_ready(*far_->qp, near_->qp->qpn(), to_near);
    from_->guest().make_ready(*near_->qp, far_->qp->qpn(), to_far);
}

void Exchange::post() {
    const Region& near = near_->region;
    const Region& far = far_->region;
    far_->qp->post_receive({.wr_id = kRequests, .sges = {far.sge(send_.far, send_.size)}});
    QueuePair& qp = *near_->qp;
    const auto request = [&](std::uint64_t id, Op op, const Piece& piece) {
        return SendRequest{.wr_id = id,
                           .op = op,
                           .sges = {near.sge(piece.near, piece.size)},
                           .remote_va = far.va + piece.far,
                           .rkey = far.key};
    };
    qp.stage(request(0, Op::Write, write_));
    qp.stage(request(1, Op::Read, read_));
    qp.stage(request(2, Op::Send, send_));
    SendRequest add = request(3, Op::FetchAdd, word_);
    add.swap_add = add_;
    qp.stage(add);
    qp.ring_send();
}

void Exchange::lose(const MeshGuest& guest) {
    if (&guest == from_) {
        from_ = nullptr;
        near_ = nullptr;
        cut_off_ = true;
    }
    if (&guest == to_) {
        to_ = nullptr;
        far_ = nullptr;
        cut_off_ = true;
    }
}

bool Exchange::done() {
    if (from_ != nullptr) {
        from_->collect(*near_, sent_);
    }
    if (to_ != nullptr) {
        to_->collect(*far_, received_);
    }
    const bool near_done = from_ == nullptr || sent_.size() >= kRequests;
    // The receiver learns of a sender's end by nothing at all.
    const bool far_done = to_ == nullptr || cut_off_ || !received_.empty() || (near_done && !succeeded());
    return near_done && far_done;
}

Status Exchange::worst() const {
    const auto failed = std::find_if(sent_.begin(), sent_.end(),
                                     [](const WorkCompletion& wc) { return wc.status != Status::Ok; });
    return failed == sent_.end() ? Status::Ok : failed->status;
}

bool Exchange::succeeded() const {
    return sent_.size() == kRequests && worst() == Status::Ok;
}

std::string Exchange::completion_fault() const {
    std::string text;
    for (std::size_t i = 0; i < sent_.size(); ++i) {
        const auto status = static_cast<unsigned>(sent_[i].status);
        if (sent_[i].wr_id != i || (!cut_off_ && sent_[i].status != Status::Ok)) {
            text += "request " + std::to_string(sent_[i].wr_id) + " ended with status " +
                    std::to_string(status) + "; ";
        }
    }
    if (!cut_off_ && (sent_.size() != kRequests || received_.size() != 1)) {
        text += std::to_string(sent_.size()) + " requests and " + std::to_string(received_.size()) +
                " receives have ended; ";
    }
    if (!received_.empty() && received_[0].status == Status::Ok && received_[0].length != send_.size) {
        text += "received " + std::to_string(received_[0].length) + " bytes of " +
                std::to_string(send_.size) + "; ";
    }
    return text;
}

std::string Exchange::fault() const {
    std::string text = completion_fault();
    std::vector<std::byte> near = near_expected_;
    std::vector<std::byte> far = far_expected_;
    if (cut_off_ && !succeeded()) {
        // What was under way may have arrived or not, but nothing beside it may have changed.
        const auto forgive = [](std::vector<std::byte>& expected, const Lane* lane, std::size_t at,
                                std::size_t size) {
            if (lane != nullptr) {
                std::memcpy(expected.data() + at, lane->region.memory.host + at, size);
            }
        };
        for (const Piece& piece : {read_, word_}) {
            forgive(near, near_, piece.near, piece.size);
        }
        for (const Piece& piece : {write_, send_, word_}) {
            forgive(far, far_, piece.far, piece.size);
        }
    }
    text += near_ == nullptr ? std::string() : difference("the sender", near_->region.memory, near);
    text += far_ == nullptr ? std::string() : difference("the receiver", far_->region.memory, far);
    return text;
}

}  // namespace ernic::guest_sim
