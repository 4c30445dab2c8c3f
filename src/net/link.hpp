// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace ernic::net {

/// The link of the guest's card. Several parties have a say in it, and it is up when all of them say so.
/// Thread: device.
class Link {
  public:
    /// Cable: what the port is plugged into (the back end, the TAP interface). Mesh: there is a peer, where
    /// that is asked for. Fault: an injected outage. Operator: a person, by the control socket.
    enum class Source : std::uint8_t { Cable, Mesh, Fault, Operator };

    void set(Source source, bool up) {
        const bool before = this->up();
        says_up_[static_cast<std::size_t>(source)] = up;
        if (this->up() != before) {
            for (const auto& listener : listeners_) {
                listener(!before);
            }
        }
    }

    [[nodiscard]] bool up() const {
        return std::all_of(says_up_.begin(), says_up_.end(), [](bool up) { return up; });
    }
    /// What one of them says.
    [[nodiscard]] bool up(Source source) const { return says_up_[static_cast<std::size_t>(source)]; }

    /// `listener` hears every change from now on. It must live as long as this.
    void on_change(std::function<void(bool up)> listener) { listeners_.push_back(std::move(listener)); }

  private:
    std::array<bool, 4> says_up_ = {true, true, true, true};
    std::vector<std::function<void(bool)>> listeners_;
};

}  // namespace ernic::net
