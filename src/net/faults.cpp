// SPDX-License-Identifier: MIT
#include "net/faults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ernic::net {
namespace {

/// What waits to be overtaken goes on after this time even when nobody comes.
constexpr Nanoseconds kLongestReorder = 10'000'000;

}  // namespace

Faults::Faults(Segment& segment, Link& link, EventLoop& loop, log::Logger log)
    : segment_(segment),
      link_(link),
      loop_(loop),
      log_(std::move(log)),
      queue_(loop, [this](HeldQueue::Entry entry) { released(std::move(entry)); }),
      outage_timer_(loop, [this] { on_outage_timer(); }) {
    link_.on_change([this](bool) { update_filter(); });
    update_filter();
}

Faults::~Faults() {
    segment_.filter(nullptr);
}

Result<Faults::Id> Faults::add(std::string_view text) {
    const auto spec = parse_fault(text);
    if (!spec) {
        return spec.error();
    }
    if (rules_.size() >= kMaxFaults) {
        return Error{Errc::NoSpace, fmt::format("{} faults are active already: clear one first", kMaxFaults)};
    }
    return add(spec.value());
}

Faults::Id Faults::add(const FaultSpec& spec) {
    auto& rule = *rules_.emplace_back(std::make_unique<FaultRule>(++last_id_, spec));
    log_.info("fault={} added: {}", rule.id(), to_string(spec));
    if (spec.immediate()) {
        rule.hit();
        take_link_down(rule);
    }
    update_filter();
    return last_id_;
}

std::vector<Faults::Status> Faults::list() const {
    std::vector<Status> all;
    all.reserve(rules_.size());
    for (const auto& rule : rules_) {
        all.push_back({rule->id(), to_string(rule->spec()), rule->seen(), rule->hits()});
    }
    return all;
}

bool Faults::clear(Id id) {
    if (find(id) == nullptr) {
        return false;
    }
    remove(id, "cleared");
    queue_.hurry(id);
    return true;
}

std::size_t Faults::clear_all() {
    const std::size_t count = rules_.size();
    // First, so that all that is kept back goes on in the order of its times, and of faults that are over,
    // too.
    queue_.hurry_all();
    while (!rules_.empty()) {
        remove(rules_.front()->id(), "cleared");
    }
    return count;
}

bool Faults::pass(const Message& message, Path path) {
    return pass(crossing_of(message, path));
}

bool Faults::pass(const Frame& frame, MacTable::Port from, Path path) {
    return pass(crossing_of(frame, from, path));
}

bool Faults::pass(const Crossing& crossing) {
    Verdict verdict;
    if (link_.up()) {
        verdict = judge(crossing);
    }
    if (!link_.up() && (crossing.path.from_guest || crossing.path.to_guest)) {
        link_down_drops_.add();
        return false;
    }
    if (!verdict.touched) {
        return true;
    }
    if (!verdict.drop) {
        carry_out(verdict, crossing);
    }
    return false;
}

Faults::Verdict Faults::judge(const Crossing& crossing) {
    Verdict verdict;
    bool exhausted = false;
    for (const auto& rule : rules_) {
        if (!rule->matches(crossing)) {
            continue;
        }
        if (rule->hit()) {
            hits(rule->spec().kind).add();
            verdict.touched = true;
            apply(*rule, crossing, verdict);
            exhausted = exhausted || rule->exhausted();
        } else if (rule->spec().kind == FaultKind::Reorder && rule->waiting != 0) {
            verdict.touched = true;
            verdict.overtakes = rule->id();
        }
        if (verdict.drop) {
            break;
        }
    }
    if (exhausted) {
        remove_exhausted();
    }
    return verdict;
}

void Faults::apply(FaultRule& rule, const Crossing& crossing, Verdict& verdict) {
    const Nanoseconds now = loop_.clock().now();
    switch (rule.spec().kind) {
        case FaultKind::Drop:
            verdict.drop = true;
            break;
        case FaultKind::Delay:
            verdict.due = rule.delayed(std::max(now, verdict.due));
            verdict.waits_for = rule.id();
            break;
        case FaultKind::Duplicate:
            verdict.copies += rule.spec().amount;
            break;
        case FaultKind::Reorder:
            verdict.due = std::max(now, verdict.due) + kLongestReorder;
            verdict.waits_for = rule.id();
            verdict.overtakers = rule.spec().amount;
            break;
        case FaultKind::Corrupt:
            for (std::uint32_t i = 0; i < rule.spec().amount; ++i) {
                verdict.flips.push_back(rule.random());
            }
            break;
        case FaultKind::Rate:
            if (const auto due = rule.paced(std::max(now, verdict.due), crossing.wire_bytes())) {
                verdict.due = *due;
                verdict.waits_for = rule.id();
            } else {
                overflow_drops_.add();
                verdict.drop = true;
            }
            break;
        case FaultKind::LinkDown:
            take_link_down(rule);
            break;
    }
}

void Faults::carry_out(const Verdict& verdict, const Crossing& crossing) {
    const bool as_it_is = verdict.waits_for == 0 && verdict.flips.empty();
    for (std::uint32_t copy = 0; copy <= verdict.copies; ++copy) {
        if (as_it_is) {
            crossing.deliver(segment_);
        } else if (!queue_.room_for(crossing.payload_bytes())) {
            overflow_drops_.add();
        } else if (verdict.flips.empty()) {
            send_or_hold(HeldTraffic(crossing), verdict);
        } else {
            if (finisher_ == nullptr) {
                finisher_ = std::make_unique<FrameFinisher>();
            }
            std::vector<HeldTraffic> pieces = copies_for_wire(crossing, *finisher_);
            for (const std::uint64_t bit : verdict.flips) {
                pieces.front().flip(bit);
            }
            for (HeldTraffic& piece : pieces) {
                send_or_hold(std::move(piece), verdict);
            }
        }
    }
    if (verdict.overtakes != 0) {
        queue_.overtaken(verdict.overtakes);
    }
}

