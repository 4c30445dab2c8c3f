// SPDX-License-Identifier: MIT
#include "app/target_spec.hpp"

#include <gtest/gtest.h>

#include "app/dhcp_spec.hpp"
#include "app/service_options.hpp"

namespace ernic::app {
namespace {

std::string refused(std::string_view text) {
    const auto parsed = parse_target(text);
    EXPECT_FALSE(parsed) << text;
    return parsed ? "" : parsed.error().message;
}

std::string refused_dhcp(std::string_view text) {
    const auto parsed = parse_dhcp_service(text);
    EXPECT_FALSE(parsed) << text;
    return parsed ? "" : parsed.error().message;
}

TEST(ParseTarget, ReadsAllSettings) {
    const auto spec = parse_target(
        "echo:ip=10.0.0.2/24,ip=fd00::2/64,ip=fd00::3/64,gw=10.0.0.1,mac=02:00:00:00:00:09,mtu=9000");
    ASSERT_TRUE(spec);
    const auto& host = spec.value().host;
    EXPECT_EQ(host.ipv4->to_string(), "10.0.0.2/24");
    ASSERT_EQ(host.ipv6.size(), 2U);
    EXPECT_EQ(host.ipv6[1].to_string(), "fd00::3/64");
    EXPECT_EQ(host.ipv4_gateway->to_string(), "10.0.0.1");
    EXPECT_EQ(host.mtu, 9000);
    EXPECT_EQ(host.mac.bytes[5], 9);
    EXPECT_EQ(parse_target("echo:ip=fd00::2/64").value().host.mtu, 1500);
}

TEST(ParseTarget, ABadSpellingIsRefusedWithTheNearestOne) {
    EXPECT_EQ(refused("ecko:ip=10.0.0.2/24"),
              "unknown target 'ecko': did you mean 'echo'? (valid: echo, null, reflect, nvmeof)");
    EXPECT_EQ(refused("echo:ip=10.0.0.2/24,mto=9000"),
              "unknown echo option 'mto': did you mean 'mtu'? (valid: ip, gw, mac, mtu)");
    EXPECT_EQ(refused("echo:"), refused("echo"));
    EXPECT_EQ(refused("echo:ip=10.0.0.2/24,mtu"), "echo option 'mtu' needs a value: write 'mtu=...'");
    EXPECT_EQ(refused("echo:ip=10.0.0.2/24,mtu=1500,mtu=1500"),
              "echo option 'mtu' is given twice: write one 'mtu=...'");
    EXPECT_EQ(refused("echo:ip=10.0.0.2/24,"), "echo options end with a comma: leave it out");
    EXPECT_EQ(
        refused("echo:ip=10.0.0.2/24,mtu=99999999999999999999"),
        "echo option mtu '99999999999999999999' is out of range: the nearest valid value is '9194' (1280 to "
        "9194)");
    for (const char* text :
         {"echo:ip=127.0.0.1/8", "echo:ip=10.0.0.0/24", "echo:ip=10.0.0.255/24", "echo:ip=ff02::1/64",
          "echo:ip=10.0.0.2/0", "echo:ip=10.0.0.2/24,ip=10.0.1.2/24", "echo:ip=fd00::2/64,gw=10.0.0.1",
          "echo:ip=10.0.0.2/24,gw=10.0.1.1", "echo:ip=10.0.0.2/24,mac=x", "", ":"}) {
        EXPECT_FALSE(refused(text).empty()) << text;
    }
}

TEST(ParseDhcp, ReadsAllSettings) {
    const auto spec = parse_dhcp_service(
        "10.0.4.100-10.0.5.200,prefix=22,ip=10.0.4.9,router=10.0.4.1,dns=1.1.1.1,dns=8.8.8.8,mtu=9000,lease="
        "600,"
        "mac=02:00:00:00:00:09");
    ASSERT_TRUE(spec) << spec.error().message;
    const auto& config = spec.value();
    EXPECT_EQ(config.first.to_string(), "10.0.4.100");
    EXPECT_EQ(config.last.to_string(), "10.0.5.200");
    EXPECT_EQ(config.address.to_string(), "10.0.4.9");
    EXPECT_EQ(config.parameters.subnet.to_string(), "10.0.4.0/22");
    EXPECT_EQ(config.parameters.router->to_string(), "10.0.4.1");
    EXPECT_EQ(config.parameters.name_servers.size(), 2U);
    EXPECT_EQ(config.parameters.mtu, 9000);
    EXPECT_EQ(config.lease_seconds, 600U);
    EXPECT_EQ(parse_dhcp_service("10.0.0.100-10.0.0.200").value().address.to_string(), "10.0.0.1");
}

TEST(ParseDhcp, ABadSpellingIsRefusedWithTheNearestOne) {
    EXPECT_EQ(refused_dhcp("10.0.0.200-10.0.0.100"),
              "dhcp range ends before it begins: write '10.0.0.100-10.0.0.200'");
    EXPECT_EQ(refused_dhcp("10.0.0.1-10.0.255.1,prefix=16"),
              "dhcp range has 65281 addresses: at most 4096 are served");
    for (const char* text : {"", "-", "10.0.0.100", "10.0.0.100-", "fd00::1-fd00::2", "10.0.0.100-10.0.0.255",
                             "10.0.0.100-10.0.0.200,ip=10.0.1.1", "10.0.0.100-10.0.0.200,router=10.0.1.1",
                             "10.0.0.100-10.0.0.200,dns=x", "10.0.0.100-10.0.0.200,prefix=31",
                             "10.0.0.100-10.0.0.200,lease=59"}) {
        EXPECT_FALSE(refused_dhcp(text).empty()) << text;
    }
}

TEST(ParseServices, AddressesAreMadeAndDiffer) {
    const std::vector<std::string> targets = {"echo:ip=10.0.0.2/24", "echo:ip=10.0.0.3/24"};
    const std::vector<std::string> dhcp = {"10.0.0.100-10.0.0.200"};
    const wire::MacAddress card{{2, 0, 0, 0, 0, 1}};
    const auto services = parse_services({targets, dhcp, {}}, card, "/tmp/socket");
    ASSERT_TRUE(services) << services.error().message;
    const wire::MacAddress first = services.value().targets[0].host.mac;
    const wire::MacAddress second = services.value().targets[1].host.mac;
    EXPECT_FALSE(first.zero());
    EXPECT_NE(first, second);
    EXPECT_NE(first, services.value().dhcp->mac);
    const auto elsewhere = parse_services({targets, dhcp, {}}, card, "/tmp/other");
    EXPECT_NE(first, elsewhere.value().targets[0].host.mac);
    EXPECT_FALSE(parse_services({{}, {}, {}}, card, "/tmp/socket").value().any());
}

TEST(ParseServices, NothingMayBeThereTwice) {
    const wire::MacAddress card{{2, 0, 0, 0, 0, 1}};
    const auto parse = [&card](const std::vector<std::string>& targets) {
        return parse_services({targets, {}, {}}, card, "/tmp/socket").ok();
    };
    EXPECT_TRUE(parse({"echo:ip=10.0.0.2/24"}));
    EXPECT_FALSE(parse({"echo:ip=10.0.0.2/24", "echo:ip=10.0.0.2/24"}));
    EXPECT_FALSE(parse({"echo:ip=10.0.0.2/24,mac=02:00:00:00:00:01"}));
    EXPECT_FALSE(parse(std::vector<std::string>(17, "echo:ip=10.0.0.2/24")));
}

TEST(ParseTarget, PortsWithoutAHost) {
    EXPECT_EQ(parse_target("null").value().kind, TargetSpec::Kind::Null);
    EXPECT_EQ(parse_target("reflect").value().kind, TargetSpec::Kind::Reflect);
    EXPECT_TRUE(parse_target("reflect").value().host.mac.zero());
    EXPECT_EQ(parse_target("reflect:mac=02:00:00:00:00:77").value().host.mac,
              (wire::MacAddress{{0x02, 0, 0, 0, 0, 0x77}}));
    EXPECT_NE(parse_target("null:mac=02:00:00:00:00:77").error().message.find("has no options"),
              std::string::npos);
    EXPECT_NE(parse_target("reflect:ip=10.0.0.2/24").error().message.find("'mac'"), std::string::npos);
    EXPECT_NE(parse_target("nul").error().message.find("'null'"), std::string::npos);
}

}  // namespace
}  // namespace ernic::app
