// SPDX-License-Identifier: MIT
#include "vfio_user/counters.hpp"

#include <string>

namespace ernic::vfio_user {
namespace {

struct RejectText {
    std::string_view name;
    std::string_view help;
};

// In the order of the enum.
constexpr std::array<RejectText, kRejectCount> kRejectTexts{{
    {"header_size", "Messages with an impossible size; each ended its connection."},
    {"header_type", "Messages that are neither command nor reply."},
    {"not_negotiated", "Commands before VERSION; each ended its connection."},
    {"version", "VERSION requests that could not be accepted."},
    {"unknown_command", "Commands with an unknown number."},
    {"unsupported", "Known optional commands this server does not have."},
    {"short_payload", "Commands shorter than their fixed part."},
    {"payload_size", "Commands whose data does not match their count."},
    {"argsz", "Commands with an impossible argsz."},
    {"index", "Commands naming a region or irq index that does not exist."},
    {"range", "Accesses outside a region, an irq index or the address space."},
    {"flags", "Commands with unknown or contradicting flags."},
    {"fds", "Commands with file descriptors that do not belong to them."},
    {"overlap", "DMA maps that overlap another one."},
    {"not_mapped", "DMA unmaps that match no map."},
    {"limit", "DMA maps beyond the limits of maps or files."},
    {"file", "DMA maps whose file could not be mapped as asked."},
}};

}  // namespace

std::string_view name(Reject reason) {
    return kRejectTexts[static_cast<std::size_t>(reason)].name;
}

void Counters::register_in(metrics::Registry& registry) const {
    const metrics::CounterGroup add(registry, "vfio_user.");
    add("clients", "clients", "Clients served since start.", clients);
    add("clients_refused", "clients", "Clients closed at once because another one is served.",
        clients_refused);
    add("clients_too_slow", "clients", "Clients dropped because they did not read their replies.",
        clients_too_slow);
    add("clients_truncated", "clients",
        "Clients dropped because file descriptors got lost: more than 16 in a message, or this process has "
        "no room.",
        clients_truncated);
    add("clients_shrunk_memory", "clients",
        "Clients dropped because a memory file became shorter while mapped.", clients_shrunk_memory);
    add("receives", "calls",
        "recvmsg calls that brought data; messages per call tells how well batching works.", receives);
    add("messages", "messages", "Messages received.", messages);
    add("posted", "messages", "Messages that asked for no reply: doorbells, mostly.", posted);
    add("sends", "calls", "send calls.", sends);
    add("unexpected_replies", "messages", "Replies to nothing we asked.", unexpected_replies);
    add("stray_fds", "fds", "File descriptors that arrived in the middle of a message and were closed.",
        stray_fds);
    add("resets", "resets", "DEVICE_RESET commands.", resets);
    add("dma_maps", "maps", "Pieces of guest memory mapped since start.", dma_maps);
    add("dma_unmaps", "maps", "Pieces of guest memory unmapped since start.", dma_unmaps);
    add("dma_unreachable", "maps",
        "Mapped pieces without a usable file: firmware ROMs, or memory that is not shared.", dma_unreachable);
    add("interrupts", "interrupts", "Interrupts signalled through eventfds.", interrupts);
    add("interrupts_saturated", "interrupts", "Interrupts merged with ones the VMM has not read yet.",
        interrupts_saturated);
    add("interrupts_unroutable", "interrupts",
        "Interrupts for vectors without eventfd; the device keeps them pending.", interrupts_unroutable);
    add("memory_checks", "checks", "Finished comparisons of our view of guest memory with the VMM's.",
        memory_checks);
    add("memory_mismatches", "checks",
        "Comparisons that failed: the VM's memory is not shared (share=on is missing).", memory_mismatches);
    for (std::size_t i = 0; i < kRejectCount; ++i) {
        add("reject." + std::string(kRejectTexts[i].name), "messages", kRejectTexts[i].help, rejects[i]);
    }
}

}  // namespace ernic::vfio_user
