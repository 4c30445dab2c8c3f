// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace ernic::nvmeof {

/// A hash function of DH-HMAC-CHAP by its number there: 1 SHA-256, 2 SHA-384, 3 SHA-512.
[[nodiscard]] bool known_hash(std::uint8_t hash);
/// Its bytes. Precondition: known_hash().
[[nodiscard]] std::size_t hash_bytes(std::uint8_t hash);

using Digest = std::vector<std::byte>;

/// HMAC of all `parts` in a row. Thread: any. Fails: an empty digest when the library refuses.
[[nodiscard]] Digest hmac(std::uint8_t hash, Bytes key, std::initializer_list<Bytes> parts);

/// Of `data`. Thread: any. Fails: an empty digest when the library refuses.
[[nodiscard]] Digest digest(std::uint8_t hash, Bytes data);

/// The key in a secret's text (`DHHC-1:<hash>:<base64 of key and CRC>:`, as `nvme gen-dhchap-key` prints it),
/// transformed for its owner: what responses are made with. Thread: any. Fails: nullopt when it is no secret.
[[nodiscard]] std::optional<Digest> secret_key(std::string_view text, std::string_view owner_nqn);

/// Keys by host.
class DhChapSecrets {
  public:
    struct Keys {
        /// Of the host, and, if the host is to be able to authenticate us, of the subsystem.
        Digest host;
        Digest subsystem;
    };

    /// Reads a file of lines `HOST-NQN SECRET [SUBSYSTEM-SECRET]`, of which `*` names all other hosts; `#`
    /// begins a comment. Fails: one sentence that names the file and the line, never a secret.
    static Result<DhChapSecrets> read(const std::string& path, std::string_view subsystem_nqn);

    /// Fails: nullopt when this host has no secret.
    [[nodiscard]] std::optional<Keys> of(std::string_view host_nqn) const;

  private:
    struct Line {
        std::string host;
        std::string secret;
        Digest subsystem;
    };
    std::vector<Line> lines_;
};

}  // namespace ernic::nvmeof
