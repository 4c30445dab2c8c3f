// SPDX-License-Identifier: MIT
#include "net/loop_ports.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "mem/guest_memory.hpp"
#include "net/segmentation.hpp"

namespace ernic::net {
namespace {

/// Longer than any frame: 64 KiB of IP packet and what stands in front of it.
constexpr std::size_t kLongest = 65536 + kMaxHeader;

/// The header with source and destination in each other's place.
wire::EthernetHeader turned(const wire::EthernetHeader& header) {
    return {header.source, header.destination, header.ether_type};
}

}  // namespace

NullPort::NullPort(Bridge& bridge, std::string name) : port_(bridge, std::move(name)), buffer_(kLongest) {
    port_.connect(this);
}

NullPort::~NullPort() {
    port_.connect(nullptr);
}

void NullPort::transmit(const Frame& frame) {
    mem::copy(MutableBytes(buffer_), frame.data);
}

ReflectPort::ReflectPort(Bridge& bridge, std::string name, const wire::MacAddress& mac)
    : port_(bridge, std::move(name)), mac_(mac) {
    port_.connect(this);
}

ReflectPort::~ReflectPort() {
    port_.connect(nullptr);
}

void ReflectPort::transmit(const Frame& frame) {
    const auto header = ethernet_header(frame);
    // The bridge sends on none that is too short for one.
    if (!header || header->destination != mac_ || header->source.multicast()) {
        return;
    }
    if (sending_) {
        port_.dropped();
        return;
    }
    sending_ = true;
    send_back(frame, turned(*header));
    sending_ = false;
}

void ReflectPort::send_back(const Frame& frame, const wire::EthernetHeader& header) {
    if (frame.segmentation) {
        std::array<std::byte, kMaxHeader> buffer;
        const Bytes old = frame.segmentation->header;
        if (old.size() > buffer.size()) {
            port_.dropped();
            return;
        }
        std::copy(old.begin(), old.end(), buffer.begin());
        std::memcpy(buffer.data(), &header, sizeof header);
        Frame back = frame;
        back.segmentation->header = Bytes(buffer).first(old.size());
        port_.transmit(back);
        return;
    }
    wire::EthernetHeader head = header;
    mem::SpanList data;
    data.add(mutable_bytes_of(head).data(), sizeof head);
    std::size_t skip = sizeof head;
    for (const mem::SpanList::Piece& piece : frame.data) {
        const std::size_t skipped = std::min(skip, piece.size);
        skip -= skipped;
        if (!data.add(piece.data + skipped, piece.size - skipped)) {
            port_.dropped();
            return;
        }
    }
    Frame back{.data = data,
               .insert_vlan = frame.insert_vlan,
               .checksum = frame.checksum,
               .checksum_valid = frame.checksum_valid,
               .segmentation = {}};
    port_.transmit(back);
}

}  // namespace ernic::net
