// SPDX-License-Identifier: MIT
#include "app/link_sources.hpp"

#include <algorithm>

namespace ernic::app {

void LinkSources::set(std::string_view source, bool up) {
    const bool was_up = this->up();
    const auto known = std::find(down_.begin(), down_.end(), source);
    if (up && known != down_.end()) {
        down_.erase(known);
    } else if (!up && known == down_.end()) {
        down_.emplace_back(source);
    }
    if (this->up() != was_up) {
        set_link_(this->up());
    }
}

}  // namespace ernic::app
