// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <nlohmann/json_fwd.hpp>
#include <string>

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

/// Every number of the process, and structured sections (per-QP tables). Modules own the numbers, the
/// registry only knows where they are; it must not outlive them being read. Thread: the device thread.
class Registry {
  public:
    void add(Description description, const Counter& counter) {
        numbers_.push_back({std::move(description), [&counter] { return counter.value(); }});
    }
    void add(Description description, std::function<std::uint64_t()> read) {
        numbers_.push_back({std::move(description), std::move(read)});
    }
    /// A nested JSON value under `name`, made when asked for.
    void add_section(std::string name, std::function<nlohmann::json()> make) {
        sections_.push_back({std::move(name), std::move(make)});
    }

    struct Number {
        Description description;
        std::function<std::uint64_t()> read;
    };
    [[nodiscard]] const std::list<Number>& numbers() const { return numbers_; }

    /// All numbers as nested objects (dots become levels) plus all sections.
    [[nodiscard]] nlohmann::json to_json() const;

  private:
    struct Section {
        std::string name;
        std::function<nlohmann::json()> make;
    };
    std::list<Number> numbers_;
    std::list<Section> sections_;
};

}  // namespace ernic::metrics
