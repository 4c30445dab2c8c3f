// SPDX-License-Identifier: MIT
#include "nvmeof/file_store.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace ernic::nvmeof {
namespace {

/// What keep() writes to, and how much fits into one block of ext4 beside other attributes.
constexpr const char* kAttribute = "user.rocm_ernic.namespace";
constexpr std::size_t kMaxKept = 3500;

Error failed(const NamespaceConfig& config, const char* what, int error) {
    return {Errc::Io, fmt::format("namespace {}: cannot {} '{}' ({})", config.id, what, config.file,
                                  std::strerror(error))};
}

Error unfit(const NamespaceConfig& config, const std::string& why) {
    return {Errc::InvalidArgument, fmt::format("namespace {}: '{}' {}", config.id, config.file, why)};
}

/// Keeps others out who ask, among them another of our servers.
Status lock(const NamespaceConfig& config, int fd) {
    struct flock whole {};
    whole.l_type = config.read_only ? F_RDLCK : F_WRLCK;
    whole.l_whence = SEEK_SET;
    if (fcntl(fd, F_OFD_SETLK, &whole) == 0) {
        return Done{};
    }
    return errno == EAGAIN || errno == EACCES ? unfit(config, "is in use by another namespace or program")
                                              : failed(config, "lock", errno);
}

/// Brings the file to its size, if that is allowed; returns the bytes of the namespace.
Result<std::uint64_t> fit(const NamespaceConfig& config, int fd, bool may_resize) {
    const off_t end = lseek(fd, 0, SEEK_END);
    if (end < 0) {
        return failed(config, "measure", errno);
    }
    auto present = static_cast<std::uint64_t>(end);
    const std::uint64_t wanted = config.size;
    if (wanted != 0 && wanted != present && may_resize) {
        if (ftruncate(fd, static_cast<off_t>(wanted)) != 0) {
            return failed(config, "resize", errno);
        }
        present = wanted;
    }
    const std::uint64_t size = wanted != 0 ? wanted : present;
    if (size > present) {
        return unfit(config,
                     fmt::format("has {} bytes, too few for size={} (make it larger first; at the start of "
                                 "the server 'truncate' does)",
                                 present, size));
    }
    if (size == 0 || size % config.block_size != 0) {
        return unfit(config,
                     fmt::format("has {} bytes, no multiple of its blocks of {}", size, config.block_size));
    }
    return size;
}

/// Switches the page cache off for `fd` and tries whether blocks of this size can be read so.
bool go_direct(int fd, std::uint32_t block_size, std::uint64_t size) {
    const int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_DIRECT) != 0) {
        return false;
    }
    constexpr std::size_t kAlignment = 4096;
    alignas(kAlignment) std::array<std::byte, kAlignment> block;
    // The last block is the least aligned one.
    const auto last = static_cast<off_t>(size - block_size);
    const off_t odd = size > block_size ? static_cast<off_t>(block_size) : 0;
    if (pread(fd, block.data(), block_size, last) == static_cast<ssize_t>(block_size) &&
        pread(fd, block.data(), block_size, odd) == static_cast<ssize_t>(block_size)) {
        return true;
    }
    (void)fcntl(fd, F_SETFL, flags);
    return false;
}

}  // namespace

Result<std::unique_ptr<FileStore>> FileStore::open(const NamespaceConfig& config, FileEngine& engine) {
    const int access = (config.read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NOCTTY;
    UniqueFd fd(::open(config.file.c_str(), access));
    bool made = false;
    if (!fd && errno == ENOENT && config.size != 0 && !config.read_only) {
        // O_EXCL: a file that has appeared meanwhile is not new, and must not be resized.
        constexpr mode_t kOwnerOnly = 0600;
        fd.reset(::open(config.file.c_str(), access | O_CREAT | O_EXCL, kOwnerOnly));
        made = fd.valid();
    }
    if (!fd) {
        return failed(config, "open", errno);
    }
    return adopt(config, std::move(fd), made, engine);
}

Result<std::unique_ptr<FileStore>> FileStore::adopt(const NamespaceConfig& config, UniqueFd fd, bool made,
                                                    FileEngine& engine) {
    struct stat info {};
    if (fstat(fd.get(), &info) != 0) {
        return failed(config, "look at", errno);
    }
    if (!S_ISREG(info.st_mode) && !S_ISBLK(info.st_mode)) {
        return unfit(config, "is neither a file nor a block device");
    }
    const int flags = fcntl(fd.get(), F_GETFL);
    const int access = flags & O_ACCMODE;
    if (flags < 0 || access == O_WRONLY || (access == O_RDONLY && !config.read_only)) {
        return unfit(config,
                     config.read_only ? "is not open for reading" : "is not open for reading and writing");
    }
    // Blocks must go where they are meant to (O_APPEND), and direct access is our own choice.
    if (fcntl(fd.get(), F_SETFL, access) != 0) {
        return failed(config, "use", errno);
    }
    if (Status locked = lock(config, fd.get()); !locked) {
        return locked.error();
    }
    auto size = fit(config, fd.get(), S_ISREG(info.st_mode) && (made || config.truncate));
    if (!size) {
        return size.error();
    }
    const bool direct = go_direct(fd.get(), config.block_size, *size);
    return std::unique_ptr<FileStore>(new FileStore(std::move(fd), *size, config.read_only, direct, engine));
}

FileStore::FileStore(UniqueFd fd, std::uint64_t size, bool read_only, bool direct, FileEngine& engine)
    : fd_(std::move(fd)),
      size_(size),
      read_only_(read_only),
      direct_(direct),
      keeps_(!read_only && (fgetxattr(fd_.get(), kAttribute, nullptr, 0) >= 0 || errno == ENODATA)),
      engine_(engine) {
}

FileStore::Identity FileStore::identity_of(int fd) {
    struct stat info {};
    if (fstat(fd, &info) != 0) {
        return {};
    }
    // A block device is the same under all its names.
    return S_ISBLK(info.st_mode) ? Identity{0, info.st_rdev} : Identity{info.st_dev, info.st_ino};
}

std::vector<std::byte> FileStore::kept() const {
    std::vector<std::byte> text(kMaxKept);
    const ssize_t size = fgetxattr(fd_.get(), kAttribute, text.data(), text.size());
    text.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
    return text;
}

bool FileStore::keep(Bytes text) {
    return text.size() <= kMaxKept && fsetxattr(fd_.get(), kAttribute, text.data(), text.size(), 0) == 0;
}

Status FileStore::resize(std::uint64_t size) {
    const off_t end = lseek(fd_.get(), 0, SEEK_END);
    if (end < 0 || size > static_cast<std::uint64_t>(end)) {
        return Error{Errc::OutOfRange, fmt::format("the file has {} bytes: make it larger first", end)};
    }
    size_ = size;
    return Done{};
}

}  // namespace ernic::nvmeof
