// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/fd.hpp"
#include "base/log.hpp"
#include "base/result.hpp"
#include "nvmeof/config.hpp"
#include "nvmeof/file_engine.hpp"
#include "nvmeof/store.hpp"

namespace ernic::nvmeof {

/// A namespace in a file or block device, past the page cache (O_DIRECT) where the file system can. Nobody
/// else may open it so meanwhile. What has been written is safe from a crash of this process at once, and
/// from one of the machine when it has been flushed (fdatasync).
class FileStore final : public Store {
  public:
    /// Opens, or makes, `config.file` as it says there. `engine` must outlive this. Fails: one sentence that
    /// names the file.
    static Result<std::unique_ptr<FileStore>> open(const NamespaceConfig& config, FileEngine& engine);
    /// The same for a file that somebody else has opened, as `config` wants it (`config.file` is its name in
    /// messages), and, if `made`, has just made. Reads two blocks. Thread: any.
    static Result<std::unique_ptr<FileStore>> adopt(const NamespaceConfig& config, UniqueFd fd, bool made,
                                                    FileEngine& engine);

    [[nodiscard]] std::uint64_t size() const override { return size_; }
    [[nodiscard]] bool volatile_cache() const override { return !read_only_; }
    /// In an extended attribute of the file, where the file system has those.
    [[nodiscard]] bool keeps() const override { return keeps_; }
    [[nodiscard]] std::vector<std::byte> kept() const override;
    bool keep(Bytes text) override;
    /// The file itself is left as it is: it must have become as large before, by other hands.
    Status resize(std::uint64_t size) override;
    bool cancel(StoreOperation& operation) override { return engine_.cancel(operation); }

    [[nodiscard]] int fd() const { return fd_.get(); }
    /// Which file it is, whatever it is called.
    struct Identity {
        std::uint64_t device = 0;
        std::uint64_t inode = 0;
        friend bool operator==(const Identity&, const Identity&) = default;
    };
    [[nodiscard]] static Identity identity_of(int fd);
    [[nodiscard]] bool direct() const { return direct_; }

    /// How ranges become zeroes; what the file system refuses once is not tried again.
    enum class Zeroing : std::uint8_t { ZeroRange, PunchHole, Write };
    [[nodiscard]] Zeroing zeroing(StoreOperation::Kind kind) const {
        return kind == StoreOperation::Kind::Deallocate && zeroing_ == Zeroing::ZeroRange ? Zeroing::PunchHole
                                                                                          : zeroing_;
    }
    /// The file system does not know `refused`.
    void zeroing_refused(Zeroing refused) {
        zeroing_ = refused == Zeroing::ZeroRange ? Zeroing::PunchHole : Zeroing::Write;
    }

  protected:
    void begin(StoreOperation& operation) override { engine_.start(operation); }
    void advance(StoreOperation& operation) override { engine_.start(operation); }

  private:
    FileStore(UniqueFd fd, std::uint64_t size, bool read_only, bool direct, FileEngine& engine);

    UniqueFd fd_;
    std::uint64_t size_;
    bool read_only_;
    bool direct_;
    bool keeps_;
    Zeroing zeroing_ = Zeroing::ZeroRange;
    FileEngine& engine_;
};

}  // namespace ernic::nvmeof
