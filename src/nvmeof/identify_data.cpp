// SPDX-License-Identifier: MIT
#include "nvmeof/identify_data.hpp"

#include <algorithm>
#include <bit>

#include "nvmeof/controller.hpp"
#include "nvmeof/namespace.hpp"
#include "nvmeof/path.hpp"
#include "nvmeof/subsystem.hpp"
#include "nvmeof/transport.hpp"

namespace ernic::nvmeof {

namespace nvme = wire::nvme;

namespace {

constexpr std::uint16_t kCapsuleUnit = 16;
constexpr std::uint32_t kPage = 4096;
/// What the state "change" should end within; Linux resets a controller that stays in it for twice as long.
constexpr std::uint8_t kAnaTransitionSeconds = 10;
/// All six types of reservations, and keys may be ignored as of 1.3 (RESCAP).
constexpr std::uint8_t kReservationTypes = 0xfe;

std::uint8_t reservation_abilities(const Namespace& space) {
    constexpr std::uint8_t kPersistThroughPowerLoss = 0x01;
    return space.store().keeps() ? kReservationTypes | kPersistThroughPowerLoss : kReservationTypes;
}

void of_nvm_subsystem(nvme::IdentifyController& data, const Subsystem& subsystem) {
    using Data = nvme::IdentifyController;
    data.multi_path = Data::kMultiPort | Data::kMultiController | Data::kAna;
    data.ana_transition_seconds = kAnaTransitionSeconds;
    data.ana_capabilities = Data::kAnaAllStates | Data::kAnaGroupStays;
    data.ana_group_max.set(kAnaGroups);
    data.ana_groups.set(kAnaGroups);
    data.controller_type = Data::kTypeIo;
    data.optional_events.set(nvme::event::kEnableNamespaces | nvme::event::kEnableAna);
    data.log_attributes =
        Data::kLogSmartPerNamespace | Data::kLogEffects | Data::kLogExtended | Data::kLogSupportedPages;
    std::uint64_t capacity = 0;
    bool cached = false;
    for (const auto& space : subsystem.namespaces()) {
        if (space != nullptr) {
            capacity += space->store().size();
            cached = cached || space->store().volatile_cache();
        }
    }
    data.total_capacity[0].set(capacity);
    data.namespaces.set(Subsystem::max_namespace());
    data.namespaces_allowed.set(Subsystem::max_namespace());
    data.optional_nvm.set(Data::kCompare | Data::kWriteUncorrectable | Data::kDatasetManagement |
                          Data::kWriteZeroes | Data::kReservations | Data::kTimestamp | Data::kVerify |
                          Data::kCopy);
    data.fused.set(Data::kFusedCompareWrite);
    data.copy_formats.set(1);
    // In blocks of whatever size, 0-based.
    data.atomic_compare_write.set(kFusedBytes / kPage - 1);
    data.write_cache = static_cast<std::uint8_t>(Data::kFlushAllNamespaces |
                                                 (cached ? Data::kWriteCachePresent : std::uint8_t{0}));
    data.command_capsule.set(
        static_cast<std::uint32_t>((kSubmissionBytes + subsystem.config().in_capsule) / kCapsuleUnit));
}

}  // namespace

nvme::IdentifyController identify_controller(const Controller& controller) {
    using Data = nvme::IdentifyController;
    const Subsystem& subsystem = controller.subsystem();
    Data data{};
    put_text(data.serial, subsystem.serial(), ' ');
    put_text(data.model, subsystem.config().model, ' ');
    put_text(data.firmware, kFirmware, ' ');
    data.arbitration_burst = 6;
    data.max_transfer = static_cast<std::uint8_t>(std::countr_zero(subsystem.max_transfer() / kPage));
    data.controller_id.set(controller.id());
    data.version.set(kVersion);
    data.attributes.set(Data::kHostId128 | Data::kTrafficBasedKeepAlive);
    data.abort_limit = kAborts - 1;
    data.async_event_limit = kAsyncEvents - 1;
    data.firmware_updates = 3;  // one slot, which is read only
    data.error_entries = kErrorEntries - 1;
    data.warning_temperature.set(343);
    data.critical_temperature.set(353);
    data.keep_alive_granularity.set(kKeepAliveUnit / 100);
    data.submission_size = 0x66;
    data.completion_size = 0x44;
    data.max_commands.set(kMaxEntries);
    data.sgls.set(Data::kSgls);
    put_text(data.subsystem_nqn, subsystem.nqn(), '\0');
    data.command_capsule.set(kSubmissionBytes / kCapsuleUnit);
    data.response_capsule.set(kCompletionBytes / kCapsuleUnit);
    data.max_descriptors = 1;
    data.power[0].maximum_power.set(2500);
    if (subsystem.discovery()) {
        data.controller_type = Data::kTypeDiscovery;
        data.optional_events.set(nvme::event::kEnableDiscovery);
        data.log_attributes = Data::kLogExtended;
        data.discovery_type = 1;
    } else {
        of_nvm_subsystem(data, subsystem);
    }
    return data;
}

nvme::IdentifyNamespace identify_namespace(const Namespace& space, const Path& path) {
    using Data = nvme::IdentifyNamespace;
    Data data{};
    data.size.set(space.blocks());
    data.capacity.set(space.blocks());
    using nvme::AnaState;
    const bool reachable = path.state() != AnaState::Inaccessible && path.state() != AnaState::PersistentLoss;
    data.used.set(reachable ? space.blocks() : 0);
    data.features = Data::kPreferredSizes;
    data.multi_path = Data::kShared;
    data.ana_group.set(kAnaGroup);
    data.reservations = reservation_abilities(space);
    data.deallocation = Data::kReadsZeroes;
    data.capacity_bytes[0].set(space.store().size());
    // Whole pages: smaller pieces cost more, and only whole ones are given back. 0-based.
    const auto page = static_cast<std::uint16_t>(std::max(kPage / space.block_size(), 1U) - 1U);
    data.preferred_write.set(page);
    data.preferred_write_alignment.set(page);
    data.preferred_deallocate.set(page);
    data.preferred_deallocate_alignment.set(page);
    data.optimal_write.set(page);
    data.copy_range_blocks.set(kCopyRangeBlocks);
    data.copy_blocks.set(kCopyBlocks);
    data.copy_ranges = kCopyRanges - 1;
    data.attributes = space.writable() ? 0 : Data::kWriteProtected;
    data.nguid = space.nguid();
    data.lba_formats[0].data_shift = static_cast<std::uint8_t>(space.block_shift());
    return data;
}

nvme::IdentifyIndependentNamespace identify_independent(const Namespace& space) {
    using Data = nvme::IdentifyIndependentNamespace;
    Data data{};
    data.features = space.store().volatile_cache() ? 0 : Data::kNoWriteCache;
    data.multi_path = nvme::IdentifyNamespace::kShared;
    data.ana_group.set(kAnaGroup);
    data.reservations = reservation_abilities(space);
    data.attributes = space.writable() ? 0 : nvme::IdentifyNamespace::kWriteProtected;
    data.status = Data::kReady;
    return data;
}

}  // namespace ernic::nvmeof
