// SPDX-License-Identifier: MIT
#pragma once

#include <fcntl.h>

#include <string>

#include "base/fd.hpp"
#include "base/result.hpp"
#include "metrics/registry.hpp"

namespace ernic::app {

/// Writes every number of the registry as JSON, so that a reader sees the old file or the new one, never half
/// of one:
///
///     dir/.NAME.PID.new   created, written, closed   ->   renamed over dir/NAME
///
/// Owns: the directory's descriptor (the place stays the same whatever happens to the path). Thread: device.
class StatsFile {
  public:
    /// How the new file is opened; the sandbox allows just this.
    static constexpr int kOpenFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;

    /// Prepares writing to `path` and writes it once, so that a wrong path is told at start-up. `registry`
    /// must outlive it. Fails: Io or InvalidArgument with one sentence; an existing file is then as it was.
    static Result<StatsFile> open(const std::string& path, const metrics::Registry& registry);

    /// Writes now. Fails: Io with one sentence.
    [[nodiscard]] Status write();

    /// Writes when a number differs from the last write; true when it did. Fails: as write().
    [[nodiscard]] Result<bool> write_if_changed();

    /// The directory as an absolute path.
    [[nodiscard]] const std::string& directory() const { return directory_; }

  private:
    StatsFile(std::string directory, std::string name, UniqueFd fd, const metrics::Registry& registry);
    [[nodiscard]] std::string text() const;
    [[nodiscard]] Status replace(const std::string& text);

    std::string directory_;
    std::string name_;
    std::string new_name_;
    UniqueFd directory_fd_;
    const metrics::Registry* registry_;
    std::string last_;
};

}  // namespace ernic::app
