// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace ernic::log {

/// What each level is for is defined in docs/usage.md: error = the operator must act, warn = somebody
/// misbehaved or something was lost, info = rare life-cycle steps, debug = for developers. Nothing per packet
/// or WQE above debug.
enum class Level : std::uint8_t { None, Error, Warn, Info, Debug };

/// Where lines go. Built once in app/ and shared by every Logger made from it.
class Sink {
  public:
    virtual ~Sink() = default;
    virtual void write(Level level, std::string_view component, std::string_view text) = 0;
    [[nodiscard]] Level level() const { return level_; }
    void set_level(Level level) { level_ = level; }

  private:
    Level level_ = Level::Info;
};

/// A sink on standard error (empty path) or appending to a file. Fails: Io when the file cannot be opened.
Result<std::shared_ptr<Sink>> open_sink(const std::string& path);

/// A sink that drops everything, for tests.
std::shared_ptr<Sink> null_sink();

/// Remembers when a limited line was last printed and how many were swallowed since.
struct Limiter {
    Nanoseconds last = 0;
    std::uint64_t hidden = 0;
};

/// A component's way to speak: cheap to copy. Formatting happens only when the level is on.
class Logger {
  public:
    Logger(std::shared_ptr<Sink> sink, std::string component)
        : sink_(std::move(sink)), component_(std::move(component)) {}

    template <typename... Args>
    void error(fmt::format_string<Args...> format, Args&&... args) const {
        write(Level::Error, format, std::forward<Args>(args)...);
    }
    template <typename... Args>
    void warn(fmt::format_string<Args...> format, Args&&... args) const {
        write(Level::Warn, format, std::forward<Args>(args)...);
    }
    template <typename... Args>
    void info(fmt::format_string<Args...> format, Args&&... args) const {
        write(Level::Info, format, std::forward<Args>(args)...);
    }
    template <typename... Args>
    void debug(fmt::format_string<Args...> format, Args&&... args) const {
        write(Level::Debug, format, std::forward<Args>(args)...);
    }

    /// At most once a second per limiter; the next line says how many were hidden.
    template <typename... Args>
    void error_limited(Limiter& limiter, fmt::format_string<Args...> format, Args&&... args) const {
        write_limited(Level::Error, limiter, format, std::forward<Args>(args)...);
    }
    template <typename... Args>
    void warn_limited(Limiter& limiter, fmt::format_string<Args...> format, Args&&... args) const {
        write_limited(Level::Warn, limiter, format, std::forward<Args>(args)...);
    }
    template <typename... Args>
    void info_limited(Limiter& limiter, fmt::format_string<Args...> format, Args&&... args) const {
        write_limited(Level::Info, limiter, format, std::forward<Args>(args)...);
    }

    /// The same sink under another component name.
    [[nodiscard]] Logger named(std::string component) const { return {sink_, std::move(component)}; }

    [[nodiscard]] bool on(Level level) const { return level <= sink_->level(); }

  private:
    template <typename... Args>
    void write(Level level, fmt::format_string<Args...> format, Args&&... args) const {
        if (on(level)) {
            sink_->write(level, component_, fmt::format(format, std::forward<Args>(args)...));
        }
    }

    template <typename... Args>
    void write_limited(Level level, Limiter& limiter, fmt::format_string<Args...> format,
                       Args&&... args) const {
        if (!on(level)) {
            return;
        }
        const Nanoseconds now = SystemClock().now();
        if (limiter.last != 0 && now - limiter.last < 1'000'000'000U) {
            ++limiter.hidden;
            return;
        }
        std::string text = fmt::format(format, std::forward<Args>(args)...);
        if (limiter.hidden != 0) {
            text += fmt::format(" ({} similar lines hidden)", limiter.hidden);
        }
        limiter = {now, 0};
        sink_->write(level, component_, text);
    }

    std::shared_ptr<Sink> sink_;
    std::string component_;
};

}  // namespace ernic::log
