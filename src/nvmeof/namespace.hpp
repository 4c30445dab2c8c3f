// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "metrics/registry.hpp"
#include "nvmeof/config.hpp"
#include "nvmeof/fused_lock.hpp"
#include "nvmeof/reservations.hpp"
#include "nvmeof/runtime.hpp"
#include "nvmeof/store.hpp"
#include "nvmeof/uncorrectable.hpp"

namespace ernic::nvmeof {

class FileStore;

/// What a namespace has done since the start.
struct NamespaceCounters {
    metrics::Counter reads;
    metrics::Counter writes;
    metrics::Counter read_bytes;
    metrics::Counter written_bytes;
    metrics::Counter media_errors;
};

/// Blocks over a store, and who they say they are. Kept alive by the commands that use it, so that it may be
/// removed at any time. Thread: device.
class Namespace {
  public:
    enum class Protection : std::uint8_t { None = 0, Protected = 1 };

    /// The identifiers are made from `nqn`, the id and the generation: the same after every restart.
    Namespace(const NamespaceConfig& config, const std::string& nqn, std::unique_ptr<Store> store);

    [[nodiscard]] std::uint32_t id() const { return config_.id; }
    [[nodiscard]] const NamespaceConfig& config() const { return config_; }
    [[nodiscard]] unsigned block_shift() const { return block_shift_; }
    [[nodiscard]] std::uint32_t block_size() const { return config_.block_size; }
    [[nodiscard]] std::uint64_t blocks() const { return blocks_; }
    /// True when [first, first + count) are blocks of it.
    [[nodiscard]] bool contains(std::uint64_t first, std::uint64_t count) const {
        return first <= blocks_ && count <= blocks_ - first;
    }
    /// Precondition: `bytes` is a multiple of the block size and not 0. Fails: as Store::resize().
    Status resize(std::uint64_t bytes);
    [[nodiscard]] Store& store() const { return *store_; }
    [[nodiscard]] std::byte* memory() const { return memory_; }
    [[nodiscard]] bool writable() const { return !config_.read_only && protection == Protection::None; }

    [[nodiscard]] const std::array<std::byte, 16>& uuid() const { return uuid_; }
    [[nodiscard]] const std::array<std::byte, 16>& nguid() const { return nguid_; }

    Protection protection = Protection::None;
    NamespaceCounters counters;
    UncorrectableBlocks uncorrectable;
    FusedLock fused;
    Reservations reservations;

  private:
    NamespaceConfig config_;
    unsigned block_shift_;
    std::uint64_t blocks_;
    std::unique_ptr<Store> store_;
    std::byte* memory_;
    std::array<std::byte, 16> uuid_{};
    std::array<std::byte, 16> nguid_{};
};

/// Opens the medium of `config`. Fails: with one sentence that names the file or the size.
Result<std::unique_ptr<Store>> make_store(const NamespaceConfig& config, Runtime& runtime);
/// One line about a namespace in a file, for the log.
void log_store(const NamespaceConfig& config, const FileStore& store, Runtime& runtime);

/// 16 bytes made from `text` and `salt`, different for different ones in all likelihood; no cryptography.
std::array<std::byte, 16> name_digest(const std::string& text, std::uint32_t salt);

}  // namespace ernic::nvmeof
