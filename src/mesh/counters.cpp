// SPDX-License-Identifier: MIT
#include "mesh/counters.hpp"

#include <string>

namespace ernic::mesh {

void Counters::register_metrics(metrics::Registry& registry) const {
    const metrics::CounterGroup add(registry, "mesh.");
    registry.add({"mesh.peers_known", "nodes", "other nodes that are known now"},
                 [this] { return peers_known; });
    registry.add({"mesh.peers_connected", "nodes", "other nodes with a connection now"},
                 [this] { return peers_connected; });
    add("frames_sent", "frames", "frames handed to connections, of all kinds", frames_sent);
    add("bytes_sent", "bytes", "bytes of those, headers included", bytes_sent);
    add("frames_received", "frames", "frames that have arrived, of all kinds", frames_received);
    add("bytes_received", "bytes", "bytes of those, headers included", bytes_received);
    add("streamed", "messages", "payloads read from a socket straight to where they belong", streamed);
    add("staged", "messages",
        "large payloads that were put together in a buffer first; high without a key: the sockets have too "
        "little memory",
        staged);
    add("blocked", "times", "a socket took no more and senders had to wait", blocked);
    add("messages_dropped", "messages",
        "RDMA messages for a peer that could not be queued; high: a peer takes nothing, or has left",
        messages_dropped);
    add("ethernet_dropped", "frames", "Ethernet frames for a peer that could not be queued",
        ethernet_dropped);
    add("ethernet_flooded", "frames",
        "Ethernet frames sent to all peers: broadcast, multicast, or a MAC address not seen in 300 s",
        ethernet_flooded);
    add("foreign_source", "messages",
        "messages and frames from a MAC address that is not the peer's, dropped; high: a peer is lying",
        foreign_source);
    add("foreign_destination", "messages",
        "RDMA messages to a MAC address that is not here, dropped; high: a peer's view is out of date",
        foreign_destination);
    add("macs_refused", "addresses",
        "MAC addresses announced by a peer that somebody else has; high: two guests have the same",
        macs_refused);
    add("connects", "connections", "connections to peers made, either way", connects);
    add("disconnects", "connections", "connections to peers lost", disconnects);
    add("dead", "connections", "of those: given up because nothing was heard for too long", dead);
    add("congested", "connections", "of those: given up because the peer took nothing for too long",
        congested);
    add("protocol_errors", "connections", "connections closed because of something that makes no sense",
        protocol_errors);
    add("wrong_version", "connections", "connections closed because the versions do not fit", wrong_version);
    add("wrong_key", "connections",
        "connections closed because only one side has a key, or they have different ones", wrong_key);
    add("forged", "connections", "connections closed because a tag was wrong", forged);
    add("silent", "connections", "connections closed because nothing was said in time", silent);
    add("strangers_evicted", "connections",
        "connections closed to make room for newer ones before they had said who they are; high: somebody "
        "floods the port",
        strangers_evicted);
    add("accept_pauses", "times", "no connection could be accepted for want of descriptors or memory",
        accept_pauses);
    add("dials_failed", "attempts", "attempts to reach a node that failed", dials_failed);
    add("refused_nodes", "nodes", "nodes refused because the mesh is full", refused_nodes);
}

}  // namespace ernic::mesh
