// SPDX-License-Identifier: MIT
#include "nvmeof/namespace.hpp"

#include <sys/mman.h>

#include <bit>
#include <cstring>

#include "nvmeof/file_store.hpp"
#include "nvmeof/ram_store.hpp"

namespace ernic::nvmeof {
namespace {

/// FNV-1a, then mixed so that similar names end far from each other.
std::uint64_t mixed_hash(const std::string& text, std::uint64_t seed) {
    std::uint64_t hash = 0xcbf29ce484222325U ^ seed;
    for (const char c : text) {
        hash = (hash ^ static_cast<std::uint8_t>(c)) * 0x100000001b3U;
    }
    hash = (hash ^ hash >> 30U) * 0xbf58476d1ce4e5b9U;
    hash = (hash ^ hash >> 27U) * 0x94d049bb133111ebU;
    return hash ^ hash >> 31U;
}

std::string identity_of(const NamespaceConfig& config, const std::string& nqn) {
    return config.generation == 0 ? nqn : nqn + '#' + std::to_string(config.generation);
}

}  // namespace

std::array<std::byte, 16> name_digest(const std::string& text, std::uint32_t salt) {
    std::array<std::byte, 16> digest{};
    for (std::size_t half = 0; half < 2; ++half) {
        const le64 word(mixed_hash(text, std::uint64_t{salt} << 8U | half));
        std::memcpy(digest.data() + 8 * half, &word, sizeof word);
    }
    return digest;
}

Namespace::Namespace(const NamespaceConfig& config, const std::string& nqn, std::unique_ptr<Store> store)
    : config_(config),
      block_shift_(static_cast<unsigned>(std::countr_zero(config.block_size))),
      blocks_(store->size() >> block_shift_),
      store_(std::move(store)),
      memory_(store_->memory()),
      uuid_(name_digest(identity_of(config, nqn), 2 * config.id)),
      nguid_(name_digest(identity_of(config, nqn), 2 * config.id + 1)) {
    // Version 8 (made by a rule of one's own), variant 1 (RFC 9562, 5.8).
    uuid_[6] = (uuid_[6] & std::byte{0x0f}) | std::byte{0x80};
    uuid_[8] = (uuid_[8] & std::byte{0x3f}) | std::byte{0x80};
    if (store_->keeps()) {
        (void)reservations.load(store_->kept());
    }
}

Status Namespace::resize(std::uint64_t bytes) {
    if (Status resized = store_->resize(bytes); !resized) {
        return resized;
    }
    blocks_ = bytes >> block_shift_;
    return Done{};
}

void log_store(const NamespaceConfig& config, const FileStore& store, Runtime& runtime) {
    runtime.log.info("namespace {}: {} bytes in '{}', {}, by {}", config.id, store.size(), config.file,
                     store.direct() ? "past the page cache" : "through the page cache",
                     runtime.files().name());
}

Result<std::unique_ptr<Store>> make_store(const NamespaceConfig& config, Runtime& runtime) {
    if (!config.file.empty()) {
        auto file = FileStore::open(config, runtime.files());
        if (!file) {
            return file.error();
        }
        log_store(config, **file, runtime);
        return std::unique_ptr<Store>(std::move(*file));
    }
    auto store = RamStore::make(config.size, runtime.work);
    if (!store) {
        return store.error();
    }
    if (runtime.has_background()) {
        (*store)->set_unmapper([&worker = runtime.background()](std::byte* memory, std::uint64_t size) {
            worker.run([memory, size] { munmap(memory, size); }, {});
        });
    }
    return std::unique_ptr<Store>(std::move(*store));
}

}  // namespace ernic::nvmeof
