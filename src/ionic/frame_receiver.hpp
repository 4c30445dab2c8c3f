// SPDX-License-Identifier: MIT
#pragma once

#include "ionic/lif.hpp"
#include "metrics/registry.hpp"
#include "net/frame.hpp"
#include "net/segmentation.hpp"

namespace ernic::ionic {

/// The guest's end of the segment: frames come off it as from a wire, so work that the sender left undone is
/// done first. Thread: device.
class FrameReceiver final : public net::FrameSink, private net::WireFrameSink {
  public:
    /// `lif` must outlive this.
    explicit FrameReceiver(Lif& lif) : lif_(lif) {}

    void transmit(const net::Frame& frame) override {
        if (!finisher_.finish(frame, *this)) {
            malformed_.add();
        }
    }
    [[nodiscard]] std::size_t room() const override { return lif_.receive_room(); }

    void register_in(metrics::Registry& registry) const {
        registry.add({"ionic.rx.malformed", "frames",
                      "Frames for the guest whose pending checksum or segmentation made no sense."},
                     malformed_);
    }

  private:
    /// The LIF counts what it drops.
    void take(const net::WireFrame& frame) override { (void)lif_.receive(frame); }

    Lif& lif_;
    net::FrameFinisher finisher_;
    metrics::Counter malformed_;
};

}  // namespace ernic::ionic
