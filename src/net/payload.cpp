// SPDX-License-Identifier: MIT
#include "net/payload.hpp"

#include <algorithm>

#include "net/message.hpp"

namespace ernic::net {

bool PayloadMover::move(const mem::SpanList& to, const Message& message) {
    std::size_t moved = to.bytes();
    if (message.stream != nullptr) {
        if (!message.stream->read(to)) {
            return false;
        }
        if (mode_ != PayloadMode::Preserve) {
            fill(to, moved);
        }
    } else {
        moved = mode_ == PayloadMode::Preserve ? mem::copy(to, *message.payload)
                                               : fill(to, message.payload->bytes());
    }
    if (digest_) {
        digest_->add(to, moved);
    }
    return true;
}

std::size_t PayloadMover::fill(const mem::SpanList& to, std::size_t size) {
    std::size_t done = 0;
    for (const mem::SpanList::Piece& piece : to) {
        const std::size_t count = std::min(piece.size, size - done);
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t position = done + i;
            std::uint8_t value = 0;
            switch (mode_) {
                case PayloadMode::Preserve:
                case PayloadMode::Zeros:
                    break;
                case PayloadMode::Ones:
                    value = 0xff;
                    break;
                case PayloadMode::Increment:
                    value = static_cast<std::uint8_t>(position);
                    break;
                case PayloadMode::Decrement:
                    value = static_cast<std::uint8_t>(0xff - (position & 0xffU));
                    break;
                case PayloadMode::Alternate:
                    value = position % 2 == 0 ? 0xaa : 0x55;
                    break;
                case PayloadMode::Random:
                    // xorshift64: repeatable from run to run, which a test pattern should be.
                    random_state_ ^= random_state_ << 13U;
                    random_state_ ^= random_state_ >> 7U;
                    random_state_ ^= random_state_ << 17U;
                    value = static_cast<std::uint8_t>(random_state_);
                    break;
            }
            piece.data[i] = std::byte{value};
        }
        done += count;
        if (done == size) {
            break;
        }
    }
    return done;
}

}  // namespace ernic::net
