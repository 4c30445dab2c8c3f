// SPDX-License-Identifier: MIT
#pragma once

#include "metrics/registry.hpp"
#include "net/frame.hpp"

namespace ernic::ionic {

/// A wire that leads nowhere: frames are counted as sent and gone.
class NullFrameSink final : public net::FrameSink {
  public:
    void transmit(const net::Frame& /*frame*/) override { frames_.add(); }
    [[nodiscard]] const metrics::Counter& frames() const { return frames_; }

  private:
    metrics::Counter frames_;
};

}  // namespace ernic::ionic
