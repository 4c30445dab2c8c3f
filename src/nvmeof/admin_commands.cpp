// SPDX-License-Identifier: MIT
#include "nvmeof/admin_commands.hpp"

#include "nvmeof/controller.hpp"
#include "nvmeof/queue.hpp"
#include "nvmeof/subsystem.hpp"

namespace ernic::nvmeof {

namespace nvme = wire::nvme;
using nvme::Status;

namespace {

/// Abort (Base Specification 5.1): what waits for memory, a step, an event or a time ends at once; what is
/// on its way between two memories does not.
void abort(Command& command) {
    constexpr std::uint64_t kNotAborted = 1;
    Queue* const queue = command.controller().queue(static_cast<std::uint16_t>(command.dword(10)));
    if (queue == nullptr) {
        return command.finish(Status::InvalidField);
    }
    Command* const victim = queue->find(static_cast<std::uint16_t>(command.dword(10) >> 16U));
    if (victim == nullptr || victim == &command || victim->scratch.partner != nullptr || !victim->cancel()) {
        return command.finish(Status::Success, kNotAborted);
    }
    command.controller().events.forget(*victim);
    command.queue().runtime().counters.aborted_commands.add();
    victim->finish(Status::AbortRequested);
    command.finish(Status::Success, 0);
}

/// What a discovery controller has besides.
bool for_discovery(nvme::AdminOpcode opcode) {
    switch (opcode) {
        case nvme::AdminOpcode::GetLogPage:
        case nvme::AdminOpcode::Identify:
        case nvme::AdminOpcode::Abort:
        case nvme::AdminOpcode::SetFeatures:
        case nvme::AdminOpcode::GetFeatures:
        case nvme::AdminOpcode::AsyncEvent:
        case nvme::AdminOpcode::KeepAlive:
            return true;
        default:
            return false;
    }
}

}  // namespace

void start_admin(Command& command) {
    const auto opcode = static_cast<nvme::AdminOpcode>(command.entry().opcode);
    if (command.controller().subsystem().discovery() && !for_discovery(opcode)) {
        return command.finish(Status::InvalidOpcode);
    }
    if (const Status status = command.parse_data(); status != Status::Success) {
        return command.finish(status);
    }
    if (command.fuse() != 0) {
        return command.finish(Status::InvalidField);
    }
    switch (opcode) {
        case nvme::AdminOpcode::Identify:
            return identify(command);
        case nvme::AdminOpcode::GetLogPage:
            return get_log_page(command);
        case nvme::AdminOpcode::SetFeatures:
            return set_features(command);
        case nvme::AdminOpcode::GetFeatures:
            return get_features(command);
        case nvme::AdminOpcode::Abort:
            return abort(command);
        case nvme::AdminOpcode::AsyncEvent:
            return command.controller().events.request(command);
        case nvme::AdminOpcode::KeepAlive:
            return command.finish(Status::Success);
        default:
            return command.finish(Status::InvalidOpcode);
    }
}

}  // namespace ernic::nvmeof
