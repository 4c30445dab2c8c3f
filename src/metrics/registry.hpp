// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>

namespace ernic::metrics {

/// A monotonically growing number with one writing thread and any number of readers.
class Counter {
  public:
    void add(std::uint64_t by = 1) {
        // One writer: a plain load and store is enough and needs no locked instruction.
        value_.store(value_.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
    }
    [[nodiscard]] std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

  private:
    std::atomic<std::uint64_t> value_{0};
};

/// One registered number: its dotted name (`vfio_user.messages`), its unit and what a high value means.
struct Description {
    std::string name;
    std::string unit;
    std::string help;
};

class Row;

/// Adds the fields of the next object of a list to `row`, or nothing to skip one. Returns false when there is
/// nothing behind it. A few microseconds at most. Objects may vanish between two calls.
using RowReader = std::function<bool(Row& row)>;

/// Every number of the process, structured sections, and lists (per-QP tables). Modules own the numbers, the
/// registry only knows where they are; it must not outlive them being read. Thread: the device thread.
class Registry {
  public:
    void add(Description description, const Counter& counter) {
        numbers_.push_back({std::move(description), [&counter] { return counter.value(); }});
    }
    void add(Description description, std::function<std::uint64_t()> read) {
        numbers_.push_back({std::move(description), std::move(read)});
    }
    /// A small nested JSON value under `name`, made when asked for.
    void add_section(std::string name, std::function<nlohmann::json()> make) {
        sections_.push_back({std::move(name), std::move(make)});
    }
    /// A list of flat objects under `name`, of any length: `open` begins a reading, which gets one row a
    /// call.
    void add_list(std::string name, std::function<RowReader()> open) {
        lists_.push_back({std::move(name), std::move(open)});
    }

    struct Number {
        Description description;
        std::function<std::uint64_t()> read;
    };
    struct Section {
        std::string name;
        std::function<nlohmann::json()> make;
    };
    struct List {
        std::string name;
        std::function<RowReader()> open;
    };
    [[nodiscard]] const std::list<Number>& numbers() const { return numbers_; }
    [[nodiscard]] const std::list<Section>& sections() const { return sections_; }
    [[nodiscard]] const std::list<List>& lists() const { return lists_; }

    /// All numbers as nested objects (dots become levels) plus all sections and lists, at once. For tests; a
    /// running server makes a Report.
    [[nodiscard]] nlohmann::json to_json() const;

  private:
    std::list<Number> numbers_;
    std::list<Section> sections_;
    std::list<List> lists_;
};

/// Adds counters of one module, whose names begin alike.
class CounterGroup {
  public:
    /// `registry` must outlive this. `prefix` ends with a dot.
    CounterGroup(Registry& registry, std::string prefix) : registry_(registry), prefix_(std::move(prefix)) {}

    void operator()(std::string_view name, std::string_view unit, std::string_view help,
                    const Counter& counter) const {
        registry_.add({prefix_ + std::string(name), std::string(unit), std::string(help)}, counter);
    }

  private:
    Registry& registry_;
    std::string prefix_;
};

}  // namespace ernic::metrics
