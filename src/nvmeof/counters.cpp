// SPDX-License-Identifier: MIT
#include "nvmeof/counters.hpp"

namespace ernic::nvmeof {

void Counters::register_metrics(metrics::Registry& registry) const {
    const metrics::CounterGroup add(registry, "nvmeof.");
    add("connections", "connections", "queues that hosts have connected to NVMe-oF targets", connections);
    add("refused_connections", "connections",
        "queues refused before they stood: too many, or no memory for their capsules", refused_connections);
    add("lost_connections", "connections", "queues whose connection has ended, for whatever reason",
        lost_connections);
    add("controllers", "controllers", "controllers made by Connect on an admin queue", controllers);
    add("refused_connects", "commands", "Connect commands that failed: wrong NQN, host, queue or size",
        refused_connects);
    add("expired_controllers", "controllers", "controllers ended because their host was silent for too long",
        expired_controllers);
    add("fabrics_commands", "commands", "Fabrics commands: Connect, properties, authentication",
        fabrics_commands);
    add("admin_commands", "commands", "admin commands other than those", admin_commands);
    add("reads", "commands", "Read commands", reads);
    add("writes", "commands", "Write commands", writes);
    add("flushes", "commands", "Flush commands", flushes);
    add("compares", "commands", "Compare commands", compares);
    add("write_zeroes", "commands", "Write Zeroes commands", write_zeroes);
    add("deallocates", "commands", "Dataset Management commands", deallocates);
    add("copies", "commands", "Copy commands", copies);
    add("other_commands", "commands", "I/O commands other than those", other_commands);
    add("read_bytes", "bytes", "bytes that Read commands have asked for and got", read_bytes);
    add("written_bytes", "bytes", "bytes that Write commands have stored", written_bytes);
    add("in_capsule_bytes", "bytes", "those of them that came inside the command capsule", in_capsule_bytes);
    add("errors", "commands", "commands that ended with any status but success", errors);
    add("injected_faults", "commands", "those of them that the option fault= has made", injected_faults);
    add("malformed_capsules", "capsules", "capsules shorter than a command; each costs its connection",
        malformed_capsules);
    add("aborted_commands", "commands", "commands ended by Abort or by a reset of their controller",
        aborted_commands);
    add("async_events", "events", "asynchronous events told to hosts", async_events);
    add("buffer_waits", "commands", "commands that had to wait for staging memory; many mean slow files",
        buffer_waits);
    add("medium_errors", "operations", "operations that a namespace's file has failed", medium_errors);
}

}  // namespace ernic::nvmeof
