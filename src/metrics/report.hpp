// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "metrics/registry.hpp"

namespace ernic::metrics {

/// One number of `registry` as it is now. Thread: device. Fails: nullopt when nobody has registered `name`.
[[nodiscard]] std::optional<std::uint64_t> value_of(const Registry& registry, std::string_view name);

/// For people, or all in one line without a line feed.
enum class Style : std::uint8_t { Lines, Compact };

/// One flat object of a list, written as JSON text. A row that nothing is added to is not there.
class Row {
  public:
    /// `first`: no row of the same list comes before it. `out` must outlive the row.
    Row(std::string& out, bool first, Style style = Style::Lines) : out_(out), first_(first), style_(style) {}

    /// Precondition of both: nothing in `key` and `word` needs escaping.
    void add(std::string_view key, std::uint64_t value);
    void add(std::string_view key, std::string_view word);
    /// Ends the object; false when the row is empty.
    bool close();

  private:
    void begin(std::string_view key);
    [[nodiscard]] bool compact() const { return style_ == Style::Compact; }

    std::string& out_;
    bool first_;
    Style style_;
    bool open_ = false;
};

/// One reading of a registry as JSON text, made in steps of some tens of microseconds, so that a list of
/// thousands of rows does not hold up the device thread:
///
///     {  numbers and sections: the first step   |   "list": [ some rows a step ], ..   |   }
///
/// What is read in one step belongs together; between steps rows may come and go. Thread: device.
class Report {
  public:
    /// Only what has a name that begins with `match` is read. `registry` must outlive the report and must not
    /// grow meanwhile.
    explicit Report(const Registry& registry, Style style = Style::Lines, std::string match = {})
        : registry_(&registry), style_(style), match_(std::move(match)), list_(registry.lists().begin()) {}

    /// Appends the next part of the text. Returns false when that was the last one.
    bool step(std::string& out);

  private:
    void add_head(std::string& out);
    void begin_list(std::string& out);
    [[nodiscard]] bool compact() const { return style_ == Style::Compact; }
    [[nodiscard]] bool wanted(std::string_view name) const { return name.starts_with(match_); }
    /// False when the list has ended.
    bool add_rows(std::string& out);

    const Registry* registry_;
    Style style_;
    std::string match_;
    std::list<Registry::List>::const_iterator list_;
    RowReader rows_;
    bool head_done_ = false;
    bool empty_ = true;
    bool first_row_ = true;
};

}  // namespace ernic::metrics
