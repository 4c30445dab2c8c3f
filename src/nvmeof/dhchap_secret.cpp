// SPDX-License-Identifier: MIT
#include "nvmeof/dhchap_secret.hpp"

#include <fmt/format.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <sstream>

#include "base/byte_order.hpp"
#include "net/icrc.hpp"

namespace ernic::nvmeof {
namespace {

constexpr std::string_view kPrefix = "DHHC-1:";
constexpr std::string_view kPurpose = "NVMe-over-Fabrics";
constexpr std::string_view kEveryHost = "*";

const unsigned char* chars(Bytes bytes) {
    return reinterpret_cast<const unsigned char*>(bytes.data());
}

const char* hash_name(std::uint8_t hash) {
    constexpr std::array<const char*, 3> kNames = {"SHA256", "SHA384", "SHA512"};
    return kNames[hash - 1U];
}

std::optional<std::vector<std::byte>> from_base64(std::string_view text) {
    if (text.empty() || text.size() % 4 != 0 || text.size() > 128) {
        return std::nullopt;
    }
    std::vector<std::byte> out(text.size() / 4 * 3);
    const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()), chars(text_bytes(text)),
                                     static_cast<int>(text.size()));
    if (size < 0) {
        return std::nullopt;
    }
    const auto padding = static_cast<std::size_t>(std::count(text.end() - 2, text.end(), '='));
    out.resize(static_cast<std::size_t>(size) - padding);
    return out;
}

}  // namespace

bool known_hash(std::uint8_t hash) {
    return hash >= 1 && hash <= 3;
}

std::size_t hash_bytes(std::uint8_t hash) {
    return 16U * (hash + 1U);
}

Digest hmac(std::uint8_t hash, Bytes key, std::initializer_list<Bytes> parts) {
    const std::unique_ptr<EVP_MAC, decltype(&EVP_MAC_free)> mac(EVP_MAC_fetch(nullptr, "HMAC", nullptr),
                                                                &EVP_MAC_free);
    const std::unique_ptr<EVP_MAC_CTX, decltype(&EVP_MAC_CTX_free)> context(
        mac != nullptr ? EVP_MAC_CTX_new(mac.get()) : nullptr, &EVP_MAC_CTX_free);
    std::string name = hash_name(hash);
    const std::array<OSSL_PARAM, 2> parameters = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, name.data(), 0), OSSL_PARAM_construct_end()};
    if (context == nullptr || EVP_MAC_init(context.get(), chars(key), key.size(), parameters.data()) != 1) {
        return {};
    }
    for (const Bytes part : parts) {
        if (EVP_MAC_update(context.get(), chars(part), part.size()) != 1) {
            return {};
        }
    }
    Digest digest(hash_bytes(hash));
    std::size_t size = 0;
    if (EVP_MAC_final(context.get(), reinterpret_cast<unsigned char*>(digest.data()), &size, digest.size()) !=
            1 ||
        size != digest.size()) {
        return {};
    }
    return digest;
}

Digest digest(std::uint8_t hash, Bytes data) {
    Digest out(hash_bytes(hash));
    std::size_t size = out.size();
    return EVP_Q_digest(nullptr, hash_name(hash), nullptr, data.data(), data.size(),
                        reinterpret_cast<unsigned char*>(out.data()), &size) == 1 &&
                   size == out.size()
               ? out
               : Digest();
}

std::optional<Digest> secret_key(std::string_view text, std::string_view owner_nqn) {
    // DHHC-1:0H:....:
    if (text.size() < kPrefix.size() + 4 || !text.starts_with(kPrefix) || text.back() != ':' ||
        text[kPrefix.size()] != '0' || text[kPrefix.size() + 2] != ':') {
        return std::nullopt;
    }
    const auto hash = static_cast<std::uint8_t>(text[kPrefix.size() + 1] - '0');
    if (hash != 0 && !known_hash(hash)) {
        return std::nullopt;
    }
    text.remove_prefix(kPrefix.size() + 3);
    text.remove_suffix(1);
    auto key = from_base64(text);
    if (!key || (key->size() != 36 && key->size() != 52 && key->size() != 68)) {
        return std::nullopt;
    }
    const Bytes secret = Bytes(*key).first(key->size() - sizeof(le32));
    if (read_value<le32>(Bytes(*key).subspan(secret.size()))->get() != ~net::crc32(net::kCrcStart, secret)) {
        return std::nullopt;
    }
    if (hash == 0) {
        key->resize(secret.size());
        return key;
    }
    Digest transformed = hmac(hash, secret, {text_bytes(owner_nqn), text_bytes(kPurpose)});
    return transformed.empty() ? std::nullopt : std::optional(std::move(transformed));
}

Result<DhChapSecrets> DhChapSecrets::read(const std::string& path, std::string_view subsystem_nqn) {
    std::ifstream file(path);
    if (!file) {
        return Error{Errc::Io, fmt::format("cannot read the secrets of hosts in '{}'", path)};
    }
    DhChapSecrets secrets;
    std::string text;
    for (unsigned number = 1; std::getline(file, text); ++number) {
        std::istringstream words(text.substr(0, text.find('#')));
        Line line;
        std::string own;
        std::string rest;
        words >> line.host >> line.secret >> own >> rest;
        if (line.host.empty()) {
            continue;
        }
        const auto bad = [&](const char* why) {
            return Error{Errc::InvalidArgument, fmt::format("line {} of '{}' {}", number, path, why)};
        };
        if (!secret_key(line.secret, line.host) || !rest.empty()) {
            return bad(
                "is not 'HOST-NQN SECRET [SUBSYSTEM-SECRET]', with secrets as nvme gen-dhchap-key prints");
        }
        if (!own.empty()) {
            auto key = secret_key(own, subsystem_nqn);
            if (!key) {
                return bad("has no valid secret of the subsystem");
            }
            line.subsystem = std::move(*key);
        }
        secrets.lines_.push_back(std::move(line));
    }
    if (secrets.lines_.empty()) {
        return Error{Errc::InvalidArgument,
                     fmt::format("'{}' has no secret, so that no host could connect", path)};
    }
    return secrets;
}

std::optional<DhChapSecrets::Keys> DhChapSecrets::of(std::string_view host_nqn) const {
    const Line* found = nullptr;
    for (const Line& line : lines_) {
        if (line.host == host_nqn || (line.host == kEveryHost && found == nullptr)) {
            found = &line;
            if (line.host == host_nqn) {
                break;
            }
        }
    }
    if (found == nullptr) {
        return std::nullopt;
    }
    auto key = secret_key(found->secret, host_nqn);
    return key ? std::optional(Keys{std::move(*key), found->subsystem}) : std::nullopt;
}

}  // namespace ernic::nvmeof
