// SPDX-License-Identifier: MIT
#include "ionic/rss.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "wire/ionic_identity.hpp"

namespace ernic::ionic {
namespace {

using wire::ionic::PacketType;

constexpr std::uint64_t kTable = 0x1000;

/// The verification suite of the Microsoft RSS specification ("Verifying the RSS Hash Calculation").
constexpr std::array<std::uint8_t, 40> kKey = {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67,
                                               0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
                                               0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
                                               0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};

class RssTest : public ::testing::Test {
  protected:
    RssTest() : ram(4096) {
        for (std::size_t i = 0; i < ram.size(); ++i) {
            ram[i] = static_cast<std::byte>(i % 4);
        }
        memory.publish({{*Range::make(kTable, ram.size()), ram.data(), true, true}});
        memory.set_enabled(true);
    }
    wire::ionic::Status configure(std::uint16_t types) {
        wire::ionic::RssAttribute attribute{};
        attribute.types.set(types);
        attribute.key = kKey;
        attribute.table_address.set(kTable);
        return rss.configure(attribute, memory);
    }
    static PacketInfo packet(PacketType type, std::initializer_list<unsigned> tuple, std::uint8_t ports) {
        PacketInfo info;
        info.type = type;
        std::size_t at = 0;
        for (const unsigned byte : tuple) {
            info.tuple[at++] = static_cast<std::byte>(byte);
        }
        info.address_bytes = static_cast<std::uint8_t>(tuple.size() - ports);
        info.port_bytes = ports;
        return info;
    }

    std::vector<std::byte> ram;
    mem::GuestMemory memory;
    Rss rss{128};
};

TEST_F(RssTest, PublishedVectorsIpv4) {
    ASSERT_EQ(configure(0x3f), wire::ionic::Status::Success);
    // 66.9.149.187:2794 to 161.142.100.80:1766
    const auto tcp =
        packet(PacketType::Ipv4Tcp, {66, 9, 149, 187, 161, 142, 100, 80, 0x0a, 0xea, 0x06, 0xe6}, 4);
    EXPECT_EQ(rss.choose(tcp).hash, 0x51ccc178U);
    EXPECT_TRUE(rss.choose(tcp).ports_hashed);
    EXPECT_EQ(rss.choose(tcp).queue, 0x78U % 128 % 4);
    ASSERT_EQ(configure(wire::ionic::rss_type::kIpv4), wire::ionic::Status::Success);
    EXPECT_EQ(rss.choose(tcp).hash, 0x323e8fc2U);
    EXPECT_FALSE(rss.choose(tcp).ports_hashed);
}

TEST_F(RssTest, PublishedVectorIpv6) {
    ASSERT_EQ(configure(0x3f), wire::ionic::Status::Success);
    // 3ffe:2501:200:1fff::7 port 2794 to 3ffe:2501:200:3::1 port 1766
    const auto tcp =
        packet(PacketType::Ipv6Tcp,
               {0x3f, 0xfe, 0x25, 0x01, 0x02, 0x00, 0x1f, 0xff, 0, 0, 0, 0, 0, 0, 0,    7,    0x3f, 0xfe,
                0x25, 0x01, 0x02, 0x00, 0x00, 0x03, 0,    0,    0, 0, 0, 0, 0, 1, 0x0a, 0xea, 0x06, 0xe6},
               4);
    EXPECT_EQ(rss.choose(tcp).hash, 0x40207d3dU);
}

TEST_F(RssTest, OffOrNonIpGoesToQueueZero) {
    ASSERT_EQ(configure(0), wire::ionic::Status::Success);
    EXPECT_FALSE(rss.choose(packet(PacketType::Ipv4, {1, 2, 3, 4, 5, 6, 7, 8}, 0)).hashed);
    ASSERT_EQ(configure(0x3f), wire::ionic::Status::Success);
    EXPECT_FALSE(rss.choose(packet(PacketType::NonIp, {}, 0)).hashed);
}

TEST_F(RssTest, TableIsCopied) {
    ASSERT_EQ(configure(0x3f), wire::ionic::Status::Success);
    const auto ip = packet(PacketType::Ipv4, {66, 9, 149, 187, 161, 142, 100, 80}, 0);
    const auto queue = rss.choose(ip).queue;
    ram.assign(ram.size(), std::byte{99});
    EXPECT_EQ(rss.choose(ip).queue, queue);
}

}  // namespace
}  // namespace ernic::ionic
