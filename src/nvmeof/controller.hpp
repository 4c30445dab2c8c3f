// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/event_loop.hpp"
#include "nvmeof/async_events.hpp"
#include "nvmeof/error_log.hpp"
#include "nvmeof/limits.hpp"
#include "nvmeof/path.hpp"
#include "nvmeof/runtime.hpp"
#include "wire/nvme.hpp"

namespace ernic::nvmeof {

class Command;
class Queue;
class Subsystem;

/// Who has connected.
struct HostIdentity {
    wire::nvme::HostId id{};
    std::string nqn;

    friend bool operator==(const HostIdentity&, const HostIdentity&) = default;
};

/// Values of features that hosts set and get (Base Specification 5.27).
struct Features {
    std::uint32_t arbitration = 0;
    std::uint32_t over_temperature = 343;
    std::uint32_t under_temperature = 0;
    std::uint32_t error_recovery = 0;
    std::uint32_t write_atomicity = 0;
    /// Milliseconds since 1970 that the host has set, and the loop's time then; origin 0: never.
    std::uint64_t timestamp = 0;
    Nanoseconds timestamp_set = 0;
    std::uint8_t timestamp_origin = 0;
    std::array<std::byte, 512> host_behavior{};
};

/// One controller: its properties, queues and life (Base Specification 3.1). Made by Connect on an admin
/// queue, and ended with it. Thread: device.
class Controller {
  public:
    /// `path` is the way by which the host has come. `keep_alive` in milliseconds; 0: the host may be silent
    /// for ever.
    Controller(Runtime& runtime, Subsystem& subsystem, const Path& path, std::uint16_t id, HostIdentity host,
               std::uint32_t keep_alive);
    ~Controller();
    Controller(const Controller&) = delete;
    Controller& operator=(const Controller&) = delete;

    [[nodiscard]] std::uint16_t id() const { return id_; }
    [[nodiscard]] Subsystem& subsystem() const { return subsystem_; }
    [[nodiscard]] const Path& path() const { return path_; }
    [[nodiscard]] Runtime& runtime() const { return runtime_; }
    [[nodiscard]] const HostIdentity& host() const { return host_; }

    [[nodiscard]] bool ready() const { return ready_; }
    /// Fails: no such property, or it has another size.
    [[nodiscard]] std::optional<std::uint64_t> property(std::uint32_t offset, bool wide) const;
    /// True when the property can be set.
    [[nodiscard]] bool set_property(std::uint32_t offset, bool wide, std::uint64_t value);

    /// A command has come.
    void traffic() { silent_ = false; }
    [[nodiscard]] std::uint32_t keep_alive() const { return keep_alive_; }
    void set_keep_alive(std::uint32_t milliseconds);

    [[nodiscard]] Queue* queue(std::uint16_t id) const { return id < queues_.size() ? queues_[id] : nullptr; }
    [[nodiscard]] bool has_io_queues() const;
    /// I/O queues that the host may connect.
    [[nodiscard]] std::uint16_t granted_queues() const { return granted_queues_; }
    void grant_queues(std::uint16_t count) { granted_queues_ = count; }
    /// Precondition: there is no queue with its id yet.
    void attach(Queue& queue);
    /// With its admin queue the controller ends: the others are closed.
    void detach(Queue& queue);
    /// Ends all connections.
    void disconnect();

    /// Puts a failed command into the error log; returns the status bit that says so.
    std::uint16_t note_error(const Command& command, std::uint16_t status);

    /// A reservation that concerns this host has changed, in a way that `type` (of a reservation
    /// notification) says; told unless the host has masked it.
    void reservation_changed(std::uint32_t nsid, std::uint8_t type);
    /// The oldest notification, numbered and with how many come behind it; an empty one when there is none.
    [[nodiscard]] wire::nvme::ReservationNotice reservation_notice() const;
    /// The host has read it.
    void drop_reservation_notice();
    /// Feature Reservation Notification Mask, by namespace.
    std::map<std::uint32_t, std::uint32_t> reservation_masks;

    /// A namespace has come, gone or changed.
    void namespace_changed(std::uint32_t nsid);
    /// NSIDs for the Changed Namespace List; more than fit are told as one number of all ones.
    [[nodiscard]] const std::vector<std::uint32_t>& changed_namespaces() const { return changed_; }
    void clear_changed_namespaces() { changed_.clear(); }

    Features features;
    AsyncEvents events;
    ErrorLog errors;

  private:
    void configure(std::uint32_t value);
    void enable(std::uint32_t value);
    void reset();
    void shut_down();
    void arm_keep_alive();
    void check_keep_alive();

    Runtime& runtime_;
    Subsystem& subsystem_;
    const Path& path_;
    std::uint16_t id_;
    HostIdentity host_;
    std::uint32_t configuration_ = 0;
    std::uint32_t status_ = 0;
    bool ready_ = false;
    std::uint16_t granted_queues_;
    std::array<Queue*, kMaxIoQueues + 1> queues_{};
    std::vector<std::uint32_t> changed_;
    std::deque<wire::nvme::ReservationNotice> notices_;
    std::uint64_t notice_count_ = 0;
    std::uint32_t keep_alive_;
    bool silent_ = false;
    bool warned_ = false;
    Timer timer_;
};

}  // namespace ernic::nvmeof
