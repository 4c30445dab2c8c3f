// SPDX-License-Identifier: MIT
#include "nvmeof/discovery_log.hpp"

#include <fmt/format.h>

#include "net/ip_address.hpp"
#include "nvmeof/identify_data.hpp"
#include "nvmeof/limits.hpp"
#include "nvmeof/target.hpp"
#include "wire/nvme_log.hpp"
#include "wire/roce.hpp"

namespace ernic::nvmeof {

namespace nvme = wire::nvme;

namespace {

nvme::DiscoveryEntry entry_of(const Target& target, const net::IpAddress& address, bool discovery,
                              std::uint16_t port_id) {
    using Entry = nvme::DiscoveryEntry;
    Entry entry{};
    entry.transport = Entry::kRdma;
    entry.address_family = address.is_v4() ? Entry::kIpv4 : Entry::kIpv6;
    entry.subsystem_type = discovery ? Entry::kThisDiscovery : Entry::kNvmSubsystem;
    entry.requirements = Entry::kFlowControlMayBeOff;
    entry.port_id.set(port_id);
    entry.controller_id.set(nvme::ConnectData::kAnyController);
    entry.admin_entries.set(kAdminEntries);
    put_text(entry.service, fmt::format("{}", target.config().port), '\0');
    put_text(entry.subsystem_nqn, discovery ? target.discovery().nqn() : target.nvm().nqn(), '\0');
    put_text(entry.address, address.to_string(), '\0');
    entry.queue_pair_type = Entry::kConnected;
    entry.provider_type = Entry::kRoceV2;
    entry.connection_management = Entry::kRdmaCm;
    entry.partition.set(wire::roce::kDefaultPartition);
    return entry;
}

}  // namespace

void discovery_log(const Target& target, LogWindow& log) {
    const Directory& directory = target.directory();
    std::uint64_t entries = target.addresses().size();
    for (const Target* each : directory.targets()) {
        entries += each->addresses().size();
    }
    nvme::DiscoveryHeader header{};
    header.generation.set(directory.generation());
    header.entries.set(entries);
    log.add(bytes_of(header));
    std::uint16_t port_id = 0;
    for (const net::IpAddress& address : target.addresses()) {
        log.add(bytes_of(entry_of(target, address, true, ++port_id)));
    }
    for (const Target* each : directory.targets()) {
        for (const net::IpAddress& address : each->addresses()) {
            log.add(bytes_of(entry_of(*each, address, false, ++port_id)));
        }
    }
}

}  // namespace ernic::nvmeof
