// SPDX-License-Identifier: MIT
#include "ionic/interrupts.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "ionic/limits.hpp"
#include "wire/ionic_device.hpp"

namespace ernic::ionic {
namespace {

using wire::ionic::InterruptRegisters;

constexpr std::uint32_t kStride = sizeof(InterruptRegisters);
constexpr std::uint32_t kRegisterSize = 4;

/// Register numbers within one set.
constexpr std::uint32_t kCoalesceInit = offsetof(InterruptRegisters, coalesce_init) / kRegisterSize;
constexpr std::uint32_t kMask = offsetof(InterruptRegisters, mask) / kRegisterSize;
constexpr std::uint32_t kCredits = offsetof(InterruptRegisters, credits) / kRegisterSize;
constexpr std::uint32_t kMaskOnAssert = offsetof(InterruptRegisters, mask_on_assert) / kRegisterSize;

}  // namespace

void Interrupts::post_completions(std::uint16_t vector, std::uint32_t events) {
    if (vector >= vectors_.size() || events == 0) {
        return;
    }
    Vector& state = vectors_[vector];
    if (state.event_mode) {
        // The vector was an RDMA event queue's and has been given to an Ethernet ring since.
        state.event_mode = false;
        state.credits = state.pending ? 1 : 0;
        state.pending = false;
    }
    state.credits = std::min(state.credits + std::min(events, kMaxCredits), kMaxCredits);
    state.posted_since_fire = true;
    fire_if_due(vector);
}

void Interrupts::post_event(std::uint16_t vector) {
    if (vector >= vectors_.size()) {
        return;
    }
    Vector& state = vectors_[vector];
    state.event_mode = true;
    state.credits = 0;
    state.pending = true;
    fire_if_due(vector);
}

void Interrupts::fire_if_due(std::uint16_t vector) {
    Vector& state = vectors_[vector];
    const bool due = state.event_mode ? state.pending : state.credits != 0;
    if (!due || state.masked) {
        return;
    }
    state.pending = false;
    state.posted_since_fire = false;
    // ionic 7.2 sets mask_on_assert on every vector, so that it is interrupted once per poll.
    state.masked = state.mask_on_assert;
    msix_.raise(vector);
}

void Interrupts::unmask(std::uint16_t vector) {
    Vector& state = vectors_[vector];
    state.masked = false;
    if (state.event_mode && !state.pending && event_unmask_) {
        event_unmask_(vector);
    }
}

void Interrupts::write_credits(std::uint16_t vector, std::uint32_t value) {
    Vector& state = vectors_[vector];
    const auto returned = static_cast<std::int16_t>(value & wire::ionic::kCreditsCountMask);
    const bool unmask_requested = (value & wire::ionic::kCreditsUnmask) != 0;
    if (!state.event_mode) {
        if (unmask_requested && returned == 0 && !state.posted_since_fire) {
            // The driver looked after the last interrupt and found nothing: what is left was consumed without
            // being returned (netpoll, ionic_tx_napi beside RX work). Without this the vector would fire for
            // ever.
            state.credits = 0;
        }
        const std::int32_t left = static_cast<std::int32_t>(state.credits) - returned;
        // A driver that returns more than there is must not swallow what was posted since its interrupt.
        const std::int32_t least = left < 0 && state.posted_since_fire ? 1 : 0;
        state.credits =
            static_cast<std::uint32_t>(std::clamp(left, least, static_cast<std::int32_t>(kMaxCredits)));
    }
    if (unmask_requested) {
        unmask(vector);
    }
    fire_if_due(vector);
}

void Interrupts::write_register(std::uint16_t vector, std::uint32_t index, std::uint32_t value,
                                std::uint32_t bytes_given) {
    Vector& state = vectors_[vector];
    switch (index) {
        case kCoalesceInit:
            state.coalesce_init = (state.coalesce_init & ~bytes_given) | value;
            break;
        case kMask:
            if ((bytes_given & 1U) != 0) {
                if ((value & 1U) != 0) {
                    state.masked = true;
                } else {
                    unmask(vector);
                    fire_if_due(vector);
                }
            }
            break;
        case kCredits:
            write_credits(vector, value);
            break;
        case kMaskOnAssert:
            if ((bytes_given & 1U) != 0) {
                state.mask_on_assert = (value & 1U) != 0;
            }
            break;
        default:
            break;  // read-only or reserved
    }
}

std::uint32_t Interrupts::read_register(const Vector& state, std::uint32_t index) {
    switch (index) {
        case kCoalesceInit:
            return state.coalesce_init;
        case kMask:
            return state.masked ? 1 : 0;
        case kCredits:
            return state.credits;
        case kMaskOnAssert:
            return state.mask_on_assert ? 1 : 0;
        default:
            return 0;
    }
}

void Interrupts::read(std::uint32_t offset, MutableBytes out) const {
    for (std::size_t done = 0; done < out.size();) {
        const std::size_t at = offset + done;
        const std::size_t within = at % kRegisterSize;
        const std::size_t size = std::min(out.size() - done, kRegisterSize - within);
        le32 value(0);
        if (at / kStride < vectors_.size()) {
            value.set(read_register(vectors_[at / kStride],
                                    static_cast<std::uint32_t>(at % kStride / kRegisterSize)));
        }
        std::memcpy(out.data() + done, bytes_of(value).data() + within, size);
        done += size;
    }
}

void Interrupts::write(std::uint32_t offset, Bytes data) {
    for (std::size_t done = 0; done < data.size();) {
        const std::size_t at = offset + done;
        const std::size_t within = at % kRegisterSize;
        const std::size_t size = std::min(data.size() - done, kRegisterSize - within);
        if (at / kStride < vectors_.size()) {
            le32 value(0);
            le32 given(0);
            std::memcpy(mutable_bytes_of(value).data() + within, data.data() + done, size);
            std::memset(mutable_bytes_of(given).data() + within, 0xff, size);
            write_register(static_cast<std::uint16_t>(at / kStride),
                           static_cast<std::uint32_t>(at % kStride / kRegisterSize), value.get(),
                           given.get());
        }
        done += size;
    }
}

void Interrupts::reset() {
    std::fill(vectors_.begin(), vectors_.end(), Vector{});
}

}  // namespace ernic::ionic
