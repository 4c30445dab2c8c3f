// SPDX-License-Identifier: MIT
#include "nvmeof/dh_exchange.hpp"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/dh.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/params.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace ernic::nvmeof {
namespace {

struct Group {
    const char* name;
    std::size_t bytes;
};
constexpr std::array<Group, 6> kGroups = {{{"null", 0},
                                           {"ffdhe2048", 256},
                                           {"ffdhe3072", 384},
                                           {"ffdhe4096", 512},
                                           {"ffdhe6144", 768},
                                           {"ffdhe8192", 1024}}};

using Context = std::unique_ptr<EVP_PKEY_CTX, decltype(&EVP_PKEY_CTX_free)>;
using Number = std::unique_ptr<BIGNUM, decltype(&BN_free)>;

unsigned char* chars(Digest& bytes) {
    return reinterpret_cast<unsigned char*>(bytes.data());
}

Digest public_value_of(EVP_PKEY* key, std::size_t size) {
    BIGNUM* raw = nullptr;
    if (EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_PUB_KEY, &raw) != 1) {
        return {};
    }
    const Number number(raw, &BN_free);
    Digest value(size);
    return BN_bn2binpad(number.get(), chars(value), static_cast<int>(size)) == static_cast<int>(size)
               ? value
               : Digest();
}

/// The other side, of whom only the public value is known; null when the library refuses.
EVP_PKEY* peer_key(std::uint8_t group, Bytes value) {
    const Number number(BN_bin2bn(reinterpret_cast<const unsigned char*>(value.data()),
                                  static_cast<int>(value.size()), nullptr),
                        &BN_free);
    const std::unique_ptr<OSSL_PARAM_BLD, decltype(&OSSL_PARAM_BLD_free)> build(OSSL_PARAM_BLD_new(),
                                                                                &OSSL_PARAM_BLD_free);
    if (number == nullptr || build == nullptr ||
        OSSL_PARAM_BLD_push_utf8_string(build.get(), OSSL_PKEY_PARAM_GROUP_NAME, group_name(group), 0) != 1 ||
        OSSL_PARAM_BLD_push_BN(build.get(), OSSL_PKEY_PARAM_PUB_KEY, number.get()) != 1) {
        return nullptr;
    }
    const std::unique_ptr<OSSL_PARAM, decltype(&OSSL_PARAM_free)> parameters(
        OSSL_PARAM_BLD_to_param(build.get()), &OSSL_PARAM_free);
    const Context context(EVP_PKEY_CTX_new_from_name(nullptr, "DH", nullptr), &EVP_PKEY_CTX_free);
    EVP_PKEY* key = nullptr;
    if (parameters == nullptr || context == nullptr || EVP_PKEY_fromdata_init(context.get()) != 1 ||
        EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, parameters.get()) != 1) {
        return nullptr;
    }
    return key;
}

}  // namespace

bool known_group(std::uint8_t group) {
    return group < kGroups.size();
}

const char* group_name(std::uint8_t group) {
    return kGroups[group].name;
}

std::optional<std::uint8_t> group_of(std::string_view name) {
    const auto found = std::find_if(kGroups.begin(), kGroups.end(),
                                    [name](const Group& group) { return group.name == name; });
    return found == kGroups.end() ? std::nullopt
                                  : std::optional(static_cast<std::uint8_t>(found - kGroups.begin()));
}

std::size_t group_bytes(std::uint8_t group) {
    return kGroups[group].bytes;
}

void DhExchange::Free::operator()(evp_pkey_st* key) const {
    EVP_PKEY_free(key);
}

DhExchange::DhExchange(std::uint8_t group, Key key, Digest public_value)
    : group_(group), key_(std::move(key)), public_value_(std::move(public_value)) {
}

std::unique_ptr<DhExchange> DhExchange::make(std::uint8_t group) {
    const Context context(EVP_PKEY_CTX_new_from_name(nullptr, "DH", nullptr), &EVP_PKEY_CTX_free);
    std::string name = group_name(group);
    const std::array<OSSL_PARAM, 2> parameters = {
        OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, name.data(), 0),
        OSSL_PARAM_construct_end()};
    EVP_PKEY* raw = nullptr;
    if (context == nullptr || EVP_PKEY_keygen_init(context.get()) != 1 ||
        EVP_PKEY_CTX_set_params(context.get(), parameters.data()) != 1 ||
        EVP_PKEY_generate(context.get(), &raw) != 1) {
        return nullptr;
    }
    Key key(raw);
    Digest value = public_value_of(key.get(), group_bytes(group));
    if (value.empty()) {
        return nullptr;
    }
    return std::unique_ptr<DhExchange>(new DhExchange(group, std::move(key), std::move(value)));
}

Digest DhExchange::secret(Bytes other_public) const {
    if (other_public.size() != group_bytes(group_)) {
        return {};
    }
    const Key other(peer_key(group_, other_public));
    const Context context(EVP_PKEY_CTX_new_from_pkey(nullptr, key_.get(), nullptr), &EVP_PKEY_CTX_free);
    // Setting the peer checks its value: 0, 1 and their like would make a secret that everybody knows.
    if (other == nullptr || context == nullptr || EVP_PKEY_derive_init(context.get()) != 1 ||
        EVP_PKEY_CTX_set_dh_pad(context.get(), 1) != 1 ||
        EVP_PKEY_derive_set_peer(context.get(), other.get()) != 1) {
        return {};
    }
    Digest shared(group_bytes(group_));
    std::size_t size = shared.size();
    return EVP_PKEY_derive(context.get(), chars(shared), &size) == 1 && size == shared.size() ? shared
                                                                                              : Digest();
}

}  // namespace ernic::nvmeof
