// SPDX-License-Identifier: MIT
#include "nvmeof/command_effects.hpp"

namespace ernic::nvmeof {

namespace nvme = wire::nvme;

nvme::EffectsLog command_effects() {
    using Log = nvme::EffectsLog;
    using nvme::AdminOpcode;
    using nvme::IoOpcode;
    Log log{};
    for (const AdminOpcode opcode :
         {AdminOpcode::GetLogPage, AdminOpcode::Identify, AdminOpcode::Abort, AdminOpcode::SetFeatures,
          AdminOpcode::GetFeatures, AdminOpcode::AsyncEvent, AdminOpcode::KeepAlive}) {
        log.admin[static_cast<std::size_t>(opcode)].set(Log::kSupported);
    }
    for (const IoOpcode opcode :
         {IoOpcode::Flush, IoOpcode::Read, IoOpcode::Compare, IoOpcode::Verify, IoOpcode::ReservationRegister,
          IoOpcode::ReservationReport, IoOpcode::ReservationAcquire, IoOpcode::ReservationRelease}) {
        log.io[static_cast<std::size_t>(opcode)].set(Log::kSupported);
    }
    for (const IoOpcode opcode : {IoOpcode::Write, IoOpcode::WriteZeroes, IoOpcode::DatasetManagement,
                                  IoOpcode::WriteUncorrectable, IoOpcode::Copy}) {
        log.io[static_cast<std::size_t>(opcode)].set(Log::kSupported | Log::kChangesContent);
    }
    return log;
}

std::array<le32, 256> feature_effects() {
    using nvme::Feature;
    constexpr std::uint32_t kSupported = 0x01;
    constexpr std::uint32_t kControllerScope = 1U << 21U;
    constexpr std::uint32_t kNamespaceScope = 1U << 20U;
    std::array<le32, 256> log{};
    for (const Feature feature :
         {Feature::Arbitration, Feature::PowerManagement, Feature::TemperatureThreshold,
          Feature::VolatileWriteCache, Feature::NumberOfQueues, Feature::WriteAtomicity, Feature::AsyncEvents,
          Feature::Timestamp, Feature::KeepAliveTimer, Feature::HostBehavior, Feature::HostIdentifier}) {
        log[static_cast<std::size_t>(feature)].set(kSupported | kControllerScope);
    }
    for (const Feature feature : {Feature::ErrorRecovery, Feature::ReservationMask,
                                  Feature::ReservationPersistence, Feature::WriteProtection}) {
        log[static_cast<std::size_t>(feature)].set(kSupported | kNamespaceScope);
    }
    return log;
}

}  // namespace ernic::nvmeof
