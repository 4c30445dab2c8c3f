// SPDX-License-Identifier: MIT
#include "nvmeof/fault_rules.hpp"

#include <algorithm>

namespace ernic::nvmeof {

namespace nvme = wire::nvme;

namespace {

/// Whether the command names blocks in dwords 10 to 12.
bool names_blocks(std::uint8_t opcode) {
    switch (static_cast<nvme::IoOpcode>(opcode)) {
        case nvme::IoOpcode::Read:
        case nvme::IoOpcode::Write:
        case nvme::IoOpcode::Compare:
        case nvme::IoOpcode::WriteZeroes:
        case nvme::IoOpcode::WriteUncorrectable:
        case nvme::IoOpcode::Verify:
            return true;
        default:
            return false;
    }
}

bool matches(const FaultConfig& rule, const nvme::SubmissionEntry& entry) {
    if (rule.opcode && *rule.opcode != entry.opcode) {
        return false;
    }
    if (rule.first_block == 0 && rule.last_block == UINT64_MAX) {
        return true;
    }
    if (!names_blocks(entry.opcode)) {
        return false;
    }
    const std::uint64_t first = entry.quad(10);
    const std::uint64_t more = entry.dword(12) & 0xffffU;
    const std::uint64_t last = first > UINT64_MAX - more ? UINT64_MAX : first + more;
    return first <= rule.last_block && last >= rule.first_block;
}

}  // namespace

FaultRules::FaultRules(const std::vector<FaultConfig>& rules) {
    for (const FaultConfig& rule : rules) {
        rules_.push_back({rule, 0});
        rules_.back().config.every = std::max<std::uint64_t>(rule.every, 1);
    }
}

std::optional<std::uint16_t> FaultRules::judge(const nvme::SubmissionEntry& entry) {
    std::optional<std::uint16_t> status;
    for (Rule& rule : rules_) {
        if (matches(rule.config, entry) && ++rule.matched % rule.config.every == 0 && !status) {
            status = static_cast<std::uint16_t>(rule.config.status |
                                                (rule.config.do_not_retry ? nvme::kDoNotRetry : 0U));
        }
    }
    return status;
}

}  // namespace ernic::nvmeof
