// SPDX-License-Identifier: MIT
#include "app/stats_file.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/bytes.hpp"

namespace ernic::app {
namespace {

Error failed(const std::string& path, int error) {
    return {Errc::Io, fmt::format("cannot write statistics file '{}': {}", path, std::strerror(error))};
}

/// Writes all of `data`. Fails: false with errno set.
bool write_all(int fd, std::string_view data) {
    while (!data.empty()) {
        const ssize_t written = ::write(fd, data.data(), data.size());
        if (written < 0 && errno != EINTR) {
            return false;
        }
        data.remove_prefix(written < 0 ? 0 : static_cast<std::size_t>(written));
    }
    return true;
}

}  // namespace

StatsFile::StatsFile(std::string directory, std::string name, UniqueFd fd, const metrics::Registry& registry)
    : directory_(std::move(directory)),
      name_(std::move(name)),
      new_name_(fmt::format(".{}.{}.new", name_, getpid())),
      directory_fd_(std::move(fd)),
      registry_(&registry) {
}

Result<StatsFile> StatsFile::open(const std::string& path, const metrics::Registry& registry) {
    // A link is followed once, here: renaming over it would replace the link and leave its target alone.
    std::error_code problem;
    const std::filesystem::path real =
        std::filesystem::weakly_canonical(std::filesystem::absolute(path), problem);
    if (problem) {
        return failed(path, problem.value());
    }
    struct stat info {};
    if (stat(real.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
        // Renaming over /dev/null as root would be a sad surprise.
        return Error{
            Errc::InvalidArgument,
            fmt::format("cannot write statistics file '{}': it exists and is not a regular file", path)};
    }
    const std::string directory = real.parent_path().string();
    UniqueFd fd(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!fd) {
        return failed(path, errno);
    }
    StatsFile file(directory, real.filename().string(), std::move(fd), registry);
    if (Status written = file.write(); !written) {
        return written.error();
    }
    return file;
}

std::string StatsFile::text() const {
    return registry_->to_json().dump(2) + "\n";
}

Status StatsFile::replace(const std::string& text) {
    const std::string path = directory_ + "/" + name_;
    // Left behind by a killed process with the same number, or planted: either way not ours to write through.
    unlinkat(directory_fd_.get(), new_name_.c_str(), 0);
    constexpr mode_t kEverybodyMayRead = 0644;
    UniqueFd fd(openat(directory_fd_.get(), new_name_.c_str(), kOpenFlags, kEverybodyMayRead));
    if (!fd) {
        return failed(path, errno);
    }
    if (!write_all(fd.get(), text) ||
        renameat(directory_fd_.get(), new_name_.c_str(), directory_fd_.get(), name_.c_str()) != 0) {
        const int error = errno;
        unlinkat(directory_fd_.get(), new_name_.c_str(), 0);
        return failed(path, error);
    }
    return Done{};
}

Status StatsFile::write() {
    std::string now = text();
    Status written = replace(now);
    if (written) {
        last_ = std::move(now);
    }
    return written;
}

Result<bool> StatsFile::write_if_changed() {
    std::string now = text();
    if (now == last_) {
        return false;
    }
    if (Status written = replace(now); !written) {
        return written.error();
    }
    last_ = std::move(now);
    return true;
}

}  // namespace ernic::app
