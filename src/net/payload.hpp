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

/// Moves the payload of a message to its place: the single copy of the data path. Thread: device.
class PayloadMover {
  public:
    explicit PayloadMover(PayloadMode mode = PayloadMode::Preserve) : mode_(mode) {}

    /// From now on every delivered payload is digested and logged.
    void digest_with(PayloadDigest digest) { digest_ = std::move(digest); }

    /// Copies min(to, from) bytes, or writes the pattern over as many; returns how many.
    std::size_t move(const mem::SpanList& to, const mem::SpanList& from) {
        const std::size_t moved =
            mode_ == PayloadMode::Preserve ? mem::copy(to, from) : fill(to, from.bytes());
        if (digest_) {
            digest_->add(to, moved);
        }
        return moved;
    }

  private:
    std::size_t fill(const mem::SpanList& to, std::size_t size);

    PayloadMode mode_;
    std::optional<PayloadDigest> digest_;
    std::uint64_t random_state_ = 0x9e3779b97f4a7c15ULL;
};

}  // namespace ernic::net
