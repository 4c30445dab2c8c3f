// SPDX-License-Identifier: MIT
#include "nvmeof/fabrics_commands.hpp"

#include <algorithm>
#include <string>

#include "nvmeof/controller.hpp"
#include "nvmeof/queue.hpp"
#include "nvmeof/subsystem.hpp"
#include "nvmeof/target.hpp"

namespace ernic::nvmeof {

namespace nvme = wire::nvme;
using nvme::ConnectData;
using nvme::Status;

namespace {

/// Result of a Connect that names a wrong field: its offset, in the data when bit 16 is set.
constexpr std::uint32_t kInData = 1U << 16U;
constexpr std::uint32_t kQueueIdField = 42;
constexpr std::uint32_t kQueueSizeField = 44;
constexpr std::uint32_t kControllerField = kInData | 16U;
constexpr std::uint32_t kSubsystemField = kInData | 256U;
constexpr std::uint32_t kHostField = kInData | 512U;

/// What a Connect command says besides its data.
struct ConnectFields {
    explicit ConnectFields(const Command& command)
        : format(static_cast<std::uint16_t>(command.dword(10))),
          queue_id(static_cast<std::uint16_t>(command.dword(10) >> 16U)),
          queue_size(static_cast<std::uint16_t>(command.dword(11))),
          attributes(static_cast<std::uint8_t>(command.dword(11) >> 16U)),
          keep_alive(command.dword(12)) {}

    std::uint16_t format;
    std::uint16_t queue_id;
    /// 0-based.
    std::uint16_t queue_size;
    std::uint8_t attributes;
    /// Milliseconds.
    std::uint32_t keep_alive;
};

/// An NQN without its padding; empty when it does not end.
std::string nqn_of(const std::array<char, nvme::kNqnBytes>& field) {
    const auto end = std::find(field.begin(), field.end(), '\0');
    return end == field.end() || end - field.begin() > static_cast<std::ptrdiff_t>(nvme::kMaxNqnLength)
               ? std::string()
               : std::string(field.begin(), end);
}

void refuse(Command& command, Status status, std::uint32_t field = 0) {
    command.queue().runtime().counters.refused_connects.add();
    command.finish(status, field);
}

void bind(Command& command, const ConnectFields& fields, const std::shared_ptr<Controller>& controller) {
    Queue& queue = command.queue();
    controller->attach(queue);
    queue.bind(controller, static_cast<std::uint16_t>(fields.queue_size + 1U),
               (fields.attributes & nvme::kConnectNoFlowControl) == 0);
    command.finish(Status::Success, controller->id());
}

void connect_admin(Command& command, const ConnectFields& fields, Subsystem& subsystem, HostIdentity host,
                   std::uint16_t wanted_controller) {
    constexpr std::uint16_t kAnyStatic = 0xfffe;
    if (wanted_controller != ConnectData::kAnyController && wanted_controller != kAnyStatic) {
        return refuse(command, Status::ConnectParameters, kControllerField);
    }
    std::uint32_t keep_alive = fields.keep_alive;
    if (subsystem.discovery() && keep_alive == 0) {
        keep_alive = kDiscoveryKeepAlive;
    }
    const auto controller = subsystem.make_controller(std::move(host), keep_alive);
    if (controller == nullptr) {
        return refuse(command, Status::ConnectBusy);
    }
    bind(command, fields, controller);
}

void connect_io(Command& command, const ConnectFields& fields, Subsystem& subsystem, const HostIdentity& host,
                std::uint16_t controller_id) {
    const auto controller = subsystem.controller(controller_id);
    if (controller == nullptr || !(controller->host() == host)) {
        return refuse(command, Status::ConnectParameters, kControllerField);
    }
    if (fields.queue_id > controller->granted_queues() || controller->queue(fields.queue_id) != nullptr) {
        return refuse(command, Status::ConnectParameters, kQueueIdField);
    }
    if (!controller->ready()) {
        return refuse(command, Status::SequenceError);
    }
    bind(command, fields, controller);
}

void connect_with_data(Command& command) {
    ConnectData data;
    command.get_data(0, mutable_bytes_of(data));
    const ConnectFields fields(command);
    Queue& queue = command.queue();
    if (fields.format != 0) {
        return refuse(command, Status::ConnectFormat);
    }
    if (fields.queue_id != queue.id()) {
        return refuse(command, Status::ConnectParameters, kQueueIdField);
    }
    if (fields.queue_size == 0 || fields.queue_size >= queue.entries()) {
        return refuse(command, Status::ConnectParameters, kQueueSizeField);
    }
    HostIdentity host{data.host_id, nqn_of(data.host_nqn)};
    Subsystem* const subsystem = queue.target().subsystem(nqn_of(data.subsystem_nqn));
    if (subsystem == nullptr) {
        return refuse(command, Status::ConnectParameters, kSubsystemField);
    }
    if (host.nqn.empty()) {
        return refuse(command, Status::ConnectParameters, kHostField);
    }
    if (!subsystem->allows(host.nqn)) {
        return refuse(command, Status::ConnectHost, kHostField);
    }
    if (queue.id() == 0) {
        connect_admin(command, fields, *subsystem, std::move(host), data.controller_id.get());
    } else {
        connect_io(command, fields, *subsystem, host, data.controller_id.get());
    }
}

void start_connect(Command& command) {
    if (command.queue().controller() != nullptr) {
        return command.finish(Status::SequenceError);
    }
    if (const Status status = command.parse_data(); status != Status::Success) {
        return command.finish(status);
    }
    if (command.data_length() < sizeof(ConnectData)) {
        return command.finish(Status::SglLengthInvalid);
    }
    command.fetch(sizeof(ConnectData), connect_with_data);
}

void property_get(Command& command) {
    const auto value = command.controller().property(command.dword(11), (command.dword(10) & 7U) == 1);
    if ((command.dword(10) & 7U) > 1 || !value) {
        return command.finish(Status::InvalidField);
    }
    command.finish(Status::Success, *value);
}

void property_set(Command& command) {
    if ((command.dword(10) & 7U) > 1 ||
        !command.controller().set_property(command.dword(11), (command.dword(10) & 7U) == 1,
                                           command.quad(12))) {
        return command.finish(Status::InvalidField);
    }
    command.finish(Status::Success);
}

}  // namespace

void start_fabrics(Command& command) {
    const auto type = static_cast<nvme::FabricsType>(command.entry().fabrics_type());
    if (type == nvme::FabricsType::Connect) {
        return start_connect(command);
    }
    Queue& queue = command.queue();
    if (queue.controller() == nullptr) {
        return command.finish(Status::SequenceError);
    }
    queue.controller()->traffic();
    switch (type) {
        case nvme::FabricsType::PropertyGet:
            return queue.id() == 0 ? property_get(command) : command.finish(Status::InvalidField);
        case nvme::FabricsType::PropertySet:
            return queue.id() == 0 ? property_set(command) : command.finish(Status::InvalidField);
        case nvme::FabricsType::Disconnect:
            // No I/O queue was connected with the right to go alone, which is not offered.
            return command.finish(Status::InvalidQueueType);
        default:
            return command.finish(Status::InvalidOpcode);
    }
}

}  // namespace ernic::nvmeof
