// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "guest_sim/guest.hpp"

namespace ernic::guest_sim {

/// A queue pair and memory of a guest that take part in one exchange at a time, again and again.
struct Lane {
    QpPtr qp;
    Region region;
    bool busy = false;
};

/// The guest of a node in a mesh.
class MeshGuest {
  public:
    static constexpr std::size_t kLanes = 4;
    /// A quarter each for a write, a read, a send, and the atomics' words.
    static constexpr std::size_t kPart = std::size_t{512} * 1024;
    static constexpr std::size_t kLaneSize = 4 * kPart;

    explicit MeshGuest(ServerProcess& server);

    /// A lane that is not busy, null when there is none.
    Lane* free_lane();
    Guest& guest() { return guest_; }
    /// What has completed on the lane's queue pair since the last call, put behind `out`.
    void collect(const Lane& lane, std::vector<WorkCompletion>& out);

  private:
    Guest guest_;
    CqPtr cq_;
    std::vector<Lane> lanes_;
    /// Completions that nobody has asked for yet.
    std::vector<WorkCompletion> seen_;
};

/// One guest connects to another, writes, reads, sends and adds to a word there, each in sizes up to kPart,
/// and all memory of both lanes is compared with what it must be then.
class Exchange {
  public:
    using Random = std::mt19937_64;

    /// Connects and posts. `largest` bounds the sizes. Both guests must outlive the exchange or be told of by
    /// lose().
    Exchange(MeshGuest& from, MeshGuest& to, Random& random, std::size_t largest = MeshGuest::kPart);
    ~Exchange();
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;

    /// It may fail from now on: then its pieces may have arrived or not, and nothing else may have changed.
    void may_fail() { cut_off_ = true; }
    /// `guest` is about to go away, and the exchange may fail.
    void lose(const MeshGuest& guest);
    /// True when nothing more is to be waited for.
    bool done();
    /// Empty when everything is as it must be, else what is not.
    [[nodiscard]] std::string fault() const;
    /// Every request has ended well.
    [[nodiscard]] bool succeeded() const;
    [[nodiscard]] Status worst() const;
    [[nodiscard]] std::size_t bytes() const { return write_.size + read_.size + send_.size; }
    [[nodiscard]] bool involves(const MeshGuest& guest) const { return from_ == &guest || to_ == &guest; }

  private:
    /// Part of a transfer: `size` bytes at one offset here, another one there.
    struct Piece {
        std::size_t size = 0;
        std::size_t near = 0;
        std::size_t far = 0;
    };
    static Piece piece(std::size_t part, std::size_t largest, Random& random);
    void reset();
    void connect(Random& random);
    void post();
    void expect(Random& random);
    [[nodiscard]] std::string completion_fault() const;

    MeshGuest* from_;
    MeshGuest* to_;
    Lane* near_;
    Lane* far_;
    Piece write_;
    Piece read_;
    Piece send_;
    Piece word_;
    std::uint64_t add_ = 0;
    std::vector<std::byte> near_expected_;
    std::vector<std::byte> far_expected_;
    std::vector<WorkCompletion> sent_;
    std::vector<WorkCompletion> received_;
    bool cut_off_ = false;
};

}  // namespace ernic::guest_sim