void Faults::send_or_hold(HeldTraffic traffic, const Verdict& verdict) {
    if (verdict.waits_for == 0) {
        traffic.deliver(segment_);
        return;
    }
    if (!queue_.room_for(traffic.bytes())) {
        overflow_drops_.add();
        return;
    }
    if (FaultRule* const rule = find(verdict.waits_for)) {
        ++rule->waiting;
    }
    queue_.hold(verdict.due, {std::move(traffic), verdict.waits_for, verdict.overtakers});
}

void Faults::released(HeldQueue::Entry entry) {
    if (FaultRule* const rule = find(entry.fault)) {
        --rule->waiting;
    }
    const Path path = entry.traffic.path();
    if (!link_.up() && (path.from_guest || path.to_guest)) {
        link_down_drops_.add();
        return;
    }
    entry.traffic.deliver(segment_);
}

void Faults::take_link_down(FaultRule& rule) {
    rule.link_down = true;
    rule.link_up_at = rule.spec().outage == 0 ? UINT64_MAX : loop_.clock().now() + rule.spec().outage;
    arm_outage_timer();
    update_link();
}

void Faults::arm_outage_timer() {
    Nanoseconds first = UINT64_MAX;
    for (const auto& rule : rules_) {
        first = rule->link_down ? std::min(first, rule->link_up_at) : first;
    }
    if (first == UINT64_MAX) {
        outage_timer_.cancel();
    } else {
        outage_timer_.arm(first);
    }
}

void Faults::on_outage_timer() {
    const Nanoseconds now = loop_.clock().now();
    for (std::size_t i = 0; i < rules_.size();) {
        FaultRule& rule = *rules_[i];
        const bool over = rule.link_down && rule.link_up_at <= now;
        rule.link_down = rule.link_down && !over;
        if (over && (rule.spec().immediate() || rule.exhausted())) {
            remove(rule.id(), "over");
        } else {
            ++i;
        }
    }
    update_link();
    arm_outage_timer();
}

void Faults::update_link() {
    const bool down =
        std::any_of(rules_.begin(), rules_.end(), [](const auto& rule) { return rule->link_down; });
    link_.set(Link::Source::Fault, !down);
}

FaultRule* Faults::find(Id id) {
    const auto found =
        std::find_if(rules_.begin(), rules_.end(), [id](const auto& rule) { return rule->id() == id; });
    return found == rules_.end() ? nullptr : found->get();
}

void Faults::remove(Id id, std::string_view why) {
    const auto found =
        std::find_if(rules_.begin(), rules_.end(), [id](const auto& rule) { return rule->id() == id; });
    const std::unique_ptr<FaultRule> rule = std::move(*found);
    rules_.erase(found);
    log_.info("fault={} {}: seen={} hits={} ({})", id, why, rule->seen(), rule->hits(),
              to_string(rule->spec()));
    arm_outage_timer();
    update_link();
    update_filter();
}

void Faults::remove_exhausted() {
    for (std::size_t i = 0; i < rules_.size();) {
        if (rules_[i]->exhausted() && !rules_[i]->link_down) {
            remove(rules_[i]->id(), "over");
        } else {
            ++i;
        }
    }
}

void Faults::update_filter() {
    segment_.filter(rules_.empty() && link_.up() ? nullptr : this);
}

void Faults::register_metrics(metrics::Registry& registry) const {
    const auto add = [&registry](const char* name, const char* help, const metrics::Counter& counter) {
        registry.add({fmt::format("faults.{}", name), "hits", help}, counter);
    };
    const auto of = [this](FaultKind kind) -> const metrics::Counter& {
        return hits_[static_cast<std::size_t>(kind)];
    };
    registry.add({"faults.active", "faults", "faults asked for that are active now"},
                 [this] { return rules_.size(); });
    add("drops", "messages and frames dropped by a fault", of(FaultKind::Drop));
    add("delays", "messages and frames delayed by a fault", of(FaultKind::Delay));
    add("duplicates", "messages and frames that a fault sent more than once", of(FaultKind::Duplicate));
    add("reorders", "messages and frames kept back so that others overtake", of(FaultKind::Reorder));
    add("corruptions", "messages and frames in which a fault flipped bits", of(FaultKind::Corrupt));
    add("rate_limited", "messages and frames that went through a rate limit", of(FaultKind::Rate));
    add("link_downs", "times a fault took the link down", of(FaultKind::LinkDown));
    add("link_down_drops", "messages and frames from or to the guest while its link was down",
        link_down_drops_);
    add("overflow_drops",
        "messages and frames dropped because too much waited already; high: a delay or rate limit asks for "
        "more room than there is",
        overflow_drops_);
    registry.add({"faults.queue_bytes", "bytes", "payload that faults keep back now"},
                 [this] { return queue_.bytes(); });
    registry.add({"faults.queue_pieces", "pieces", "messages and frames that faults keep back now"},
                 [this] { return queue_.pieces(); });
}

}  // namespace ernic::net
