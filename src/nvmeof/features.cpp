// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstring>

#include "nvmeof/admin_commands.hpp"
#include "nvmeof/controller.hpp"
#include "nvmeof/queue.hpp"
#include "nvmeof/subsystem.hpp"

namespace ernic::nvmeof {

namespace nvme = wire::nvme;
using nvme::Feature;
using nvme::Status;

namespace {

constexpr std::uint32_t kSave = 1U << 31U;
constexpr std::size_t kTimestampBytes = 8;
constexpr std::size_t kHostBehaviorBytes = 512;

Feature feature_of(const Command& command) {
    return static_cast<Feature>(command.dword(10) & 0xffU);
}

/// The namespace that a feature of namespaces is set for; null when there is none.
Namespace* space_of(const Command& command) {
    return command.controller().subsystem().find(command.entry().nsid.get()).get();
}

void set_number_of_queues(Command& command) {
    constexpr std::uint32_t kIllegal = 0xffff;
    Controller& controller = command.controller();
    const std::uint32_t submission = command.dword(11) & 0xffffU;
    const std::uint32_t completion = command.dword(11) >> 16U;
    if (submission == kIllegal || completion == kIllegal) {
        return command.finish(Status::InvalidField);
    }
    if (controller.has_io_queues()) {
        return command.finish(Status::SequenceError);
    }
    const std::uint32_t wanted = std::min(submission, completion) + 1U;
    const auto granted =
        static_cast<std::uint16_t>(std::min<std::uint32_t>(wanted, controller.subsystem().max_io_queues()));
    controller.grant_queues(granted);
    const std::uint32_t zero_based = granted - 1U;
    command.finish(Status::Success, zero_based << 16U | zero_based);
}

void set_temperature(Command& command) {
    const std::uint32_t value = command.dword(11);
    const std::uint32_t sensor = value >> 16U & 0xfU;
    const std::uint32_t kind = value >> 20U & 0x3U;
    constexpr std::uint32_t kAllSensors = 0xf;
    if ((sensor != 0 && sensor != kAllSensors) || kind > 1) {
        return command.finish(Status::InvalidField);
    }
    Features& features = command.controller().features;
    (kind == 0 ? features.over_temperature : features.under_temperature) = value & 0xffffU;
    command.finish(Status::Success);
}

void set_async_events(Command& command) {
    constexpr std::uint32_t kHealthWarnings = 0xff;
    using namespace nvme::event;  // NOLINT(google-build-using-namespace): constants
    const std::uint32_t known = command.controller().subsystem().discovery()
                                    ? kEnableDiscovery
                                    : kHealthWarnings | kEnableNamespaces | kEnableAna;
    if ((command.dword(11) & ~known) != 0) {
        return command.finish(Status::InvalidField);
    }
    command.controller().events.set_enabled(command.dword(11));
    command.finish(Status::Success);
}

void timestamp_fetched(Command& command) {
    le64 value;
    command.get_data(0, mutable_bytes_of(value));
    Features& features = command.controller().features;
    features.timestamp = value.get() & 0xffff'ffff'ffffU;
    features.timestamp_set = command.queue().runtime().loop.clock().now();
    features.timestamp_origin = 1;
    command.finish(Status::Success);
}

void host_behavior_fetched(Command& command) {
    command.get_data(0, command.controller().features.host_behavior);
    command.finish(Status::Success);
}

void set_write_protection(Command& command) {
    Namespace* const space = space_of(command);
    if (space == nullptr) {
        return command.finish(Status::InvalidNamespace);
    }
    if (const Status refusal = command.controller().path().refusal(); refusal != Status::Success) {
        return command.finish(refusal);
    }
    const std::uint32_t state = command.dword(11) & 0x7U;
    if (state > static_cast<std::uint32_t>(Namespace::Protection::Protected)) {
        return command.finish(Status::FeatureNotChangeable);
    }
    const auto protection = static_cast<Namespace::Protection>(state);
    const bool changed = space->protection != protection;
    space->protection = protection;
    command.finish(Status::Success);
    if (changed) {
        command.controller().subsystem().changed(space->id());
    }
}

void set_reservation_mask(Command& command) {
    constexpr std::uint32_t kMasks = 0xe;
    Controller& controller = command.controller();
    const std::uint32_t nsid = command.entry().nsid.get();
    if (nsid != nvme::kEveryNamespace && space_of(command) == nullptr) {
        return command.finish(Status::InvalidNamespace);
    }
    for (const auto& space : controller.subsystem().namespaces()) {
        if (space != nullptr && (nsid == nvme::kEveryNamespace || nsid == space->id())) {
            controller.reservation_masks[space->id()] = command.dword(11) & kMasks;
        }
    }
    command.finish(Status::Success);
}

void send_reservation_feature(Command& command, Feature feature) {
    const Namespace* const space = space_of(command);
    if (space == nullptr) {
        return command.finish(Status::InvalidNamespace);
    }
    const auto& masks = command.controller().reservation_masks;
    const auto mask = masks.find(space->id());
    if (feature == Feature::ReservationPersistence) {
        return command.finish(Status::Success, space->reservations.persistent ? 1 : 0);
    }
    command.finish(Status::Success, mask == masks.end() ? 0 : mask->second);
}

/// The time that the host has set and what has passed since.
le64 current_timestamp(const Command& command) {
    const Features& features = command.controller().features;
    const std::uint64_t passed =
        (command.queue().runtime().loop.clock().now() - features.timestamp_set) / 1'000'000U;
    constexpr unsigned kOriginShift = 49;
    return le64(((features.timestamp + passed) & 0xffff'ffff'ffffU) | std::uint64_t{features.timestamp_origin}
                                                                          << kOriginShift);
}

void send_timestamp(Command& command) {
    command.send_data(bytes_of(current_timestamp(command)), send_timestamp);
}

void send_host_behavior(Command& command) {
    command.send_data(command.controller().features.host_behavior, send_host_behavior);
}

void send_host_id(Command& command) {
    constexpr std::uint32_t kExtended = 1;
    if ((command.dword(11) & kExtended) == 0) {
        return command.finish(Status::InvalidField);  // Fabrics knows only the long form
    }
    command.send_data(command.controller().host().id, send_host_id);
}

/// What a feature is before anybody sets it.
std::uint32_t default_of(Feature feature, const Controller& controller) {
    const std::uint32_t queues = controller.subsystem().max_io_queues() - 1U;
    switch (feature) {
        case Feature::TemperatureThreshold:
            return Features().over_temperature;
        case Feature::VolatileWriteCache:
            return 1;
        case Feature::NumberOfQueues:
            return queues << 16U | queues;
        default:
            return 0;
    }
}

/// Whether there is a volatile write cache, which then is always on.
bool caches_writes(const Subsystem& subsystem) {
    const auto& spaces = subsystem.namespaces();
    return std::any_of(spaces.begin(), spaces.end(),
                       [](const auto& space) { return space != nullptr && space->store().volatile_cache(); });
}

void get_current(Command& command) {
    const Controller& controller = command.controller();
    const Features& features = controller.features;
    const std::uint32_t queues = controller.granted_queues() - 1U;
    switch (feature_of(command)) {
        case Feature::Arbitration:
            return command.finish(Status::Success, features.arbitration);
        case Feature::PowerManagement:
            return command.finish(Status::Success, 0);
        case Feature::TemperatureThreshold:
            return command.finish(Status::Success, (command.dword(11) >> 20U & 0x3U) == 0
                                                       ? features.over_temperature
                                                       : features.under_temperature);
        case Feature::ErrorRecovery:
            return command.finish(Status::Success, features.error_recovery);
        case Feature::VolatileWriteCache:
            return command.finish(Status::Success, caches_writes(controller.subsystem()) ? 1 : 0);
        case Feature::NumberOfQueues:
            return command.finish(Status::Success, queues << 16U | queues);
        case Feature::WriteAtomicity:
            return command.finish(Status::Success, features.write_atomicity);
        case Feature::Timestamp:
            return send_timestamp(command);
        case Feature::HostBehavior:
            return send_host_behavior(command);
        case Feature::HostIdentifier:
            return send_host_id(command);
        case Feature::ReservationMask:
        case Feature::ReservationPersistence:
            return send_reservation_feature(command, feature_of(command));
        case Feature::WriteProtection: {
            const Namespace* const space = space_of(command);
            return space == nullptr
                       ? command.finish(Status::InvalidNamespace)
                       : command.finish(Status::Success, static_cast<std::uint32_t>(space->protection));
        }
        default:
            return command.finish(Status::InvalidField);
    }
}

bool known(Feature feature) {
    switch (feature) {
        case Feature::Arbitration:
        case Feature::PowerManagement:
        case Feature::TemperatureThreshold:
        case Feature::ErrorRecovery:
        case Feature::VolatileWriteCache:
        case Feature::NumberOfQueues:
        case Feature::WriteAtomicity:
        case Feature::AsyncEvents:
        case Feature::Timestamp:
        case Feature::KeepAliveTimer:
        case Feature::HostBehavior:
        case Feature::HostIdentifier:
        case Feature::ReservationMask:
        case Feature::ReservationPersistence:
        case Feature::WriteProtection:
            return true;
        default:
            return false;
    }
}

/// What Get Features says of a feature's abilities (SEL 3).
std::uint32_t capabilities_of(Feature feature) {
    constexpr std::uint32_t kPerNamespace = 0x2;
    constexpr std::uint32_t kChangeable = 0x4;
    if (feature == Feature::HostIdentifier) {
        return 0;
    }
    return feature == Feature::WriteProtection ? kPerNamespace | kChangeable : kChangeable;
}

void set_nvm_feature(Command& command) {
    Features& features = command.controller().features;
    switch (feature_of(command)) {
        case Feature::Arbitration:
            features.arbitration = command.dword(11);
            return command.finish(Status::Success);
        case Feature::PowerManagement:
            return command.finish((command.dword(11) & 0x1fU) == 0 ? Status::Success : Status::InvalidField);
        case Feature::TemperatureThreshold:
            return set_temperature(command);
        case Feature::ErrorRecovery:
            features.error_recovery = command.dword(11) & 0xffffU;
            return command.finish(Status::Success);
        case Feature::VolatileWriteCache:
            return command.finish((command.dword(11) & 1U) != 0 ? Status::Success
                                                                : Status::FeatureNotChangeable);
        case Feature::NumberOfQueues:
            return set_number_of_queues(command);
        case Feature::WriteAtomicity:
            features.write_atomicity = command.dword(11) & 1U;
            return command.finish(Status::Success);
        case Feature::Timestamp:
            return command.fetch(kTimestampBytes, timestamp_fetched);
        case Feature::HostBehavior:
            return command.fetch(kHostBehaviorBytes, host_behavior_fetched);
        case Feature::HostIdentifier:
            return command.finish(Status::SequenceError);  // Connect has set it
        case Feature::ReservationMask:
            return set_reservation_mask(command);
        case Feature::WriteProtection:
            return set_write_protection(command);
        default:
            return command.finish(Status::InvalidField);
    }
}

}  // namespace

void set_features(Command& command) {
    if ((command.dword(10) & kSave) != 0 && known(feature_of(command))) {
        return command.finish(Status::FeatureNotSaveable);
    }
    switch (feature_of(command)) {
        case Feature::AsyncEvents:
            return set_async_events(command);
        case Feature::KeepAliveTimer:
            command.controller().set_keep_alive(command.dword(11));
            return command.finish(Status::Success);
        default:
            return command.controller().subsystem().discovery() ? command.finish(Status::InvalidField)
                                                                : set_nvm_feature(command);
    }
}

void get_features(Command& command) {
    constexpr std::uint32_t kCurrent = 0;
    constexpr std::uint32_t kCapabilities = 3;
    const Feature feature = feature_of(command);
    const Controller& controller = command.controller();
    const std::uint32_t select = command.dword(10) >> 8U & 0x7U;
    const bool of_all_controllers = feature == Feature::AsyncEvents || feature == Feature::KeepAliveTimer;
    if (!known(feature) || select > kCapabilities ||
        (controller.subsystem().discovery() && !of_all_controllers)) {
        return command.finish(Status::InvalidField);
    }
    if (select == kCapabilities) {
        return command.finish(Status::Success, capabilities_of(feature));
    }
    if (select != kCurrent) {
        return command.finish(Status::Success, default_of(feature, controller));
    }
    if (feature == Feature::AsyncEvents) {
        return command.finish(Status::Success, controller.events.enabled());
    }
    if (feature == Feature::KeepAliveTimer) {
        return command.finish(Status::Success, controller.keep_alive());
    }
    get_current(command);
}

}  // namespace ernic::nvmeof
