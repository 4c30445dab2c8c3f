// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "metrics/registry.hpp"
#include "net/bridge.hpp"
#include "net/frame.hpp"
#include "wire/ethernet.hpp"

/// Ports without a far end, for packet generators, benchmarks and tests of a guest's Ethernet.
namespace ernic::net {

/// Takes every frame that reaches it, as a network card's transmit side would: the bytes are copied out of
/// guest memory, and that is all. Thread: device.
class NullPort final : public FrameSink {
  public:
    /// `bridge` must outlive the port; `name` is part of the names of its numbers.
    NullPort(Bridge& bridge, std::string name);
    ~NullPort() override;
    NullPort(const NullPort&) = delete;
    NullPort& operator=(const NullPort&) = delete;

    void transmit(const Frame& frame) override;
    void register_metrics(metrics::Registry& registry) const { port_.register_metrics(registry); }

  private:
    FramePort port_;
    std::vector<std::byte> buffer_;
};

/// Sends each frame that is addressed to it back to its sender: source and destination MAC address change
/// places, everything else stays, including checksums and segmentation still to be done. Frames to other
/// addresses are dropped, so that it does not answer what the bridge floods. Thread: device.
class ReflectPort final : public FrameSink {
  public:
    /// As NullPort.
    ReflectPort(Bridge& bridge, std::string name, const wire::MacAddress& mac);
    ~ReflectPort() override;
    ReflectPort(const ReflectPort&) = delete;
    ReflectPort& operator=(const ReflectPort&) = delete;

    void transmit(const Frame& frame) override;
    void register_metrics(metrics::Registry& registry) const { port_.register_metrics(registry); }

  private:
    void send_back(const Frame& frame, const wire::EthernetHeader& header);

    FramePort port_;
    wire::MacAddress mac_;
    /// A frame is on its way back. Two such ports would hand a frame with both their addresses to each other
    /// for ever.
    bool sending_ = false;
};

}  // namespace ernic::net
