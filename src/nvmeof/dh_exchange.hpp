// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "nvmeof/dhchap_secret.hpp"

struct evp_pkey_st;

namespace ernic::nvmeof {

/// A Diffie-Hellman group of DH-HMAC-CHAP by its number there (Base Specification 8.13.5.2, figure "DH group
/// identifiers"): 0 none, 1 to 5 the groups ffdhe2048, 3072, 4096, 6144 and 8192 of RFC 7919.
[[nodiscard]] bool known_group(std::uint8_t group);
/// "null", "ffdhe2048" and so on. Precondition: known_group().
[[nodiscard]] const char* group_name(std::uint8_t group);
/// Fails: nullopt when no group is called that.
[[nodiscard]] std::optional<std::uint8_t> group_of(std::string_view name);
/// Bytes of a public value and of what both sides come to share; 0 for none. Precondition: known_group().
[[nodiscard]] std::size_t group_bytes(std::uint8_t group);

/// One side of one Diffie-Hellman exchange. Making it and secret() take milliseconds in the larger groups.
/// Thread: any, one at a time.
class DhExchange {
  public:
    /// With a new private value. Fails: null when the library refuses. Precondition: `group` is known and not
    /// 0.
    static std::unique_ptr<DhExchange> make(std::uint8_t group);

    /// What the other side is to get: group_bytes().
    [[nodiscard]] const Digest& public_value() const { return public_value_; }
    /// What both sides share, from the other's public value; as long as that, zeroes in front. Fails: empty
    /// when the other's is no value of the group.
    [[nodiscard]] Digest secret(Bytes other_public) const;

  private:
    struct Free {
        void operator()(evp_pkey_st* key) const;
    };
    using Key = std::unique_ptr<evp_pkey_st, Free>;
    DhExchange(std::uint8_t group, Key key, Digest public_value);

    std::uint8_t group_;
    Key key_;
    Digest public_value_;
};

}  // namespace ernic::nvmeof
