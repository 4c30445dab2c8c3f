// SPDX-License-Identifier: MIT
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/fd.hpp"

namespace ernic::fuzz {

/// A folder of this process for the socket, gone at the end.
class SocketFolder {
  public:
    SocketFolder()
        : folder_(std::filesystem::temp_directory_path() / ("ernic-fuzz-" + std::to_string(::getpid()))) {
        std::filesystem::create_directories(folder_);
    }
    ~SocketFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }
    SocketFolder(const SocketFolder&) = delete;
    SocketFolder& operator=(const SocketFolder&) = delete;
    [[nodiscard]] std::string socket() const { return (folder_ / "s").string(); }

  private:
    std::filesystem::path folder_;
};

/// The same path in every input.
inline const std::string& socket_path() {
    static const SocketFolder folder;
    static const std::string path = folder.socket();
    return path;
}

/// The lowest free descriptor number: it grows when descriptors leak.
inline int free_descriptor() {
    const UniqueFd probe(::dup(STDERR_FILENO));
    return probe.get();
}

}  // namespace ernic::fuzz
