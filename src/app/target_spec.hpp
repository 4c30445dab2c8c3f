// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.hpp"
#include "net/stack/host.hpp"
#include "nvmeof/config.hpp"

namespace ernic::app {

/// One `--target`: an in-process service and its host on the segment.
struct TargetSpec {
    enum class Kind : std::uint8_t { Echo, Null, Reflect, Nvmeof };
    /// So many fit on a segment beside the guest, a TAP and others.
    static constexpr std::size_t kMost = 16;

    Kind kind = Kind::Echo;
    /// Of Null nothing, of Reflect only the MAC address counts. `mac` is zero when none was given.
    net::stack::HostConfig host;
    /// Of Nvmeof, which has `host` too: that one counts.
    std::optional<nvmeof::TargetConfig> nvmeof;
};

/// Reads `echo:ip=ADDRESS/PREFIX[,ip=..][,gw=ADDRESS][,mac=MAC][,mtu=N]`, `null`, `reflect[:mac=MAC]`, or
/// what parse_nvmeof() reads behind `nvmeof:`.
/// Thread: any. Fails: InvalidArgument with one sentence that names the nearest valid spelling.
[[nodiscard]] Result<TargetSpec> parse_target(std::string_view text);

}  // namespace ernic::app
