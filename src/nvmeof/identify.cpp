// SPDX-License-Identifier: MIT
#include <algorithm>
#include <bit>
#include <cstring>

#include "nvmeof/admin_commands.hpp"
#include "nvmeof/controller.hpp"
#include "nvmeof/identify_data.hpp"
#include "nvmeof/queue.hpp"
#include "nvmeof/subsystem.hpp"
#include "wire/nvme_identify.hpp"

namespace ernic::nvmeof {

namespace nvme = wire::nvme;
using nvme::Cns;
using nvme::Status;

namespace {

/// Puts `data` at the front of the 4096 bytes of the answer, zeroes behind it, and sends them.
void answer(Command& command, Bytes data) {
    const Buffer& buffer = command.buffer();
    buffer.put(0, data);
    if (data.size() < nvme::kIdentifyBytes) {
        buffer.fill_zero(data.size(), nvme::kIdentifyBytes - data.size());
    }
    command.send(nvme::kIdentifyBytes);
}

/// The namespace that the command is about; finishes it when there is no such id. Null with `finished` false:
/// an id that no namespace has at the moment.
struct Lookup {
    const Namespace* space = nullptr;
    bool finished = false;
};
Lookup look_up(Command& command) {
    const std::uint32_t nsid = command.entry().nsid.get();
    if (nsid == 0 || nsid > Subsystem::max_namespace()) {
        command.finish(Status::InvalidNamespace);
        return {nullptr, true};
    }
    return {command.controller().subsystem().find(nsid).get(), false};
}

/// Ids above the given one, ascending.
void active_namespaces(Command& command) {
    const std::uint32_t above = command.entry().nsid.get();
    if (above >= 0xfffffffeU) {
        return command.finish(Status::InvalidNamespace);
    }
    std::array<le32, nvme::kIdentifyBytes / sizeof(le32)> list{};
    std::size_t count = 0;
    for (const auto& space : command.controller().subsystem().namespaces()) {
        if (space != nullptr && space->id() > above && count < list.size()) {
            list[count++].set(space->id());
        }
    }
    answer(command, bytes_of(list));
}

void descriptors(Command& command) {
    const Lookup found = look_up(command);
    if (found.finished) {
        return;
    }
    if (found.space == nullptr) {
        return command.finish(Status::InvalidNamespace);
    }
    using nvme::NamespaceDescriptor;
    std::array<std::byte, 64> data{};
    std::size_t used = 0;
    const auto add = [&](std::uint8_t type, Bytes id) {
        const NamespaceDescriptor head{type, static_cast<std::uint8_t>(id.size()), {}};
        std::memcpy(data.data() + used, &head, sizeof head);
        std::memcpy(data.data() + used + sizeof head, id.data(), id.size());
        used += sizeof head + id.size();
    };
    add(NamespaceDescriptor::kNguid, found.space->nguid());
    add(NamespaceDescriptor::kUuid, found.space->uuid());
    constexpr std::uint8_t kNvmCommandSet = 0;
    add(NamespaceDescriptor::kCommandSet, bytes_of(kNvmCommandSet));
    answer(command, data);
}

/// Controller ids of the subsystem from the given one on.
void controllers(Command& command) {
    const auto from = static_cast<std::uint16_t>(command.dword(10) >> 16U);
    std::vector<std::uint16_t> ids;
    for (const auto& controller : command.controller().subsystem().controllers()) {
        if (controller->id() >= from) {
            ids.push_back(controller->id());
        }
    }
    std::sort(ids.begin(), ids.end());
    std::array<le16, nvme::kIdentifyBytes / sizeof(le16)> list{};
    const std::size_t count = std::min(ids.size(), list.size() - 1);
    list[0].set(static_cast<std::uint16_t>(count));
    for (std::size_t i = 0; i < count; ++i) {
        list[i + 1].set(ids[i]);
    }
    answer(command, bytes_of(list));
}

void namespace_structure(Command& command) {
    if (command.entry().nsid.get() == nvme::kEveryNamespace) {
        // Only asked for where namespaces are managed, which is not offered.
        return command.finish(Status::InvalidNamespace);
    }
    const Lookup found = look_up(command);
    if (found.finished) {
        return;
    }
    if (found.space == nullptr) {
        return answer(command, {});
    }
    answer(command, bytes_of(identify_namespace(*found.space, command.controller().path())));
}

void nvm_namespace(Command& command) {
    if (const Lookup found = look_up(command); !found.finished) {
        answer(command, {});
    }
}

void independent_namespace(Command& command) {
    const Lookup found = look_up(command);
    if (found.finished) {
        return;
    }
    if (found.space == nullptr) {
        return answer(command, {});
    }
    answer(command, bytes_of(identify_independent(*found.space)));
}

void nvm_controller(Command& command) {
    nvme::IdentifyNvmController data{};
    // What 65536 blocks of 512 bytes are.
    constexpr std::uint8_t k32MiB = 13;
    data.verify_limit = k32MiB;
    data.write_zeroes_limit = k32MiB;
    data.write_uncorrectable_limit = k32MiB;
    answer(command, bytes_of(data));
}

void of_nvm_subsystem(Command& command, Cns cns) {
    const auto command_set = static_cast<std::uint8_t>(command.dword(11) >> 24U);
    switch (cns) {
        case Cns::Namespace:
        case Cns::AllocatedNamespace:
            return namespace_structure(command);
        case Cns::ActiveNamespaces:
        case Cns::AllocatedNamespaces:
            return active_namespaces(command);
        case Cns::Descriptors:
            return descriptors(command);
        case Cns::NvmNamespace:
            return command_set == 0 ? nvm_namespace(command) : command.finish(Status::InvalidField);
        case Cns::NvmController:
            return command_set == 0 ? nvm_controller(command) : command.finish(Status::InvalidField);
        case Cns::ActiveNamespacesOfSet:
            return command_set == 0 ? active_namespaces(command) : command.finish(Status::InvalidField);
        case Cns::IndependentNamespace:
            return independent_namespace(command);
        case Cns::ControllersOfNamespace:
            if (const Lookup found = look_up(command); !found.finished) {
                found.space == nullptr ? answer(command, {}) : controllers(command);
            }
            return;
        case Cns::Controllers:
            return controllers(command);
        case Cns::CommandSets: {
            constexpr std::uint64_t kNvm = 1;
            return answer(command, bytes_of(le64(kNvm)));
        }
        default:
            return command.finish(Status::InvalidField);
    }
}

}  // namespace

void identify(Command& command) {
    if (command.data_in_capsule()) {
        return command.finish(Status::InvalidField);
    }
    if (!command.take_buffer(nvme::kIdentifyBytes, identify)) {
        return;
    }
    const auto cns = static_cast<Cns>(command.dword(10) & 0xffU);
    if (cns == Cns::Controller) {
        return answer(command, bytes_of(identify_controller(command.controller())));
    }
    if (command.controller().subsystem().discovery()) {
        return command.finish(Status::InvalidField);
    }
    of_nvm_subsystem(command, cns);
}

}  // namespace ernic::nvmeof
