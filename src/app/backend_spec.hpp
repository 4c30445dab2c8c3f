// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "app/mesh_spec.hpp"
#include "base/result.hpp"
#include "net/payload.hpp"

namespace ernic::app {

/// `--backend`: what the card's port is plugged into.
struct BackendSpec {
    enum class Kind : std::uint8_t {
        None,      ///< the link has no far end: every message fails
        Loopback,  ///< the card reaches itself
        Tcp,       ///< and the cards of other servers, over TCP
        Nvmeof,    ///< as Loopback, and an NVMe over Fabrics target
    };

    Kind kind = Kind::Loopback;
    net::PayloadMode mode = net::PayloadMode::Preserve;  ///< what arrives instead of the bytes that were sent
    bool md5 = false;                                    ///< digest every message
    MeshSpec mesh = {};                                  ///< of Tcp
    std::string target = {};                             ///< of Nvmeof: a word for parse_target()

    friend bool operator==(const BackendSpec&, const BackendSpec&) = default;
};

/// Reads `none`, `loopback[:mode=MODE][,md5]`, what parse_mesh() reads behind `tcp:`, or what parse_nvmeof()
/// reads behind `nvmeof:`, which may be left out.
/// Thread: any. Fails: InvalidArgument with one sentence that names the nearest valid spelling.
[[nodiscard]] Result<BackendSpec> parse_backend(std::string_view text);

/// The shortest text that parse_backend reads as `spec`.
[[nodiscard]] std::string to_string(const BackendSpec& spec);

}  // namespace ernic::app
