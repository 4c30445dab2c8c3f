// SPDX-License-Identifier: MIT
#include "nvmeof/reservation_commands.hpp"

#include <algorithm>

#include "nvmeof/block_range.hpp"
#include "nvmeof/controller.hpp"
#include "nvmeof/log_window.hpp"
#include "nvmeof/namespace.hpp"
#include "nvmeof/queue.hpp"
#include "nvmeof/subsystem.hpp"
#include "wire/nvme_log.hpp"

namespace ernic::nvmeof {

namespace nvme = wire::nvme;
using nvme::Status;

namespace {

/// Two keys: Register's current and new one, Acquire's current and preempted one.
struct Keys {
    le64 current;
    le64 other;
};
ERNIC_WIRE(Keys, 16);

/// What dword 10 says in all three commands.
std::uint8_t action_of(const Command& command) {
    return static_cast<std::uint8_t>(command.dword(10) & 0x7U);
}
bool ignores_key(const Command& command) {
    return (command.dword(10) & 0x8U) != 0;
}
std::uint8_t type_of(const Command& command) {
    return static_cast<std::uint8_t>(command.dword(10) >> 8U);
}

void kept(Command& command) {
    command.finish(command.error() == 0 ? Status::Success : Status::InternalError);
}

/// Tells the hosts that are concerned, and ends the command, when what is to survive the process is safe.
/// `was_persistent` before the command.
void conclude(Command& command, Status status, const Reservations::Notices& notices, bool was_persistent) {
    Subsystem& subsystem = command.controller().subsystem();
    Namespace& space = *command.space;
    if (status != Status::Success) {
        return command.finish(status);
    }
    for (const Reservations::Notice& notice : notices) {
        for (const auto& controller : subsystem.controllers()) {
            if (controller->host().id == notice.host) {
                controller->reservation_changed(space.id(), notice.type);
            }
        }
    }
    if (!space.reservations.persistent && !was_persistent) {
        return command.finish(Status::Success);
    }
    // A host has switched persistence off: what is kept must not come back.
    const auto text = space.reservations.persistent ? space.reservations.save() : std::vector<std::byte>();
    if (!space.store().keep(text)) {
        return command.finish(Status::InternalError);
    }
    command.store(StoreOperation::Kind::Synchronize, 0, 0, kept);
}

void fetch_keys(Command& command, std::size_t size, Command::Step then) {
    if (find_space(command, Touch::Nothing)) {
        command.fetch(size, then);
    }
}

void register_fetched(Command& command) {
    constexpr std::uint32_t kPersistOff = 2;
    constexpr std::uint32_t kPersistOn = 3;
    Keys keys;
    command.get_data(0, mutable_bytes_of(keys));
    const std::uint32_t persistence = command.dword(10) >> 30U;
    Reservations& reservations = command.space->reservations;
    // A host must not believe that something is kept where nothing can be.
    if (action_of(command) > 2 || persistence == 1 ||
        (persistence == kPersistOn && !command.space->store().keeps())) {
        return command.finish(Status::InvalidField);
    }
    Reservations::Notices notices;
    const bool was_persistent = reservations.persistent;
    const Status status = reservations.change_registration(
        static_cast<Reservations::RegisterAction>(action_of(command)), command.controller().host().id,
        ignores_key(command), keys.current.get(), keys.other.get(), notices);
    if (status == Status::Success && persistence != 0) {
        reservations.persistent = persistence != kPersistOff;
    }
    conclude(command, status, notices, was_persistent);
}

void acquire_fetched(Command& command) {
    constexpr std::uint8_t kAcquire = 0;
    constexpr std::uint8_t kPreemptAndAbort = 2;
    Keys keys;
    command.get_data(0, mutable_bytes_of(keys));
    if (action_of(command) > kPreemptAndAbort || !Reservations::known(type_of(command))) {
        return command.finish(Status::InvalidField);
    }
    const auto type = static_cast<Reservations::Type>(type_of(command));
    const nvme::HostId& host = command.controller().host().id;
    Reservations& reservations = command.space->reservations;
    Reservations::Notices notices;
    const Status status = action_of(command) == kAcquire
                              ? reservations.acquire(host, ignores_key(command), keys.current.get(), type)
                              : reservations.preempt(host, ignores_key(command), keys.current.get(),
                                                     keys.other.get(), type, notices);
    conclude(command, status, notices, reservations.persistent);
}

void release_fetched(Command& command) {
    constexpr std::uint8_t kRelease = 0;
    constexpr std::uint8_t kClear = 1;
    le64 key;
    command.get_data(0, mutable_bytes_of(key));
    const nvme::HostId& host = command.controller().host().id;
    Reservations& reservations = command.space->reservations;
    Reservations::Notices notices;
    switch (action_of(command)) {
        case kRelease:
            return conclude(command,
                            reservations.release(host, ignores_key(command), key.get(),
                                                 static_cast<Reservations::Type>(type_of(command)), notices),
                            notices, reservations.persistent);
        case kClear:
            return conclude(command, reservations.clear(host, ignores_key(command), key.get(), notices),
                            notices, reservations.persistent);
        default:
            return command.finish(Status::InvalidField);
    }
}

/// The controller through which a host is here; the number of none when there is none, or several.
std::uint16_t controller_of(const Subsystem& subsystem, const nvme::HostId& host) {
    constexpr std::uint16_t kNone = 0xffff;
    std::uint16_t found = kNone;
    for (const auto& controller : subsystem.controllers()) {
        if (controller->host().id == host) {
            if (found != kNone) {
                return kNone;
            }
            found = controller->id();
        }
    }
    return found;
}

void send_report(Command& command) {
    const auto wanted = (std::uint64_t{command.dword(10)} + 1) * 4;
    const auto bytes = static_cast<std::size_t>(std::min<std::uint64_t>(wanted, command.data_length()));
    constexpr std::size_t kMost =
        sizeof(nvme::ReservationReport) + Reservations::kMaxRegistrants * sizeof(nvme::Registrant);
    const std::size_t filled = std::min(bytes, kMost);
    if (!command.take_buffer(filled, send_report)) {
        return;
    }
    const Reservations& reservations = command.space->reservations;
    LogWindow report(command.buffer(), 0, filled);
    nvme::ReservationReport head{};
    head.generation.set(reservations.generation());
    head.type = static_cast<std::uint8_t>(reservations.type());
    head.persistent = reservations.persistent ? 1 : 0;
    head.registrants.set(static_cast<std::uint16_t>(reservations.registrants().size()));
    report.add(bytes_of(head));
    for (const Reservations::Registrant& each : reservations.registrants()) {
        nvme::Registrant entry{};
        entry.controller_id.set(controller_of(command.controller().subsystem(), each.host));
        entry.status = reservations.holds(each.host) ? nvme::Registrant::kHolder : 0;
        entry.key.set(each.key);
        entry.host_id = each.host;
        report.add(bytes_of(entry));
    }
    report.pad();
    command.send(filled);
}

}  // namespace

void reservation_register(Command& command) {
    fetch_keys(command, sizeof(Keys), register_fetched);
}

void reservation_acquire(Command& command) {
    fetch_keys(command, sizeof(Keys), acquire_fetched);
}

void reservation_release(Command& command) {
    fetch_keys(command, sizeof(le64), release_fetched);
}

void reservation_report(Command& command) {
    if (!find_space(command, Touch::Nothing)) {
        return;
    }
    constexpr std::uint32_t kExtended = 1;
    if ((command.dword(11) & kExtended) == 0) {
        return command.finish(Status::HostIdInconsistent);
    }
    if (command.data_length() < sizeof(nvme::ReservationReport)) {
        return command.finish(Status::SglLengthInvalid);
    }
    send_report(command);
}

}  // namespace ernic::nvmeof
