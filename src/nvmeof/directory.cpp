// SPDX-License-Identifier: MIT
#include "nvmeof/directory.hpp"

#include <algorithm>

#include "nvmeof/target.hpp"

namespace ernic::nvmeof {

void Directory::add(Target& target) {
    targets_.push_back(&target);
    changed();
}

void Directory::remove(Target& target) {
    targets_.erase(std::remove(targets_.begin(), targets_.end(), &target), targets_.end());
    changed();
}

void Directory::changed() {
    ++generation_;
    for (const Target* target : targets_) {
        for (const auto& controller : target->discovery().controllers()) {
            controller->events.raise(AsyncEvents::Kind::Discovery);
        }
    }
}

}  // namespace ernic::nvmeof
