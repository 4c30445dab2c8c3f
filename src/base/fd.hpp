// SPDX-License-Identifier: MIT
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <utility>

#include "base/bytes.hpp"

namespace ernic {

/// Owns one file descriptor and closes it once.
class UniqueFd {
  public:
    UniqueFd() = default;
    explicit UniqueFd(int fd) : fd_(fd) {}
    UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    UniqueFd& operator=(UniqueFd&& other) noexcept {
        if (this != &other) {
            reset(std::exchange(other.fd_, -1));
        }
        return *this;
    }
    UniqueFd(const UniqueFd&) = delete;
    UniqueFd& operator=(const UniqueFd&) = delete;
    ~UniqueFd() { reset(); }

    [[nodiscard]] int get() const { return fd_; }
    [[nodiscard]] bool valid() const { return fd_ >= 0; }
    explicit operator bool() const { return valid(); }

    /// Gives the descriptor up to the caller.
    [[nodiscard]] int release() { return std::exchange(fd_, -1); }

    /// Closes what is held and takes `fd`. close() is not retried on EINTR: Linux has released the number by
    /// then.
    void reset(int fd = -1) {
        if (fd_ >= 0) {
            ::close(fd_);
        }
        fd_ = fd;
    }

  private:
    int fd_ = -1;
};

/// Writes all of `data`, in several calls if need be. `fd` blocks, or is a file. Fails: false with errno set.
inline bool write_all(int fd, Bytes data) {
    while (!data.empty()) {
        const ssize_t written = ::write(fd, data.data(), data.size());
        if (written < 0 && errno != EINTR) {
            return false;
        }
        data = data.subspan(written < 0 ? 0 : static_cast<std::size_t>(written));
    }
    return true;
}

}  // namespace ernic
