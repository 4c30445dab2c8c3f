// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string_view>

#include "wire/nvme_identify.hpp"

namespace ernic::nvmeof {

class Controller;
class Namespace;
class Path;

/// What a controller says of itself (CNS 01h). Thread: device.
wire::nvme::IdentifyController identify_controller(const Controller& controller);
/// What it says of a namespace (CNS 00h and 08h). Thread: device.
wire::nvme::IdentifyNamespace identify_namespace(const Namespace& space, const Path& path);
wire::nvme::IdentifyIndependentNamespace identify_independent(const Namespace& space);

/// Text in a field of fixed size, as much as fits, with `padding` behind it. Thread: any.
template <typename Field>
void put_text(Field& field, std::string_view text, char padding) {
    for (std::size_t i = 0; i < field.size(); ++i) {
        field[i] = i < text.size() ? text[i] : padding;
    }
}

/// Firmware revision that controllers name.
inline constexpr std::string_view kFirmware = "1.0";

}  // namespace ernic::nvmeof
