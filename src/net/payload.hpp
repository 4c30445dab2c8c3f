// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

#include "mem/guest_memory.hpp"
#include "net/digest.hpp"

namespace ernic::net {

/// What arrives instead of the bytes that were sent (`--backend loopback:mode=..`). Everything but Preserve
/// is a test pattern counted from the first byte of each fragment.
enum class PayloadMode : std::uint8_t { Preserve, Zeros, Ones, Increment, Decrement, Alternate, Random };

struct Message;

/// Payload that has not been read yet from where it comes (a socket). Thread: device.
class PayloadStream {
  public:
    virtual ~PayloadStream() = default;
    /// Reads to.bytes() bytes, of which there must be as many, into `to`. To be called once at most: what is
    /// not read is thrown away by the owner. Fails: false, and any part of `to` may have been written.
    virtual bool read(const mem::SpanList& to) = 0;
};

/// Moves the payload of a message to its place: the single copy of the data path. Thread: device.
class PayloadMover {
  public:
    explicit PayloadMover(PayloadMode mode = PayloadMode::Preserve) : mode_(mode) {}

    /// From now on every delivered payload is digested and logged.
    void digest_with(PayloadDigest digest) { digest_ = std::move(digest); }

    /// Copies the payload of `message`, or writes the pattern over as many bytes. Precondition: it has one,
    /// not longer than `to`. Fails: false when it cannot be read after all; the message then counts as lost.
    bool move(const mem::SpanList& to, const Message& message);

  private:
    std::size_t fill(const mem::SpanList& to, std::size_t size);

    PayloadMode mode_;
    std::optional<PayloadDigest> digest_;
    std::uint64_t random_state_ = 0x9e3779b97f4a7c15ULL;
};

}  // namespace ernic::net
