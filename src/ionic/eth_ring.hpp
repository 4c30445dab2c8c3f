// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "base/bytes.hpp"
#include "mem/guest_memory.hpp"
#include "mem/ring.hpp"
#include "wire/ionic_device.hpp"

namespace ernic::ionic {

/// The device's side of a descriptor ring in guest memory: it consumes what the doorbell says has been
/// produced.
///
///      consumer            producer (from the doorbell: the next slot the driver will fill)
///         v                   v
///   | . . # # # # # # # # # # . . . |     `#` = pending; the ring is empty when both are equal
///
/// Slots are copied out, never referenced: the guest may change them while we look. Thread: device.
class DescriptorRing {
  public:
    DescriptorRing() = default;
    /// Preconditions: size_log2 <= 16; stride_log2 in 2..12.
    DescriptorRing(mem::Iova base, std::uint8_t size_log2, std::uint8_t stride_log2)
        : ring_(*mem::Ring::make(mem::PageList::contiguous(base), size_log2, stride_log2)) {}

    [[nodiscard]] std::uint32_t size() const { return ring_.depth(); }
    [[nodiscard]] std::uint32_t pending() const { return (producer_ - consumer_) & ring_.mask(); }
    [[nodiscard]] bool empty() const { return producer_ == consumer_; }
    /// The slot that fetch() reads.
    [[nodiscard]] std::uint16_t consumer() const { return static_cast<std::uint16_t>(consumer_); }

    /// A doorbell said `producer`. Any value is legal (it is taken modulo the ring size), also a repeated
    /// one.
    void produced(std::uint16_t producer) { producer_ = producer & ring_.mask(); }

    /// Copies slot `consumer()`. Fails: nullopt when the ring is not reachable.
    template <WireValue T>
    [[nodiscard]] std::optional<T> fetch(const mem::GuestMemory& memory) const {
        T value;
        if (!ring_.read(memory, consumer_, mutable_bytes_of(value))) {
            return std::nullopt;
        }
        return value;
    }

    /// Copies pending slots from consumer() on, as many as fit into `into` and lie in one piece; returns how
    /// many. Another core wrote them: one copy of all takes their cache misses at the same time, which one by
    /// one would add up. Precondition: !empty(). Fails: 0 when the ring is not reachable.
    template <WireValue T>
    [[nodiscard]] std::size_t fetch_run(const mem::GuestMemory& memory, std::span<T> into) const {
        const std::size_t count =
            std::min({into.size(), std::size_t{pending()}, std::size_t{ring_.depth() - consumer_}});
        if (ring_.read_run(memory, consumer_, std::as_writable_bytes(into.first(count)))) {
            return count;
        }
        return ring_.read(memory, consumer_, mutable_bytes_of(into.front())) ? 1 : 0;
    }

    /// Precondition: !empty().
    void consume() { consumer_ = (consumer_ + 1) & ring_.mask(); }

  private:
    mem::Ring ring_;
    std::uint32_t producer_ = 0;
    std::uint32_t consumer_ = 0;
};

/// The device's side of a ring of 16-byte completions. An entry is valid for the driver when the colour bit
/// in its last byte has the colour of the current lap: 1 on the first, 0 on the second, and so on. There is
/// no flow control: the descriptor ring has the same size and is never full. Thread: device.
class CompletionRing {
  public:
    CompletionRing() = default;
    /// Precondition: size_log2 <= 16.
    CompletionRing(mem::Iova base, std::uint8_t size_log2)
        : ring_(*mem::Ring::make(mem::PageList::contiguous(base), size_log2, kStrideLog2)) {}

    /// Writes a 16-byte completion (its colour bit is filled in here) into the next slot, colour last.
    /// Fails: false when the ring is not reachable; the slot is then skipped.
    template <WireValue T>
    bool write(const mem::GuestMemory& memory, const T& entry) {
        static_assert(sizeof(T) == wire::ionic::kCompletionSize);
        auto colored = std::bit_cast<wire::ionic::Completion>(entry);
        colored.color = static_cast<std::uint8_t>((colored.color & ~wire::ionic::kColor) |
                                                  (color_ ? wire::ionic::kColor : 0));
        const std::uint32_t slot = next_;
        next_ = (next_ + 1) & ring_.mask();
        if (next_ == 0) {
            color_ = !color_;
        }
        return ring_.publish(memory, slot, bytes_of(colored));
    }

  private:
    static constexpr std::uint8_t kStrideLog2 = 4;

    mem::Ring ring_;
    std::uint32_t next_ = 0;
    bool color_ = true;
};

}  // namespace ernic::ionic
