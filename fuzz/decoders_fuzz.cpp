// SPDX-License-Identifier: MIT
// Decoders alone, on exactly the bytes they are given: one byte chooses the decoder, the rest is its input in
// a heap block of its own, so that reading one byte too many is seen.
#include <array>
#include <string>
#include <vector>

#include "fuzz/input.hpp"
#include "ionic/packet_info.hpp"
#include "ionic/recv_queue.hpp"
#include "ionic/send_queue.hpp"
#include "net/checksum.hpp"
#include "net/fault_spec.hpp"
#include "net/route.hpp"
#include "vfio_user/version.hpp"

namespace ernic::fuzz {
namespace {

void check(const rdma::WorkRequest& request, std::size_t entry_size) {
    require(static_cast<std::size_t>(request.opcode) < rdma::kOpcodeCount, "a decoded opcode exists");
    require(request.sge_count <= rdma::kMaxSges, "a decoded request has few SGEs");
    require(!request.is_inline || request.length + 32 <= entry_size, "inline data lies in its entry");
}

void send_entry(Bytes data, ionic::WqeLayout layout) {
    rdma::WorkRequest request;
    if (ionic::decode_send(data, layout, request)) {
        check(request, data.size());
    } else {
        require(static_cast<std::size_t>(request.opcode) < rdma::kOpcodeCount,
                "a refused request has an opcode");
    }
}

void receive_entry(Bytes data) {
    rdma::ReceiveRequest request;
    if (ionic::decode_receive(data, request)) {
        require(request.sge_count <= rdma::kMaxSges, "a decoded receive has few SGEs");
    }
}

void header_template(Bytes data) {
    const auto route = net::parse_route(data);
    require(!route || (data.size() >= 42), "a route has its headers");
    if (route) {
        for (const std::size_t payload : {std::size_t{0}, data.size(), std::size_t{4096 + 24}}) {
            const auto header = net::network_header(*route, payload);
            require(!route->ipv4 || header[0] == std::byte{0}, "an IPv4 header follows 20 zero bytes");
        }
    }
}

void version(Bytes data) {
    const auto agreed = vfio_user::parse_version(data);
    if (agreed) {
        require(agreed->max_data_transfer <= vfio_user::kMaxDataTransfer,
                "a client cannot raise the transfer limit");
        require(vfio_user::version_text(*agreed).size() < 214, "the reply fits QEMU");
    }
}

void frame(Bytes data) {
    const auto packet = ionic::parse_packet(data);
    if (packet) {
        require(std::size_t{packet->address_bytes} + packet->port_bytes <= packet->tuple.size(),
                "a tuple has room");
        require(
            packet->ipv4_header_size == 0 || packet->network_offset + packet->ipv4_header_size <= data.size(),
            "an IPv4 header lies in its frame");
    }
    (void)net::ones_complement_sum(data);
}

void fault(Bytes data) {
    const std::string text(reinterpret_cast<const char*>(data.data()), data.size());
    const auto spec = net::parse_fault(text);
    if (!spec) {
        require(!spec.error().message.empty(), "a refusal says why");
        return;
    }
    const std::string printed = net::to_string(spec.value());
    const auto again = net::parse_fault(printed);
    require(again.ok() && again.value() == spec.value(), "what is printed is read as the same");
}

}  // namespace
}  // namespace ernic::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace ernic;
    fuzz::Input input(data, size);
    const std::uint8_t decoder = input.u8();
    const Bytes rest = input.bytes(size);
    const std::vector<std::byte> copy(rest.begin(), rest.end());
    switch (decoder % 7U) {
        case 0:
            fuzz::send_entry(copy, ionic::WqeLayout::User);
            break;
        case 1:
            fuzz::send_entry(copy, ionic::WqeLayout::Kernel);
            break;
        case 2:
            fuzz::receive_entry(copy);
            break;
        case 3:
            fuzz::header_template(copy);
            break;
        case 4:
            fuzz::version(copy);
            break;
        case 5:
            fuzz::frame(copy);
            break;
        default:
            fuzz::fault(copy);
            break;
    }
    return 0;
}
