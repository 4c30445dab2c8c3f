// SPDX-License-Identifier: MIT
#include "ionic/recv_queue.hpp"

#include <algorithm>

#include "wire/ionic_rdma.hpp"

namespace ernic::ionic {

namespace rdma_wire = wire::ionic_rdma;

bool decode_sges(Bytes entry, std::uint16_t flags, std::uint8_t count,
                 std::array<rdma::Sge, rdma::kMaxSges>& sges) {
    const bool spec = (flags & (rdma_wire::kWqeSpec32 | rdma_wire::kWqeSpec16)) != 0;
    const std::size_t start = spec ? rdma_wire::kSpecSglOffset : rdma_wire::kSglOffset;
    if (count > sges.size() || entry.size() < start + count * sizeof(rdma_wire::Sge)) {
        // An entry without SGEs may be shorter than where they would start.
        return count == 0;
    }
    ByteReader reader(entry.subspan(start));
    for (std::uint8_t i = 0; i < count; ++i) {
        const auto sge = reader.read<rdma_wire::Sge>();
        sges[i] = {sge->va.get(), sge->length.get(), sge->lkey.get()};
    }
    return true;
}

bool decode_receive(Bytes entry, rdma::ReceiveRequest& request) {
    const auto header = read_value<rdma_wire::WqeHeader>(entry);
    if (!header) {
        return false;
    }
    request.id = header->wqe_id;
    request.sge_count = header->sge_count_or_key;
    return decode_sges(entry, header->flags.get(), request.sge_count, request.sges);
}

bool fetch_receive(const mem::GuestMemory& memory, const mem::Ring& ring, std::uint32_t position,
                   rdma::ReceiveRequest& request) {
    std::array<std::byte, 512> entry;
    const std::size_t size = std::min(ring.stride(), entry.size());
    return ring.read(memory, position, MutableBytes(entry).first(size)) &&
           decode_receive(Bytes(entry).first(size), request);
}

}  // namespace ernic::ionic
