// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "nvmeof/limits.hpp"

namespace ernic::nvmeof {

class Command;

/// Asynchronous Event Requests that a controller holds, and events that wait to be told by one (Base
/// Specification 5.2). Each kind of event is told once, and then not again until its log page has been read.
/// Thread: device.
class AsyncEvents {
  public:
    enum class Kind : std::uint8_t { Namespaces, Discovery, Reservation, Ana };
    static constexpr std::size_t kKinds = 4;

    /// Holds `command`, or answers it at once, with an event or because there are too many.
    void request(Command& command);
    /// Something has happened; told when the host wants to know (`set_enabled`).
    void raise(Kind kind);
    /// The host has read `log_page` and did not ask for the event to be retained.
    void log_read(std::uint8_t log_page);
    /// Feature Asynchronous Event Configuration.
    void set_enabled(std::uint32_t configuration) { enabled_ = configuration; }
    [[nodiscard]] std::uint32_t enabled() const { return enabled_; }
    /// `command` is no longer there.
    void forget(const Command& command);
    /// Ends all held requests with "aborted".
    void abort_all();

  private:
    [[nodiscard]] bool wanted(Kind kind) const;
    void tell();

    std::array<Command*, kAsyncEvents> held_{};
    std::size_t count_ = 0;
    std::uint32_t enabled_ = 0;
    std::uint8_t raised_ = 0;
    std::uint8_t masked_ = 0;
};

}  // namespace ernic::nvmeof
