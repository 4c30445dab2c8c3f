// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <string_view>

namespace ernic::ctl {

[[nodiscard]] constexpr std::array<std::string_view, 3> completion_shells() {
    return {"bash", "zsh", "fish"};
}

/// The script that teaches `shell` the words of ernicctl. Precondition: `shell` is one of the above.
[[nodiscard]] std::string_view completion_script(std::string_view shell);

}  // namespace ernic::ctl
