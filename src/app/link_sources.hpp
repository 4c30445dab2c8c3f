// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ernic::app {

/// Everybody who has a say in whether the card's link is up, by name: the backend, the TAP, the operator, a
/// fault. The link is up if and only if all of them say so. Thread: device.
class LinkSources {
  public:
    /// `set_link` hears the outcome whenever it has changed. The link starts up.
    explicit LinkSources(std::function<void(bool up)> set_link) : set_link_(std::move(set_link)) {}

    /// What `source` says from now on; one that has never been heard says up.
    void set(std::string_view source, bool up);

    [[nodiscard]] bool up() const { return down_.empty(); }
    /// Those who say down, in the order in which they did.
    [[nodiscard]] const std::vector<std::string>& down() const { return down_; }

  private:
    std::function<void(bool up)> set_link_;
    std::vector<std::string> down_;
};

}  // namespace ernic::app
