// SPDX-License-Identifier: MIT
#pragma once

#include <openssl/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"

/// How nodes prove that they have the same key, and how they recognise each other's frames (HMAC-SHA-256,
/// HKDF; docs/mesh-protocol.md says why). The only code of the mesh that knows of OpenSSL.
namespace ernic::mesh {

inline constexpr std::size_t kTagSize = 16;
inline constexpr std::size_t kDigestSize = 32;
using Digest = std::array<std::byte, kDigestSize>;
using Tag = std::array<std::byte, kTagSize>;

/// The secret of a mesh. Thread: any.
class Key {
  public:
    /// Reads a file; what stands before the first line end counts. Fails: one sentence (not readable, too
    /// short, readable by others).
    static Result<Key> load(const std::string& path);
    static Key of(Bytes secret) { return Key({secret.begin(), secret.end()}); }
    [[nodiscard]] Bytes bytes() const { return secret_; }

  private:
    explicit Key(std::vector<std::byte> secret) : secret_(std::move(secret)) {}
    std::vector<std::byte> secret_;
};

/// Makes tags for what goes one way, or checks them at the other end. Both count the frames, so that none can
/// be left out, repeated or moved. Thread: one.
class Seal {
  public:
    explicit Seal(const Digest& key);
    ~Seal();
    Seal(const Seal&) = delete;
    Seal& operator=(const Seal&) = delete;

    /// The tag of the next frame's prefix and head, which are `head`; then of its body, when it has one.
    Tag head(Bytes head);
    Tag body(Bytes body);

  private:
    Tag tag(std::uint8_t part, Bytes bytes);

    EVP_MAC_CTX* context_ = nullptr;
    std::uint64_t count_ = 0;
};

/// What two nodes that have exchanged their Hellos derive from the key and these.
struct SessionKeys {
    Digest dialer_proof;
    Digest acceptor_proof;
    Digest from_dialer;
    Digest from_acceptor;
};
SessionKeys derive(const Key& key, Bytes dialer_hello, Bytes acceptor_hello);

/// Compares without saying where they differ.
[[nodiscard]] bool same(Bytes a, Bytes b);

/// Loads what the library loads at first use, which must not happen in a sandbox.
void warm_up();

/// Fills `out` with unpredictable bytes.
void fill_random(MutableBytes out);

}  // namespace ernic::mesh
