// SPDX-License-Identifier: MIT
#include "metrics/registry.hpp"

#include <nlohmann/json.hpp>

#include "metrics/report.hpp"

namespace ernic::metrics {

nlohmann::json Registry::to_json() const {
    Report report(*this);
    std::string text;
    while (report.step(text)) {
    }
    return nlohmann::json::parse(text);
}

}  // namespace ernic::metrics
