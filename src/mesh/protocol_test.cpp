// SPDX-License-Identifier: MIT
#include "mesh/protocol.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace ernic::mesh {
namespace {

Hello hello() {
    Hello hello;
    hello.capabilities = kCapabilityKey | kCapabilityJoin;
    hello.number = 5;
    hello.id.bytes[0] = 1;
    hello.nonce[31] = 2;
    hello.endpoint = {*net::IpAddress::parse("fe80::7"), 7000};
    hello.name = "node5";
    return hello;
}

TEST(MeshProtocol, AHelloArrivesAsItWasSent) {
    HelloFault fault = HelloFault::Content;
    const auto got = decode_hello(encode(hello()), fault);
    ASSERT_TRUE(got);
    EXPECT_EQ(fault, HelloFault::None);
    EXPECT_EQ(got->id, hello().id);
    EXPECT_EQ(got->nonce, hello().nonce);
    EXPECT_EQ(got->number, 5U);
    EXPECT_EQ(got->endpoint, hello().endpoint);
    EXPECT_EQ(got->name, "node5");
    EXPECT_TRUE(got->has(kCapabilityKey));
    EXPECT_FALSE(got->has(kCapabilityManager));
}

TEST(MeshProtocol, AHelloOfALaterVersionThatStillSpeaksThisOneIsUnderstood) {
    Hello later = hello();
    later.version = 9;
    HelloFault fault = HelloFault::None;
    EXPECT_TRUE(decode_hello(encode(later), fault));
    later.oldest_version = 2;
    EXPECT_FALSE(decode_hello(encode(later), fault));
    EXPECT_EQ(fault, HelloFault::Version);
}

TEST(MeshProtocol, AHelloThatMakesNoSenseIsRefused) {
    HelloFault fault = HelloFault::None;
    auto bytes = encode(hello());
    EXPECT_FALSE(decode_hello(Bytes(bytes).first(bytes.size() - 1), fault));
    EXPECT_EQ(fault, HelloFault::NotOurs);
    bytes[0] = std::byte{'X'};
    EXPECT_FALSE(decode_hello(bytes, fault));
    EXPECT_EQ(fault, HelloFault::NotOurs);
    Hello odd = hello();
    odd.name = "no spaces";
    EXPECT_FALSE(decode_hello(encode(odd), fault));
    EXPECT_EQ(fault, HelloFault::Content);
    odd = hello();
    odd.endpoint.port = 0;
    EXPECT_FALSE(decode_hello(encode(odd), fault));
    odd = hello();
    odd.max_body = 1000;
    EXPECT_FALSE(decode_hello(encode(odd), fault));
}

TEST(MeshProtocol, AListOfNodesArrivesAsItWasSent) {
    const NodeList list{
        .complete = true,
        .nodes = {{.id = {{1}}, .number = 1, .endpoint = {net::IpAddress::v4(0x0a000001), 7}, .name = "a"},
                  {.id = {{2}},
                   .number = 2,
                   .endpoint = {net::IpAddress::v4(0x0a000002), 8},
                   .name = "b",
                   .present = false}}};
    const auto body = encode_nodes_body(list);
    const auto got = decode_nodes(encode_nodes_head(list), body);
    ASSERT_TRUE(got);
    EXPECT_TRUE(got->complete);
    ASSERT_EQ(got->nodes.size(), 2U);
    EXPECT_EQ(got->nodes[0].endpoint, list.nodes[0].endpoint);
    EXPECT_EQ(got->nodes[1].name, "b");
    EXPECT_FALSE(got->nodes[1].present);
    EXPECT_FALSE(decode_nodes(encode_nodes_head(list), Bytes(body).first(body.size() - 1)));
}

TEST(MeshProtocol, MacAddressesOfGroupsAreRefused) {
    const std::vector<wire::MacAddress> macs = {{{2, 0, 0, 0, 0, 1}}, {{2, 0, 0, 0, 0, 2}}};
    auto bytes = encode_macs(macs);
    EXPECT_EQ(decode_macs(bytes), macs);
    bytes[6] = std::byte{3};
    EXPECT_FALSE(decode_macs(bytes));
    EXPECT_FALSE(decode_macs(Bytes(bytes).first(7)));
}

TEST(MeshProtocol, SizesAreCheckedBeforeAnythingIsRead) {
    const auto allowed = [](FrameType type, std::uint16_t head, std::uint32_t body) {
        Prefix prefix{};
        prefix.type = static_cast<std::uint8_t>(type);
        prefix.head_size.set(head);
        prefix.body_size.set(body);
        return size_allowed(prefix);
    };
    EXPECT_TRUE(allowed(FrameType::Hello, kHelloSize, 0));
    EXPECT_FALSE(allowed(FrameType::Hello, kHelloSize, 1));
    EXPECT_FALSE(allowed(FrameType::Proof, 31, 0));
    EXPECT_TRUE(allowed(FrameType::Message, 122, kMaxBody));
    EXPECT_FALSE(allowed(FrameType::Message, 122, kMaxBody + 1));
    EXPECT_FALSE(allowed(FrameType::Ethernet, kMaxHead + 1, 60));
    EXPECT_FALSE(allowed(static_cast<FrameType>(0), 8, 0));
    EXPECT_FALSE(allowed(static_cast<FrameType>(10), 8, 0));
}

}  // namespace
}  // namespace ernic::mesh
