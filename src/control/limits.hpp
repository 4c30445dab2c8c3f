// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include "base/clock.hpp"

/// Every limit of the control socket with its reason.
namespace ernic::control {

/// Raised when a client that obeys docs/control.md could notice.
inline constexpr int kProtocolVersion = 1;

/// People, a monitor or two and their shells; more are a fault of somebody's script.
inline constexpr std::size_t kMaxClients = 16;

/// The same with those who have hung up and whose last requests are still to be carried out.
inline constexpr std::size_t kMaxSeats = 4 * kMaxClients;

/// Bytes of one request. A request is some hundred bytes; reading 16 KiB of JSON takes some 100 µs, and the
/// device thread has no more than that to give away at once.
inline constexpr std::size_t kMaxLine = 16U << 10U;

/// Arrays and objects within each other, and values altogether, in one request. JSON values are destroyed
/// recursively, and each costs an allocation.
inline constexpr std::size_t kMaxDepth = 8;
inline constexpr std::size_t kMaxValues = 256;

/// Bytes of a request's id when it is a string; it is sent back.
inline constexpr std::size_t kMaxId = 256;

/// Bytes of an argument that is text: a long fault description fits, and looking for the nearest valid word
/// takes time in proportion.
inline constexpr std::size_t kMaxText = 1024;

/// Unsent bytes above which a client's next request or next part of an answer has to wait.
inline constexpr std::size_t kMaxUnsent = 64U << 10U;

/// Output worth a system call of its own while there is more to come.
inline constexpr std::size_t kWorthSending = 16U << 10U;

/// How long a client may leave a full socket unread before it loses its connection.
inline constexpr Nanoseconds kPatience = 10'000'000'000;

/// What all clients together get of one round of the event loop, give or take one step.
inline constexpr Nanoseconds kTurn = 100'000;
inline constexpr int kStepsPerTurn = 64;

/// Descriptors received at once. A request may carry one; a few more are seen, closed and told.
inline constexpr std::size_t kMaxFds = 4;

}  // namespace ernic::control
