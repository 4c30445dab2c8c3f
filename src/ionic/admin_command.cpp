// SPDX-License-Identifier: MIT
#include "ionic/admin_command.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <vector>

namespace ernic::ionic {
namespace {

namespace w = wire::ionic;
using w::Opcode;
using w::Status;

/// Every command and completion structure has the same size; the opcode says which one it is.
template <WireValue T>
T as(const w::Command& command) {
    static_assert(sizeof(T) == sizeof command);
    return *read_value<T>(bytes_of(command));
}

/// Opcodes of the interface that the admin queue does not take.
bool device_command_only(Opcode opcode) {
    switch (opcode) {
        case Opcode::Identify:
        case Opcode::Init:
        case Opcode::Reset:
        case Opcode::GetAttribute:
        case Opcode::SetAttribute:
        case Opcode::PortIdentify:
        case Opcode::PortInit:
        case Opcode::PortReset:
        case Opcode::PortGetAttribute:
        case Opcode::PortSetAttribute:
        case Opcode::LifIdentify:
        case Opcode::LifInit:
        case Opcode::LifReset:
        case Opcode::QueueIdentify:
        case Opcode::VfGetAttribute:
        case Opcode::VfSetAttribute:
        case Opcode::VfControl:
        case Opcode::DiscoverCmb:
        case Opcode::FirmwareDownload:
        case Opcode::FirmwareControl:
        case Opcode::FirmwareDownloadV1:
        case Opcode::FirmwareControlV1:
            return true;
        default:
            return false;
    }
}

}  // namespace

void AdminCommands::execute(const w::Command& command, w::Completion& completion) {
    const Status status = dispatch(command, completion);
    completion.status = static_cast<std::uint8_t>(status);
    (status == Status::Success ? succeeded_ : failed_).add();
    // Exists is how the driver learns that a filter is there already; nothing is wrong.
    if (status != Status::Success && status != Status::Exists) {
        log_.warn_limited(limiter_, "admin command failed opcode={} status={}", command.opcode,
                          completion.status);
    }
}

Status AdminCommands::dispatch(const w::Command& command, w::Completion& completion) {
    const auto opcode = static_cast<Opcode>(command.opcode);
    switch (opcode) {
        case Opcode::RdmaCreateEventQueue:
        case Opcode::RdmaCreateCompletionQueue:
        case Opcode::RdmaCreateAdminQueue:
            return create_rdma_queue(command);
        case Opcode::QueueInit:
            if (as<w::QueueInitCommand>(command).type == static_cast<std::uint8_t>(w::LogicalQueue::Admin)) {
                return Status::DeviceCommandOnly;  // it would replace the queue it came by
            }
            return init_queue(command, completion);
        default:
            return device_command_only(opcode) ? Status::DeviceCommandOnly
                                               : execute_common(command, completion);
    }
}

Status AdminCommands::execute_common(const w::Command& command, w::Completion& completion) {
    switch (static_cast<Opcode>(command.opcode)) {
        case Opcode::Nop:
            return Status::Success;
        case Opcode::LifSetAttribute: {
            std::uint64_t features = 0;
            const Status status = lif_.set_attribute(as<w::LifAttributeCommand>(command), features);
            const le64 granted(features);
            std::copy_n(bytes_of(granted).begin(), sizeof granted, completion.body.begin());
            return status;
        }
        case Opcode::LifGetAttribute:
            return lif_.get_attribute(as<w::LifAttributeCommand>(command), completion.body);
        case Opcode::LifSetPhc:
            return Status::NotSupported;
        case Opcode::RxModeSet: {
            const auto mode = as<w::RxModeSetCommand>(command);
            if (mode.lif_index.get() != 0) {
                return Status::Invalid;
            }
            lif_.filters().set_mode(mode.rx_mode.get());
            return Status::Success;
        }
        case Opcode::RxFilterAdd: {
            std::uint32_t id = 0;
            if (command.lif_index.get() != 0) {
                return Status::Invalid;
            }
            const Status status = lif_.filters().add(as<w::RxFilterAddCommand>(command), id);
            const le32 filter(id);
            std::copy_n(bytes_of(filter).begin(), sizeof filter, completion.body.begin());
            addresses_changed();
            return status;
        }
        case Opcode::RxFilterDelete: {
            if (command.lif_index.get() != 0) {
                return Status::Invalid;
            }
            const Status status =
                lif_.filters().remove(as<w::RxFilterDeleteCommand>(command).filter_id.get());
            addresses_changed();
            return status;
        }
        case Opcode::QueueControl:
            return command.lif_index.get() != 0 ? Status::Invalid
                                                : lif_.control_queue(as<w::QueueControlCommand>(command));
        case Opcode::RdmaResetLif:
            if (rdma_ == nullptr) {
                return Status::NotSupported;
            }
            rdma_->reset();
            return Status::Success;
        default:
            return Status::BadOpcode;
    }
}

Status AdminCommands::init_queue(const w::Command& command, w::Completion& completion) {
    Lif::QueueHandle handle;
    const Status status = lif_.init_queue(as<w::QueueInitCommand>(command), handle);
    w::QueueInitCompletion answer{};
    answer.hw_index.set(handle.hw_index);
    answer.hw_type = handle.hw_type;
    completion = std::bit_cast<w::Completion>(answer);
    return status;
}

Status AdminCommands::create_rdma_queue(const w::Command& command) {
    if (rdma_ == nullptr) {
        return Status::NotSupported;
    }
    return command.lif_index.get() != 0 ? Status::Invalid
                                        : rdma_->create_queue(as<w::RdmaQueueCommand>(command));
}

void AdminCommands::register_in(metrics::Registry& registry) const {
    registry.add({"ionic.admin_commands.succeeded", "commands", "Admin queue commands that were executed."},
                 succeeded_);
    registry.add(
        {"ionic.admin_commands.failed", "commands",
         "Admin queue commands answered with an error: the guest asked for something wrong or unsupported."},
        failed_);
}

void AdminCommands::addresses_changed() {
    if (rdma_ == nullptr) {
        return;
    }
    // `ip link set address` reaches the card as filters only (ionic 7.2, ionic_set_mac_address), and RDMA
    // connections made from then on carry the new address.
    std::vector<wire::MacAddress> addresses{lif_.permanent_mac()};
    for (const wire::MacAddress& address : lif_.filters().unicast()) {
        if (!(address == addresses.front())) {
            addresses.push_back(address);
        }
    }
    rdma_->set_macs(addresses);
}

}  // namespace ernic::ionic
