// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "metrics/registry.hpp"
#include "net/bridge.hpp"
#include "net/filter.hpp"
#include "net/observer.hpp"
#include "net/payload.hpp"
#include "net/port.hpp"
#include "wire/ethernet.hpp"

namespace ernic::net {

/// The one virtual Ethernet segment on which everything meets: messages go to the port that owns the
/// destination MAC, frames where a learning bridge sends them. Thread: device.
class Segment {
  public:
    /// Without a clock the MAC addresses of frames are remembered for ever. `clock` must outlive the segment.
    explicit Segment(PayloadMode mode = PayloadMode::Preserve, const Clock* clock = nullptr)
        : mover_(mode), bridge_(clock) {}

    /// Where frame ports are added.
    Bridge& bridge() { return bridge_; }

    /// From now on nobody can attach: a segment without a far end.
    void close() { closed_ = true; }

    /// Makes `port` the owner of `mac`, replacing an earlier owner. The port must detach before it dies.
    void attach(Port& port, wire::MacAddress mac);
    void detach(Port& port);

    /// Who owns `mac`; null when nobody does.
    [[nodiscard]] Port* owner(const wire::MacAddress& mac) const;
    /// The addresses of all ports that are not remote(), in order.
    [[nodiscard]] std::vector<wire::MacAddress> local_macs() const;
    /// `listener` hears when local_macs() may have changed; null ends it.
    void on_local_change(std::function<void()> listener) { local_change_ = std::move(listener); }

    /// Whether a message to `mac` would be taken now without queueing (Port::ready()). True for a MAC nobody
    /// owns.
    [[nodiscard]] bool ready(const wire::MacAddress& mac, bool may_lose = false);
    /// `listener` hears Port::on_room(), on_gone() and on_reset() from now on. It must unlisten before it
    /// dies.
    void listen(Port& listener) { listeners_.push_back(&listener); }
    void unlisten(Port& listener) { std::erase(listeners_, &listener); }
    /// `port` may be ready.
    void made_room(Port& port);
    /// Who sits at `port` has forgotten all its queue pairs.
    void was_reset(Port& port);
    /// Port::settled() of the owner of `mac`; true when nobody is.
    [[nodiscard]] bool settled(const wire::MacAddress& mac, Nanoseconds since);

    /// Somebody looks at the payload of messages on their way: a PayloadStream will not do.
    [[nodiscard]] bool watched() const { return observer_ != nullptr || filter_ != nullptr; }

    /// Delivers `message` to the owner of its destination MAC. A message to a MAC nobody owns is dropped and
    /// counted, exactly as on a wire: the sender finds out by its own time-out.
    void send(const Message& message);

    /// The same behind observer and filter: for a filter that kept a message back.
    void deliver(const Message& message);

    /// `observer` sees all traffic from now on; null ends it. It must outlive its time here.
    void observe(Observer* observer) {
        observer_ = observer;
        bridge_.observe(observer);
    }

    /// `filter` decides on all traffic from now on; null ends it. It must outlive its time here.
    void filter(Filter* filter) {
        filter_ = filter;
        bridge_.filter(filter);
    }
    /// Who the guest is, for the path a filter is told.
    void set_guest(const Port& port, const FramePort& frames) {
        guest_ = &port;
        bridge_.set_guest(frames);
    }

    /// How receiving ports put payload into place.
    PayloadMover& mover() { return mover_; }

    void register_metrics(metrics::Registry& registry);

  private:
    /// As owner(), with a memory for the last one.
    Port* find(const wire::MacAddress& mac);
    [[nodiscard]] bool of_guest(const wire::MacAddress& mac) const;

    std::unordered_map<wire::MacAddress, Port*> owners_;
    /// The owner found last: nearly all traffic goes to one port.
    wire::MacAddress last_mac_;
    Port* last_port_ = nullptr;
    bool closed_ = false;
    std::vector<Port*> listeners_;
    std::function<void()> local_change_;
    PayloadMover mover_;
    Bridge bridge_;
    Observer* observer_ = nullptr;
    Filter* filter_ = nullptr;
    const Port* guest_ = nullptr;
    metrics::Counter messages_;
    metrics::Counter unknown_destination_;
};

}  // namespace ernic::net
