// SPDX-License-Identifier: MIT
#include "app/stats_file.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <span>

#include "base/bytes.hpp"

namespace ernic::app {
namespace {

Error failed(const std::string& path, int error) {
    return {Errc::Io, fmt::format("cannot write statistics file '{}': {}", path, std::strerror(error))};
}

/// Bytes of one write: some tens of microseconds of copying into the page cache.
constexpr std::size_t kPiece = 64 * 1024;

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

void StatsFile::read(Rewrite& rewrite) {
    if (rewrite.text.empty() || rewrite.text.back().size() >= kPiece) {
        rewrite.text.emplace_back();
        rewrite.text.back().reserve(kPiece + kPiece / 4);
    }
    std::string& piece = rewrite.text.back();
    rewrite.complete = !rewrite.report.step(piece);
    if (rewrite.complete || piece.size() >= kPiece) {
        // Equal text is cut at equal places. Each old piece goes when it has been looked at, because giving
        // megabytes back at once takes a millisecond.
        const std::size_t index = rewrite.text.size() - 1;
        rewrite.changed = rewrite.changed || index >= last_.size() || piece != last_[index];
        if (index < last_.size()) {
            std::string().swap(last_[index]);
        }
    }
}

bool StatsFile::create(Rewrite& rewrite) const {
    // Left behind by a killed process with the same number, or planted: either way not ours to write through.
    unlinkat(directory_fd_.get(), new_name_.c_str(), 0);
    constexpr mode_t kEverybodyMayRead = 0644;
    rewrite.fd = UniqueFd(openat(directory_fd_.get(), new_name_.c_str(), kOpenFlags, kEverybodyMayRead));
    return rewrite.fd.valid();
}

bool StatsFile::put(Rewrite& rewrite) {
    if (!rewrite.fd && !create(rewrite)) {
        return false;
    }
    if (rewrite.written < rewrite.text.size()) {
        return write_all(rewrite.fd.get(), std::as_bytes(std::span(rewrite.text[rewrite.written++])));
    }
    return renameat(directory_fd_.get(), new_name_.c_str(), directory_fd_.get(), name_.c_str()) == 0;
}

Error StatsFile::give_up(int error) {
    if (rewrite_->fd) {
        unlinkat(directory_fd_.get(), new_name_.c_str(), 0);
    }
    rewrite_.reset();
    last_.clear();  // no longer whole, and the next rewrite must not find itself unchanged
    return failed(directory_ + "/" + name_, error);
}

Result<StatsFile::Progress> StatsFile::step() {
    if (!rewrite_) {
        rewrite_.emplace(*registry_);
    }
    if (!rewrite_->complete) {
        read(*rewrite_);
        return Progress::More;
    }
    if (!rewrite_->changed) {
        last_ = std::move(rewrite_->text);
        rewrite_.reset();
        return Progress::Unchanged;
    }
    const bool was_last = rewrite_->written == rewrite_->text.size();
    if (!put(*rewrite_)) {
        return give_up(errno);
    }
    if (!was_last) {
        return Progress::More;
    }
    last_ = std::move(rewrite_->text);
    rewrite_.reset();
    return Progress::Written;
}

Status StatsFile::write() {
    rewrite_.reset();
    last_.clear();  // written in any case
    for (;;) {
        const Result<Progress> progress = step();
        if (!progress) {
            return progress.error();
        }
        if (progress.value() != Progress::More) {
            return Done{};
        }
    }
}

}  // namespace ernic::app
