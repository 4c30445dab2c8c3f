// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

#include "base/log.hpp"
#include "mem/guest_memory.hpp"

namespace ernic::net {

/// MD5 digests of delivered payload (`--backend loopback:md5`), for comparing what arrived with what a test
/// sent. Thread: device.
class PayloadDigest {
  public:
    explicit PayloadDigest(log::Logger log) : log_(std::move(log)) {}

    /// Digests the first `size` bytes of `payload` and logs one line (info): running number, size, digest in
    /// hex. Messages longer than one fragment (rdma::kFragment) give a line for each fragment. Returns the
    /// digest. Fails: an empty text when the library refuses MD5 (a FIPS configuration), said once.
    std::string add(const mem::SpanList& payload, std::size_t size);

  private:
    log::Logger log_;
    std::uint64_t count_ = 0;
    bool refused_ = false;
};

}  // namespace ernic::net
