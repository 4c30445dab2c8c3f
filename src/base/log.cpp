// SPDX-License-Identifier: MIT
#include "base/log.hpp"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace ernic::log {
namespace {

class SpdlogSink final : public Sink {
  public:
    explicit SpdlogSink(std::shared_ptr<spdlog::logger> logger) : logger_(std::move(logger)) {
        logger_->set_level(spdlog::level::trace);
        logger_->set_pattern("%Y-%m-%dT%H:%M:%S.%f %^%l%$ %v");
        logger_->flush_on(spdlog::level::trace);
    }

    void write(Level level, std::string_view component, std::string_view text) override {
        logger_->log(to_spdlog(level), "{}: {}", component, text);
    }

  private:
    static spdlog::level::level_enum to_spdlog(Level level) {
        switch (level) {
            case Level::None:
                return spdlog::level::off;
            case Level::Error:
                return spdlog::level::err;
            case Level::Warn:
                return spdlog::level::warn;
            case Level::Info:
                return spdlog::level::info;
            case Level::Debug:
                return spdlog::level::debug;
        }
        return spdlog::level::off;
    }

    std::shared_ptr<spdlog::logger> logger_;
};

class NullSink final : public Sink {
  public:
    NullSink() { set_level(Level::None); }
    void write(Level, std::string_view, std::string_view) override {}
};

}  // namespace

Result<std::shared_ptr<Sink>> open_sink(const std::string& path) {
    try {
        spdlog::sink_ptr target;
        if (path.empty()) {
            target = std::make_shared<spdlog::sinks::stderr_color_sink_st>();
        } else {
            target = std::make_shared<spdlog::sinks::basic_file_sink_st>(path);
        }
        auto logger = std::make_shared<spdlog::logger>("rocm-ernic", std::move(target));
        return std::shared_ptr<Sink>(std::make_shared<SpdlogSink>(std::move(logger)));
    } catch (const spdlog::spdlog_ex& problem) {
        return Error{Errc::Io, fmt::format("cannot open log file '{}': {}", path, problem.what())};
    }
}

std::shared_ptr<Sink> null_sink() {
    return std::make_shared<NullSink>();
}

}  // namespace ernic::log
