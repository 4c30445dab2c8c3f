// SPDX-License-Identifier: MIT
#include "metrics/registry.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace ernic::metrics {

nlohmann::json Registry::to_json() const {
    nlohmann::json root = nlohmann::json::object();
    for (const Number& number : numbers_) {
        std::string pointer = "/" + number.description.name;
        std::replace(pointer.begin(), pointer.end(), '.', '/');
        root[nlohmann::json::json_pointer(pointer)] = number.read();
    }
    for (const Section& section : sections_) {
        root[section.name] = section.make();
    }
    return root;
}

}  // namespace ernic::metrics
