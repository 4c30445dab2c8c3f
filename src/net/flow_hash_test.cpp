// SPDX-License-Identifier: MIT
#include "net/flow_hash.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <vector>

#include "wire/ethernet.hpp"

namespace ernic::net {
namespace {

struct Flow {
    std::uint16_t source_port = 1000;
    std::uint8_t protocol = wire::kIpProtocolTcp;
    std::uint16_t fragment = 0;
    bool ipv4 = true;
    bool tagged = false;
};

std::vector<std::byte> packet(const Flow& flow) {
    std::vector<std::byte> bytes;
    const auto append = [&](const auto& value) {
        const Bytes part = bytes_of(value);
        bytes.insert(bytes.end(), part.begin(), part.end());
    };
    const std::uint16_t type = flow.ipv4 ? wire::kEtherTypeIpv4 : wire::kEtherTypeIpv6;
    append(wire::EthernetHeader{{}, {}, be16(flow.tagged ? wire::kEtherTypeVlan : type)});
    if (flow.tagged) {
        append(wire::VlanTag{be16(5), be16(type)});
    }
    if (flow.ipv4) {
        wire::Ipv4Header ip{};
        ip.version_ihl = 0x45;
        ip.protocol = flow.protocol;
        ip.flags_fragment.set(flow.fragment);
        ip.source.set(0x0a000001);
        append(ip);
    } else {
        wire::Ipv6Header ip{};
        ip.next_header = flow.protocol;
        append(ip);
    }
    append(be16(flow.source_port));
    append(be16(80));
    return bytes;
}

TEST(FlowHash, PortsSpreadFlowsOverQueues) {
    for (const bool ipv4 : {true, false}) {
        for (const bool tagged : {true, false}) {
            std::set<std::uint32_t> queues;
            for (std::uint16_t port = 1000; port < 1064; ++port) {
                const auto frame = packet({.source_port = port, .ipv4 = ipv4, .tagged = tagged});
                queues.insert(flow_hash(frame) % 4);
                EXPECT_EQ(flow_hash(frame), flow_hash(Bytes(frame)));
            }
            EXPECT_EQ(queues.size(), 4U);
        }
    }
}

TEST(FlowHash, FragmentsOfAFlowStayTogether) {
    // Ports are in the first fragment only.
    EXPECT_EQ(flow_hash(packet({.source_port = 1, .fragment = 0x2000})),
              flow_hash(packet({.source_port = 2, .fragment = 0x00b9})));
    EXPECT_EQ(flow_hash(packet({.source_port = 1, .protocol = 1})),
              flow_hash(packet({.source_port = 2, .protocol = 1})));
    EXPECT_NE(flow_hash(packet({.source_port = 1})), flow_hash(packet({.source_port = 2})));
}

TEST(FlowHash, AnythingShortIsHashedWithoutReadingBehindIt) {
    const auto whole = packet({.tagged = true});
    for (std::size_t size = 0; size <= whole.size(); ++size) {
        const std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
        (void)flow_hash(cut);
    }
    auto lying = packet({});
    lying[14] = std::byte{0x4f};  // options that are not there
    (void)flow_hash(lying);
}

}  // namespace
}  // namespace ernic::net
