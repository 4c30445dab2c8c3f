// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/event_loop.hpp"
#include "net/message.hpp"
#include "rdma/psn.hpp"
#include "rdma/types.hpp"

namespace ernic::rdma {

class QueuePair;

/// The sending half of a queue pair (InfiniBand 9.7.3 to 9.7.8 for RC): takes work requests in ring order,
/// turns them into message fragments, waits for acknowledgements, repeats what was lost, and completes
/// requests in order.
///
///   completed            started                 next                  posted
///      |  in flight: sent, not acknowledged       |  waiting in the ring  |
///      +------------------------------------------+-----------------------+----> position
///
/// Reads longer than kFragment are asked for in pieces, so that neither side ever has more than one piece to
/// move. Thread: device.
class Requester {
  public:
    explicit Requester(QueuePair& qp);

    /// Back to position 0 with nothing in flight.
    void reset();
    /// Entering RTS from RTR: the first PSN.
    void start(Psn first);
    /// No more sending or timers; requests in flight are forgotten (the owner flushes them).
    void stop();

    /// `count` further requests stand in the ring.
    void posted(std::uint32_t producer_index, std::uint32_t ring_mask);

    /// Runs requests within `budget`.
    Turned step(Budget& budget);

    void on_response(const net::Message& message);

    /// Where the next message goes, and all answers of a connected QP; null when that is not known.
    [[nodiscard]] const wire::MacAddress* destination();

    /// Nothing sent is waiting for an acknowledgement and no request is half sent.
    [[nodiscard]] bool idle() const { return in_flight_ == 0 && !failure_; }
    [[nodiscard]] bool has_posted() const { return next_ != producer_; }

  private:
    /// One request under way.
    struct Flight {
        std::uint64_t id;
        std::uint64_t length;
        /// Bytes handed to the segment (for a read: asked for) since the last rewind.
        std::uint64_t sent;
        /// Bytes that have been acknowledged, or (a read) have arrived in order.
        std::uint64_t arrived;
        std::uint32_t position;
        Psn first_psn;
        std::uint32_t psn_count;
        Opcode opcode;
        bool signalled;
        bool all_sent;
        /// Acknowledged, answered, or (local operations) executed.
        bool done;
    };
    struct Failure {
        std::uint64_t id;
        std::uint32_t position;
        Opcode opcode;
        CompletionStatus status;
    };

    [[nodiscard]] bool can_run() const;
    /// The port that the next message goes to would have to queue it.
    [[nodiscard]] bool must_wait();
    Flight& flight(std::uint32_t position) { return flights_[position % flights_.size()]; }
    /// Decodes the request at `position` into current_ unless it is there already.
    bool load(std::uint32_t position);
    /// Starts the request at next_. False when it must wait or has failed.
    bool begin(Budget& budget);
    void run_local(const WorkRequest& request, std::uint32_t position, Budget& budget);
    void send_datagram(const WorkRequest& request, std::uint32_t position, Budget& budget);
    /// Sends the next fragment of the request under way at `position`.
    void send_fragment(Flight& under_way, Budget& budget);
    CompletionStatus gather(const WorkRequest& request, std::uint64_t offset, std::uint64_t length,
                            bool to_local, mem::SpanList& out);
    CompletionStatus check_request(const WorkRequest& request) const;

    /// True for a PSN that has been used and not been acknowledged.
    [[nodiscard]] bool outstanding(Psn psn) const;
    void on_acknowledge(Psn psn);
    /// Everything up to `psn` has been executed by the peer; reads and atomics among it still miss their
    /// answers. Precondition: outstanding(psn).
    void acknowledge_through(Psn psn);
    /// Sets both numbers of a request, and bytes_in_flight_ with them.
    void set_progress(Flight& under_way, std::uint64_t sent, std::uint64_t arrived);
    /// Brings unacknowledged_ up to date; when it has moved all retries are granted anew.
    void look_for_progress();
    /// The PSN of the first packet of a request that is not acknowledged or, of a read, has not arrived.
    [[nodiscard]] Psn next_wanted(const Flight& under_way) const;
    /// The request that unacknowledged_ belongs to. Precondition: something is in flight.
    Flight& oldest_unanswered();
    /// The request whose answer this is, when it is the one expected next. Fails: nullptr for a copy, and
    /// for one behind a gap, after which everything from the gap on is asked for again.
    Flight* answered_by(const net::Message& message);
    /// A NAK, or an answer behind a gap, says that unacknowledged_ was lost: repeats from there.
    void answer_lost();
    /// Repeats from unacknowledged_ on, or, when that has been done too often already, fails the request and
    /// returns false.
    bool retry();
    void complete_front();
    void on_read_response(const net::Message& message);
    void on_atomic_response(const net::Message& message);
    void on_nak(const net::Message& message);
    /// Fails the request once everything before it has completed, or another one before it has failed.
    void fail_at(const Flight& under_way, CompletionStatus status);
    void fail_request(std::uint64_t id, std::uint32_t position, Opcode opcode, CompletionStatus status);
    void finish_failure();
    /// Starts again from unacknowledged_ (go-back-N); what has been acknowledged behind it stays so.
    void rewind();
    void arm_timer();
    void on_timer();
    [[nodiscard]] std::uint32_t packets(std::uint64_t length) const;
    [[nodiscard]] std::uint64_t bytes_before(const Flight& under_way, Psn psn) const;
    void count(const WorkRequest& request);

    QueuePair& qp_;
    Timer timer_;
    std::vector<Flight> flights_;
    WorkRequest current_{};
    std::optional<std::uint32_t> loaded_;
    std::uint32_t producer_ = 0;   ///< one past the last posted request
    std::uint32_t next_ = 0;       ///< next request to begin
    std::uint32_t completed_ = 0;  ///< oldest request not yet completed
    std::uint32_t in_flight_ = 0;  ///< requests in flights_, from completed_ on
    std::uint32_t sending_ = 0;    ///< position of the oldest flight with fragments left to send
    std::uint32_t reads_in_flight_ = 0;
    std::uint64_t bytes_in_flight_ = 0;
    Psn next_psn_;
    /// Oldest PSN without acknowledgement, or of a read or an atomic, without answer.
    Psn unacknowledged_;
    /// A loss at unacknowledged_ has been noticed and repaired since it got there, or since the timer fired.
    bool went_back_ = false;
    std::uint32_t retries_ = 0;
    std::uint32_t rnr_retries_ = 0;
    bool rnr_waiting_ = false;
    /// When the timer was started for what is under way.
    Nanoseconds armed_at_ = 0;
    /// Inside step(): answers that arrive at once need no further scheduling.
    bool stepping_ = false;
    /// Nothing from its position on is sent any more; what lies before it is still waited for, and repeated.
    std::optional<Failure> failure_;
};

}  // namespace ernic::rdma
