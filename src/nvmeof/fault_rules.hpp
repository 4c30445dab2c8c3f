// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "nvmeof/config.hpp"
#include "wire/nvme.hpp"

namespace ernic::nvmeof {

/// Commands that fail because the operator wants it so. Thread: device.
class FaultRules {
  public:
    explicit FaultRules(const std::vector<FaultConfig>& rules);

    [[nodiscard]] bool empty() const { return rules_.empty(); }
    /// The status, with its Do Not Retry bit, that the I/O command is to end with; nullopt: let it live. The
    /// first rule that fires wins; each counts all commands that match it.
    [[nodiscard]] std::optional<std::uint16_t> judge(const wire::nvme::SubmissionEntry& entry);

  private:
    struct Rule {
        FaultConfig config;
        std::uint64_t matched = 0;
    };
    std::vector<Rule> rules_;
};

}  // namespace ernic::nvmeof
