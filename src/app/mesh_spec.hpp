// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "mesh/config.hpp"

namespace ernic::app {

/// `--backend tcp:..`: this node's part in a mesh, as it was written.
struct MeshSpec {
    bool is_manager = false;
    /// Of a manager: where it listens, empty for loopback. Of a worker: the manager's name or address.
    std::string host;
    std::uint16_t port = 0;
    std::string key_file;  ///< empty: no key
    std::string bind;      ///< empty: loopback, or the address that leads to the manager
    std::string name;      ///< empty: made from host name and process id
    Nanoseconds heartbeat = mesh::Config().heartbeat;
    Nanoseconds dead_after = mesh::Config().dead_after;

    friend bool operator==(const MeshSpec&, const MeshSpec&) = default;
};

/// Reads `manager:listen:PORT`, `manager:ADDRESS:PORT` or `worker:HOST:PORT`, each with `,key=value` options.
/// IPv6 addresses are in brackets. Thread: any. Fails: InvalidArgument with one sentence.
[[nodiscard]] Result<MeshSpec> parse_mesh(std::string_view text);

/// The shortest text that parse_mesh reads as `spec`, which does not contain the key.
[[nodiscard]] std::string to_string(const MeshSpec& spec);

/// Finds addresses, reads the key: what a Fabric is made from. May ask a name server, which takes its time.
/// Fails: one sentence; InvalidArgument when the command line is to blame (a key is missing).
[[nodiscard]] Result<mesh::Config> prepare_mesh(const MeshSpec& spec);

}  // namespace ernic::app
