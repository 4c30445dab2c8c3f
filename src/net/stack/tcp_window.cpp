// SPDX-License-Identifier: MIT
#include "net/stack/tcp_window.hpp"

#include "net/stack/lwip.hpp"

namespace ernic::net::stack {
namespace {

const tcp_pcb* connection_of(const Classified& what) {
    // lwIP moves the connection it has worked for to the front.
    for (const tcp_pcb* pcb = tcp_active_pcbs; pcb != nullptr; pcb = pcb->next) {
        if (pcb->remote_port == what.tcp->source_port && pcb->local_port == what.tcp->destination_port &&
            from_lwip(pcb->remote_ip) == what.source && from_lwip(pcb->local_ip) == what.destination) {
            return pcb;
        }
    }
    return nullptr;
}

}  // namespace

bool overruns_window(const Classified& what) {
    const tcp_pcb* const pcb = what.tcp ? connection_of(what) : nullptr;
    if (pcb == nullptr) {
        return false;
    }
    const std::uint32_t gap = what.tcp->sequence - pcb->rcv_nxt;
    return gap != 0 && gap <= INT32_MAX && gap + what.tcp->length > pcb->rcv_wnd;
}

}  // namespace ernic::net::stack
