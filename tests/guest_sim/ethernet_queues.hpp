// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>

#include "guest_sim/card.hpp"
#include "guest_sim/guest_ram.hpp"
#include "wire/ionic_ethernet.hpp"

namespace ernic::guest_sim {

/// One transmit and one receive queue of the card, polled (`ionic` 7.2, ionic_open, ionic_tx, ionic_rx_fill).
/// Fails: GuestError.
class EthernetQueues {
  public:
    struct Options {
        std::uint8_t ring_size_log2 = 10;
        /// Bytes of each receive buffer.
        std::uint16_t receive_size = 2048;
    };

    EthernetQueues(Card& card, const Options& options);

    /// Puts a frame into the transmit ring. False when it is full.
    bool stage(const Buffer& frame);
    /// Puts a TCP packet into it, headers at the start of `packet`: a run of one descriptor per segment, as
    /// ionic_tx_tso (`ionic` 7.2) makes it. False when the ring has no room for all of them.
    bool stage_super_frame(const Buffer& packet, std::uint16_t header_size, std::uint16_t segment_size);
    /// Tells the card of everything staged.
    void ring_transmit();
    /// Takes what has been sent out of the ring; returns how many descriptors are still under way.
    std::uint32_t reclaim();

    /// The next received frame, null when there is none. Valid until give_back().
    Buffer receive();
    /// Posts the buffers of everything received again.
    void give_back();

  private:
    struct Queue {
        Buffer ring;
        Buffer completions;
        std::uint8_t hw_type = 0;
        std::uint32_t hw_index = 0;
        std::uint32_t producer = 0;  ///< descriptors posted
        std::uint32_t consumer = 0;  ///< descriptors completed
        std::uint32_t entry = 0;     ///< completions read
    };
    Queue create(wire::ionic::LogicalQueue type, std::size_t sg_stride);
    void enable(wire::ionic::LogicalQueue type);
    void ring(const Queue& queue);
    /// The completion at `entry`, null while it is not written.
    [[nodiscard]] const std::byte* readable(const Queue& queue) const;
    [[nodiscard]] bool has_room() const { return transmit_.producer - transmit_.consumer < size_ - 1; }

    Card& card_;
    std::uint8_t size_log2_;
    std::uint32_t size_;
    std::uint16_t receive_size_;
    Queue transmit_;
    Queue receive_;
    Buffer buffers_;
};

}  // namespace ernic::guest_sim
