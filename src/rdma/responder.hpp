// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "net/message.hpp"
#include "rdma/psn.hpp"
#include "rdma/types.hpp"

namespace ernic::rdma {

class QueuePair;

/// The receiving half of a queue pair (InfiniBand 9.7.4, 9.7.5 for RC; 9.8.3 for UD): checks keys and rights,
/// puts payload into place, takes receive requests, answers. Thread: device.
class Responder {
  public:
    explicit Responder(QueuePair& qp) : qp_(qp) {}

    void reset();
    /// Entering RTR: the PSN expected first.
    void start(Psn expected);
    /// Entering Error: what is half received is dropped.
    void stop();

    void posted(std::uint32_t producer_index, std::uint32_t ring_mask);

    /// A request of a connected peer.
    void on_request(const net::Message& message);
    /// An unreliable datagram; Q_Key already checked by the engine.
    void on_datagram(const net::Message& message);

    /// Sends answers that had to wait for room.
    Turned step(Budget& budget);

  private:
    struct AtomicResult {
        std::uint64_t original = 0;
        Psn psn;
        bool valid = false;
    };

    /// Something the peer is to be sent; all of it but a read's bytes is fixed when it is made.
    struct Answer {
        net::MessageKind kind = net::MessageKind::Acknowledge;
        net::Syndrome syndrome = net::Syndrome::Ack;
        Psn psn;
        std::uint32_t msn = 0;
        /// Of an atomic.
        std::uint64_t original = 0;
        /// Of a read: what is asked for, and how much of it has been sent.
        std::uint32_t rkey = 0;
        std::uint64_t va = 0;
        std::uint64_t length = 0;
        std::uint64_t sent = 0;
    };

    /// Sends `answer`, behind those that wait, when there is room.
    void give(Answer answer);
    /// Fails: false when it, or a part of a read, still has to wait.
    bool transmit(Answer& answer);
    bool transmit_read(Answer& answer);
    void transmit_now(const Answer& answer, const mem::SpanList* payload, std::uint64_t offset,
                      std::uint64_t length);

    void on_send(const net::Message& message);
    void on_write(const net::Message& message);
    void on_read(const net::Message& message);
    /// True when key, range and rights let the peer read what it asks for.
    [[nodiscard]] bool may_read(const net::Message& message) const;
    void on_atomic(const net::Message& message);
    /// A request that has been executed already, which came again or late (InfiniBand 9.7.5.1): acknowledged
    /// anew, never executed anew except a read; an atomic is answered from the results remembered.
    void on_duplicate(const net::Message& message);
    void replay_atomic(Psn psn);
    void send_atomic_response(Psn psn, std::uint64_t original);
    /// True when the QP's own access flags allow the operation; otherwise it has been refused.
    bool allowed(const net::Message& message, bool right);
    /// Takes the next receive request; false (and an RNR NAK sent) when none is posted.
    bool take_receive(const net::Message& message);
    /// Takes the next receive request for a datagram; false (and the datagram lost) when none is posted or
    /// the one that is cannot take it, which ends the QP. Otherwise where header and payload go.
    bool take_datagram_receive(const net::Message& message, mem::SpanList& header, mem::SpanList& payload);
    /// Host bytes of [offset, offset + length) of the receive request in hand.
    CompletionStatus scatter(std::uint64_t offset, std::uint64_t length, mem::SpanList& out);
    void complete_receive(const net::Message& message, ReceiveKind kind, std::uint64_t length);
    void advance(const net::Message& message);
    void acknowledge(net::Syndrome syndrome, Psn psn);
    /// The payload of `message` was lost after all: as if it had never come.
    void forget(const net::Message& message);
    /// NAK, then as give_up().
    void refuse(const net::Message& message, net::Syndrome syndrome, QpEvent event, CompletionStatus local);
    /// Error completion for a receive in hand, asynchronous event, QP to Error.
    void give_up(const net::Message& message, QpEvent event, CompletionStatus local);
    /// The same for a datagram, which is lost.
    void drop_and_give_up(const net::Message& message, QpEvent event, CompletionStatus local);
    [[nodiscard]] std::uint32_t packets(std::uint64_t length) const;
    void send_read_response(const net::Message& request);

    QueuePair& qp_;
    std::uint32_t producer_ = 0;
    std::uint32_t next_ = 0;
    Psn expected_;
    std::uint32_t msn_ = 0;
    ReceiveRequest receive_;
    bool receive_in_hand_ = false;
    bool message_open_ = false;
    net::MessageKind open_kind_ = net::MessageKind::Send;
    std::uint64_t received_ = 0;
    bool peer_heard_ = false;
    /// A sequence NAK has been sent for this gap; further packets of the gap are dropped silently.
    bool nak_sent_ = false;
    /// Answers without room, in the order of their PSNs; those before answered_ have been sent. Memory is
    /// used only while the peer's port is not ready.
    std::vector<Answer> answers_;
    std::size_t answered_ = 0;
    std::array<AtomicResult, kAtomicHistory> atomics_;
    std::size_t next_atomic_ = 0;
};

}  // namespace ernic::rdma
