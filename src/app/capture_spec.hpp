// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "net/capture.hpp"

namespace ernic::app {

/// What `--pcap` asks for.
struct CaptureSpec {
    std::string path;  ///< empty: no capture
    std::uint32_t snaplen = net::Capture::kMaxSnaplen;

    friend bool operator==(const CaptureSpec&, const CaptureSpec&) = default;
};

/// Reads `FILE[,snaplen=N]`. Thread: any. Fails: InvalidArgument with one sentence that names the nearest
/// valid spelling.
[[nodiscard]] Result<CaptureSpec> parse_capture(std::string_view text);

}  // namespace ernic::app
