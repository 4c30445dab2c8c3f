// SPDX-License-Identifier: MIT
#include "app/mesh_control.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "net/mac_text.hpp"

namespace ernic::app {
namespace {

using nlohmann::json;

std::uint64_t microseconds(Nanoseconds time) {
    return time / 1000;
}

json row_of(const mesh::PeerStatus& peer) {
    std::string macs;
    for (const wire::MacAddress& mac : peer.macs) {
        macs += (macs.empty() ? "" : " ") + net::to_string(mac);
    }
    json row = {{"name", peer.name},
                {"state", peer.state},
                {"address", peer.address},
                {"manager", peer.is_manager},
                {"macs", macs},
                {"round_trip_us", microseconds(peer.round_trip)},
                {"silent_ms", microseconds(peer.silent) / 1000},
                {"queued_bytes", peer.queued},
                {"reconnects", peer.connects == 0 ? 0 : peer.connects - 1},
                {"messages_out", peer.traffic.messages_sent},
                {"messages_in", peer.traffic.messages_received},
                {"bytes_out", peer.traffic.bytes_sent},
                {"bytes_in", peer.traffic.bytes_received},
                {"dropped", peer.traffic.dropped}};
    row["number"] = peer.number == mesh::kNoNumber ? json() : json(peer.number);
    return row;
}

/// Writes some peers a step, as text.
class PeersText {
  public:
    explicit PeersText(std::vector<mesh::PeerStatus> peers) : peers_(std::move(peers)) {}

    bool operator()(std::string& out) {
        out += done_ == 0 ? R"({"peers":[)" : "";
        for (const std::size_t end = std::min(done_ + kStep, peers_.size()); done_ != end; ++done_) {
            out += done_ == 0 ? "" : ",";
            out += row_of(peers_[done_]).dump();
        }
        const bool more = done_ != peers_.size();
        out += more ? "" : "]}";
        return more;
    }

  private:
    static constexpr std::size_t kStep = 16;
    std::vector<mesh::PeerStatus> peers_;
    std::size_t done_ = 0;
};

}  // namespace

void add_mesh_commands(control::Commands& commands, const mesh::Fabric* fabric) {
    commands.add("peers", {}, [fabric](control::Call&) -> control::Answer {
        return control::Producer(
            PeersText(fabric != nullptr ? fabric->peers() : std::vector<mesh::PeerStatus>()));
    });
}

}  // namespace ernic::app
