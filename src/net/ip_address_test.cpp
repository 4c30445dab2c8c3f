// SPDX-License-Identifier: MIT
#include "net/ip_address.hpp"

#include <gtest/gtest.h>

namespace ernic::net {
namespace {

IpAddress of(std::string_view text) {
    return IpAddress::parse(text).value();
}

TEST(IpAddress, ReadsAndWritesBothFamilies) {
    EXPECT_EQ(of("10.0.0.1"), IpAddress::v4(0x0a000001));
    EXPECT_EQ(of("10.0.0.1").value_v4(), 0x0a000001U);
    EXPECT_EQ(of("10.0.0.1").bytes().size(), 4U);
    EXPECT_EQ(of("fd00:0::2").to_string(), "fd00::2");
    EXPECT_EQ(of("fd00::2").bytes().size(), 16U);
    EXPECT_NE(of("::"), of("0.0.0.0"));
    for (const char* text : {"", "10.0.0", "10.0.0.256", "fd00::g", "10.0.0.1 ", "fd00::1%eth0"}) {
        EXPECT_FALSE(IpAddress::parse(text)) << text;
    }
}

TEST(IpAddress, KnowsWhatAHostMayHave) {
    for (const char* text : {"10.0.0.1", "223.255.255.255", "fe80::1", "2001:db8::"}) {
        EXPECT_TRUE(of(text).unicast()) << text;
    }
    for (const char* text :
         {"0.0.0.0", "0.1.2.3", "127.0.0.1", "224.0.0.1", "255.255.255.255", "::", "::1", "ff02::1"}) {
        EXPECT_FALSE(of(text).unicast()) << text;
    }
}

TEST(IpPrefix, ReadsAndContains) {
    const auto four = IpPrefix::parse("10.0.0.2/22").value();
    EXPECT_TRUE(four.contains(of("10.0.3.255")));
    EXPECT_FALSE(four.contains(of("10.0.4.0")));
    EXPECT_FALSE(four.contains(of("a00::")));
    EXPECT_EQ(four.last_v4(), of("10.0.3.255"));
    EXPECT_EQ(four.to_string(), "10.0.0.2/22");
    EXPECT_TRUE(IpPrefix::parse("0.0.0.0/0").value().contains(of("1.2.3.4")));
    EXPECT_TRUE(IpPrefix::parse("10.0.0.2/32").value().contains(of("10.0.0.2")));
    EXPECT_TRUE(IpPrefix::parse("fd00::2/64").value().contains(of("fd00::ffff")));
    EXPECT_FALSE(IpPrefix::parse("fd00::2/64").value().contains(of("fd00:0:0:1::")));
    for (const char* text :
         {"10.0.0.2", "10.0.0.2/", "10.0.0.2/33", "10.0.0.2/x", "10.0.0.2/-1", "fd00::/129", "/24"}) {
        EXPECT_FALSE(IpPrefix::parse(text)) << text;
    }
}

TEST(IpAddress, MakesAddressesForDiscovery) {
    const wire::MacAddress mac{{2, 0x11, 0x22, 0x33, 0x44, 0x55}};
    EXPECT_EQ(link_local_of(mac), of("fe80::11:22ff:fe33:4455"));
    EXPECT_EQ(solicited_node_of(of("fd00::12:3456")), of("ff02::1:ff12:3456"));
    EXPECT_EQ(multicast_mac_of(of("ff02::1:ff12:3456")),
              (wire::MacAddress{{0x33, 0x33, 0xff, 0x12, 0x34, 0x56}}));
}

}  // namespace
}  // namespace ernic::net
