// SPDX-License-Identifier: MIT
#include "mesh/auth.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/byte_order.hpp"
#include "base/fd.hpp"
#include "mesh/limits.hpp"

namespace ernic::mesh {
namespace {

constexpr std::uint8_t kHeadPart = 1;
constexpr std::uint8_t kBodyPart = 2;

/// The library cannot do HMAC-SHA-256 (a broken installation): going on would mean no protection.
void must(bool worked) {
    if (!worked) {
        std::abort();
    }
}

char* text(const char* constant) {
    // OSSL_PARAM takes non-const strings and does not change them.
    return const_cast<char*>(constant);  // NOLINT(cppcoreguidelines-pro-type-const-cast)
}

void* data(Bytes bytes) {
    return const_cast<std::byte*>(bytes.data());  // NOLINT(cppcoreguidelines-pro-type-const-cast)
}

const unsigned char* chars(Bytes bytes) {
    return reinterpret_cast<const unsigned char*>(bytes.data());
}

/// RFC 5869 with SHA-256.
Digest expand(const Key& key, Bytes salt, std::string_view label) {
    const std::unique_ptr<EVP_KDF, decltype(&EVP_KDF_free)> kdf(EVP_KDF_fetch(nullptr, "HKDF", nullptr),
                                                                &EVP_KDF_free);
    must(kdf != nullptr);
    const std::unique_ptr<EVP_KDF_CTX, decltype(&EVP_KDF_CTX_free)> context(EVP_KDF_CTX_new(kdf.get()),
                                                                            &EVP_KDF_CTX_free);
    must(context != nullptr);
    const std::array<OSSL_PARAM, 5> params = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, text("SHA256"), 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, data(key.bytes()), key.bytes().size()),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, data(salt), salt.size()),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, text(label.data()), label.size()),
        OSSL_PARAM_construct_end()};
    Digest out;
    must(EVP_KDF_derive(context.get(), reinterpret_cast<unsigned char*>(out.data()), out.size(),
                        params.data()) == 1);
    return out;
}

}  // namespace

Result<Key> Key::load(const std::string& path) {
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat info {};
    if (!file || ::fstat(file.get(), &info) != 0) {
        return Error{Errc::Io, fmt::format("cannot read the key file '{}': {}", path, std::strerror(errno))};
    }
    if (S_ISREG(info.st_mode) && (info.st_mode & (S_IRWXO | S_IWGRP)) != 0) {
        return Error{Errc::PermissionDenied,
                     fmt::format("key file '{}' can be read by everybody: run 'chmod 600' on it", path)};
    }
    std::vector<std::byte> secret(kMostKey + 1);
    const ssize_t size = ::read(file.get(), secret.data(), secret.size());
    if (size < 0) {
        return Error{Errc::Io, fmt::format("cannot read the key file '{}': {}", path, std::strerror(errno))};
    }
    secret.resize(static_cast<std::size_t>(size));
    secret.erase(std::find(secret.begin(), secret.end(), std::byte{'\n'}), secret.end());
    if (secret.size() < kLeastKey || secret.size() > kMostKey) {
        return Error{
            Errc::InvalidArgument,
            fmt::format("key file '{}' has {} bytes in its first line: {} to {} make a key ('openssl "
                        "rand -hex 32' prints one)",
                        path, secret.size(), kLeastKey, kMostKey)};
    }
    return Key(std::move(secret));
}

Seal::Seal(const Digest& key) {
    const std::unique_ptr<EVP_MAC, decltype(&EVP_MAC_free)> mac(EVP_MAC_fetch(nullptr, "HMAC", nullptr),
                                                                &EVP_MAC_free);
    must(mac != nullptr);
    context_ = EVP_MAC_CTX_new(mac.get());
    must(context_ != nullptr);
    const std::array<OSSL_PARAM, 2> params = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, text("SHA256"), 0),
        OSSL_PARAM_construct_end()};
    must(EVP_MAC_init(context_, chars(key), key.size(), params.data()) == 1);
}

Seal::~Seal() {
    EVP_MAC_CTX_free(context_);
}

Tag Seal::head(Bytes head) {
    ++count_;
    return tag(kHeadPart, head);
}

Tag Seal::body(Bytes body) {
    return tag(kBodyPart, body);
}

Tag Seal::tag(std::uint8_t part, Bytes bytes) {
    const be64 number(count_);
    std::array<unsigned char, kDigestSize> whole{};
    std::size_t size = 0;
    must(EVP_MAC_init(context_, nullptr, 0, nullptr) == 1 && EVP_MAC_update(context_, &part, 1) == 1 &&
         EVP_MAC_update(context_, chars(bytes_of(number)), sizeof number) == 1 &&
         EVP_MAC_update(context_, chars(bytes), bytes.size()) == 1 &&
         EVP_MAC_final(context_, whole.data(), &size, whole.size()) == 1 && size == whole.size());
    Tag out;
    std::memcpy(out.data(), whole.data(), out.size());
    return out;
}

SessionKeys derive(const Key& key, Bytes dialer_hello, Bytes acceptor_hello) {
    // The salt binds everything either side has said, with both nonces.
    std::vector<std::byte> transcript(dialer_hello.begin(), dialer_hello.end());
    transcript.insert(transcript.end(), acceptor_hello.begin(), acceptor_hello.end());
    std::array<unsigned char, kDigestSize> salt{};
    unsigned size = 0;
    must(EVP_Digest(transcript.data(), transcript.size(), salt.data(), &size, EVP_sha256(), nullptr) == 1);
    const Bytes salted = std::as_bytes(std::span(salt));
    return {.dialer_proof = expand(key, salted, "ernic mesh 1 proof of dialer"),
            .acceptor_proof = expand(key, salted, "ernic mesh 1 proof of acceptor"),
            .from_dialer = expand(key, salted, "ernic mesh 1 frames of dialer"),
            .from_acceptor = expand(key, salted, "ernic mesh 1 frames of acceptor")};
}

bool same(Bytes a, Bytes b) {
    return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

void warm_up() {
    const Key key = Key::of(std::as_bytes(std::span("0123456789abcdef")));
    const SessionKeys keys = derive(key, key.bytes(), key.bytes());
    Seal seal(keys.from_dialer);
    (void)seal.head(key.bytes());
}

void fill_random(MutableBytes out) {
    // Short requests are never cut short once the kernel has its entropy.
    must(::getrandom(out.data(), out.size(), 0) == static_cast<ssize_t>(out.size()));
}

}  // namespace ernic::mesh
