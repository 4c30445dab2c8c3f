// SPDX-License-Identifier: MIT
#include "nvmeof/fabrics_commands.hpp"

#include <algorithm>
#include <array>
#include <optional>
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

/// `keys` are the host's, when it is to authenticate itself on this queue.
void bind(Command& command, const ConnectFields& fields, const std::shared_ptr<Controller>& controller,
          std::optional<DhChapSecrets::Keys> keys) {
    Queue& queue = command.queue();
    const Subsystem& subsystem = controller->subsystem();
    if (keys) {
        queue.authentication = std::make_shared<DhChap>(std::move(*keys), subsystem.config().auth_group,
                                                        controller->host().nqn, subsystem.nqn());
    }
    controller->attach(queue);
    queue.bind(controller, static_cast<std::uint16_t>(fields.queue_size + 1U),
               (fields.attributes & nvme::kConnectNoFlowControl) == 0);
    constexpr std::uint32_t kAuthenticationRequired = 1U << 17U;
    command.finish(Status::Success, controller->id() | (queue.trusted() ? 0U : kAuthenticationRequired));
}

void connect_admin(Command& command, const ConnectFields& fields, Subsystem& subsystem, HostIdentity host,
                   std::optional<DhChapSecrets::Keys> keys, std::uint16_t wanted_controller) {
    constexpr std::uint16_t kAnyStatic = 0xfffe;
    if (wanted_controller != ConnectData::kAnyController && wanted_controller != kAnyStatic) {
        return refuse(command, Status::ConnectParameters, kControllerField);
    }
    std::uint32_t keep_alive = fields.keep_alive;
    if (subsystem.discovery() && keep_alive == 0) {
        keep_alive = kDiscoveryKeepAlive;
    }
    const auto controller =
        subsystem.make_controller(command.queue().target().path(), std::move(host), keep_alive);
    if (controller == nullptr) {
        return refuse(command, Status::ConnectBusy);
    }
    bind(command, fields, controller, std::move(keys));
}

void connect_io(Command& command, const ConnectFields& fields, Subsystem& subsystem, const HostIdentity& host,
                std::optional<DhChapSecrets::Keys> keys, std::uint16_t controller_id) {
    const auto controller = subsystem.controller(controller_id);
    if (controller == nullptr || !(controller->host() == host)) {
        return refuse(command, Status::ConnectParameters, kControllerField);
    }
    // Names of hosts are what they say they are; a controller is not for a third who has heard of it. And all
    // queues of a controller come by one path.
    const Queue* const admin = controller->queue(0);
    if (admin == nullptr || !(admin->peer() == command.queue().peer()) ||
        &admin->target() != &command.queue().target()) {
        return refuse(command, Status::ConnectParameters, kControllerField);
    }
    if (fields.queue_id > controller->granted_queues() || controller->queue(fields.queue_id) != nullptr) {
        return refuse(command, Status::ConnectParameters, kQueueIdField);
    }
    if (!admin->trusted()) {
        return refuse(command, Status::AuthenticationRequired);
    }
    if (!controller->ready()) {
        return refuse(command, Status::SequenceError);
    }
    bind(command, fields, controller, std::move(keys));
}

void connect_with_data(Command& command) {
    // Another Connect may have been faster than this one's data.
    if (command.queue().controller() != nullptr) {
        return command.finish(Status::SequenceError);
    }
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
    std::optional<DhChapSecrets::Keys> keys;
    if (subsystem->secrets() != nullptr) {
        keys = subsystem->secrets()->of(host.nqn);
        if (!keys) {
            return refuse(command, Status::ConnectHost, kHostField);
        }
    }
    if (queue.id() == 0) {
        connect_admin(command, fields, *subsystem, std::move(host), std::move(keys),
                      data.controller_id.get());
    } else {
        connect_io(command, fields, *subsystem, host, std::move(keys), data.controller_id.get());
    }
}

void start_connect(Command& command) {
    if (command.queue().controller() != nullptr) {
        return command.finish(Status::SequenceError);
    }
    if (const Status status = command.parse_data(); status != Status::Success) {
        return command.finish(status);
    }
    command.fetch(sizeof(ConnectData), connect_with_data);
}

/// The bytes of a message that Authentication Send brings, or Receive has room for; 0: the fields are wrong.
std::uint32_t message_bytes(const Command& command) {
    constexpr std::uint32_t kFields = std::uint32_t{nvme::auth::kProtocol} << 24U |
                                      std::uint32_t{nvme::auth::kProtocolSpecific} << 16U |
                                      std::uint32_t{nvme::auth::kProtocolSpecific} << 8U;
    if ((command.dword(10) & 0xffffff00U) != kFields || command.dword(11) > command.data_length()) {
        return 0;
    }
    return command.dword(11);
}

void authentication_sent(Command& command) {
    std::array<std::byte, DhChap::kMaxMessage> message;
    const MutableBytes used =
        MutableBytes(message).first(std::min<std::size_t>(message_bytes(command), message.size()));
    command.get_data(0, used);
    const std::shared_ptr<DhChap> conversation = command.queue().authentication;
    if (!conversation->receive(used)) {
        return command.finish(Status::Success);
    }
    command.wait_in(conversation->waiting, [](Command& waited) { waited.finish(Status::Success); });
    Runtime& runtime = command.queue().runtime();
    runtime.arithmetic().run([conversation] { conversation->calculate(); },
                             [conversation, &runtime] {
                                 conversation->calculated();
                                 runtime.work.append(conversation->waiting);
                             });
}

void authentication_received(Command& command) {
    const std::uint32_t room = message_bytes(command);
    if (!command.take_buffer(DhChap::kMaxMessage, authentication_received)) {
        return;
    }
    Queue& queue = command.queue();
    DhChap& conversation = *queue.authentication;
    const Digest message = conversation.next(room);
    if (message.empty()) {
        return command.finish(Status::SequenceError);
    }
    command.buffer().fill_zero(0, DhChap::kMaxMessage);
    command.buffer().put(0, message);
    command.send(std::min<std::size_t>(room, DhChap::kMaxMessage));
    if (conversation.failed()) {
        // No second try on this connection.
        queue.close();
    }
}

void authenticate(Command& command) {
    if (command.queue().authentication == nullptr) {
        return command.finish(Status::InvalidField);
    }
    if (const Status status = command.parse_data(); status != Status::Success) {
        return command.finish(status);
    }
    const std::uint32_t bytes = message_bytes(command);
    if (bytes == 0) {
        return command.finish(Status::InvalidField);
    }
    const auto type = static_cast<nvme::FabricsType>(command.entry().fabrics_type());
    if (type == nvme::FabricsType::AuthenticationReceive) {
        return authentication_received(command);
    }
    command.fetch(std::min<std::size_t>(bytes, DhChap::kMaxMessage), authentication_sent);
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
    if (type == nvme::FabricsType::AuthenticationSend || type == nvme::FabricsType::AuthenticationReceive) {
        return authenticate(command);
    }
    if (!queue.trusted()) {
        return command.finish(Status::AuthenticationRequired);
    }
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
