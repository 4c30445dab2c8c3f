// SPDX-License-Identifier: MIT
#pragma once

#include <fcntl.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "base/result.hpp"
#include "metrics/report.hpp"

namespace ernic::app {

/// Writes every number of the registry as JSON, so that a reader sees the old file or the new one, never half
/// of one, and in steps, so that megabytes of text do not hold up the device thread:
///
///     text read from the registry   ->   dir/.NAME.PID.new created, written   ->   renamed over dir/NAME
///        some KiB a step                        64 KiB a step
///
/// Owns: the directory's descriptor (the place stays the same whatever happens to the path). Thread: device.
class StatsFile {
  public:
    /// How the new file is opened; the sandbox allows just this.
    static constexpr int kOpenFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;

    /// Prepares writing to `path` and writes it once, so that a wrong path is told at start-up. `registry`
    /// must outlive it. Fails: Io or InvalidArgument with one sentence; an existing file is then as it was.
    static Result<StatsFile> open(const std::string& path, const metrics::Registry& registry);

    /// Writes now, all steps in a row, whatever has been under way. Fails: Io with one sentence.
    [[nodiscard]] Status write();

    enum class Progress : std::uint8_t {
        More,       ///< call again soon
        Written,    ///< the new file is in its place
        Unchanged,  ///< no number differs from the last write, so the file stays
    };
    /// The next step of a rewrite, at most a few hundred microseconds; begins one when none is under way.
    /// Fails: as write(); the rewrite is then over.
    [[nodiscard]] Result<Progress> step();

    /// The directory as an absolute path.
    [[nodiscard]] const std::string& directory() const { return directory_; }

  private:
    /// Text of a whole file in pieces of one write each.
    using Text = std::vector<std::string>;

    /// A rewrite under way.
    struct Rewrite {
        explicit Rewrite(const metrics::Registry& registry) : report(registry) {}
        metrics::Report report;
        Text text;
        bool complete = false;
        bool changed = false;
        UniqueFd fd;
        std::size_t written = 0;
    };

    StatsFile(std::string directory, std::string name, UniqueFd fd, const metrics::Registry& registry);
    /// Reads the next part of the report.
    void read(Rewrite& rewrite);
    /// Writes the next piece, or puts the new file into its place. Fails: false with errno set.
    [[nodiscard]] bool put(Rewrite& rewrite);
    [[nodiscard]] bool create(Rewrite& rewrite) const;
    [[nodiscard]] Error give_up(int error);

    std::string directory_;
    std::string name_;
    std::string new_name_;
    UniqueFd directory_fd_;
    const metrics::Registry* registry_;
    /// What the file holds; pieces a rewrite under way has compared are empty.
    Text last_;
    std::optional<Rewrite> rewrite_;
};

}  // namespace ernic::app
