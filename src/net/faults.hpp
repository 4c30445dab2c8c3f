// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/event_loop.hpp"
#include "base/log.hpp"
#include "base/result.hpp"
#include "metrics/registry.hpp"
#include "net/fault_rule.hpp"
#include "net/fault_spec.hpp"
#include "net/filter.hpp"
#include "net/held_queue.hpp"
#include "net/link.hpp"
#include "net/segment.hpp"

namespace ernic::net {

/// The faults that are active on a segment, and what they do to the traffic. Stands in the segment's way only
/// while there is a fault or the link is down. Thread: device.
class Faults final : public Filter {
  public:
    using Id = std::uint32_t;
    static constexpr std::size_t kMaxFaults = 64;

    /// One active fault, for people.
    struct Status {
        Id id = 0;
        std::string text;
        /// Messages and frames it was about, and how many of them it hit.
        std::uint64_t seen = 0;
        std::uint64_t hits = 0;
    };

    /// All must outlive this.
    Faults(Segment& segment, Link& link, EventLoop& loop, log::Logger log);
    ~Faults() override;
    Faults(const Faults&) = delete;
    Faults& operator=(const Faults&) = delete;

    /// Makes a fault active, after those there are. Ids are never used twice. Fails: InvalidArgument with a
    /// sentence about `text`, NoSpace when there are kMaxFaults.
    Result<Id> add(std::string_view text);
    Id add(const FaultSpec& spec);

    /// In the order in which they judge, which is the one they were added in.
    [[nodiscard]] std::vector<Status> list() const;

    /// Ends a fault; what it has kept back goes on at once. Fails: false when there is none of that id (it
    /// may have ended by itself).
    bool clear(Id id);
    /// Ends all, and what those that are over have kept back goes on at once too; returns how many there
    /// were.
    std::size_t clear_all();

    bool pass(const Message& message, Path path) override;
    bool pass(const Frame& frame, MacTable::Port from, Path path) override;

    void register_metrics(metrics::Registry& registry) const;

  private:
    /// What all faults together have decided about one piece of traffic.
    struct Verdict {
        bool touched = false;
        bool drop = false;
        Nanoseconds due = 0;
        /// The fault it has to wait for; 0: none.
        Id waits_for = 0;
        std::uint32_t overtakers = 0;
        std::uint32_t copies = 0;
        /// Bits to flip; empty: none.
        std::vector<std::uint64_t> flips;
        /// The fault whose held traffic this one overtakes; 0: none.
        Id overtakes = 0;
    };

    bool pass(const Crossing& crossing);
    Verdict judge(const Crossing& crossing);
    void apply(FaultRule& rule, const Crossing& crossing, Verdict& verdict);
    void carry_out(const Verdict& verdict, const Crossing& crossing);
    void send_or_hold(HeldTraffic traffic, const Verdict& verdict);
    void released(HeldQueue::Entry entry);

    void take_link_down(FaultRule& rule);
    void arm_outage_timer();
    void on_outage_timer();
    void update_link();

    [[nodiscard]] FaultRule* find(Id id);
    void remove(Id id, std::string_view why);
    void remove_exhausted();
    /// Stands in the way, or out of it.
    void update_filter();
    metrics::Counter& hits(FaultKind kind) { return hits_[static_cast<std::size_t>(kind)]; }

    Segment& segment_;
    Link& link_;
    EventLoop& loop_;
    log::Logger log_;
    std::vector<std::unique_ptr<FaultRule>> rules_;
    Id last_id_ = 0;
    HeldQueue queue_;
    Timer outage_timer_;
    /// Its work space is large, and few faults need it.
    std::unique_ptr<FrameFinisher> finisher_;
    std::array<metrics::Counter, kFaultKinds> hits_;
    metrics::Counter link_down_drops_;
    metrics::Counter overflow_drops_;
};

}  // namespace ernic::net
