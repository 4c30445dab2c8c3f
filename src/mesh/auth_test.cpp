// SPDX-License-Identifier: MIT
#include "mesh/auth.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>

namespace ernic::mesh {
namespace {

Bytes bytes(std::string_view text) {
    return std::as_bytes(std::span(text));
}

TEST(MeshAuth, BothSidesDeriveTheSameAndEachPurposeHasItsOwnKey) {
    const Key key = Key::of(bytes("0123456789abcdef"));
    const SessionKeys a = derive(key, bytes("dialer"), bytes("acceptor"));
    const SessionKeys b = derive(key, bytes("dialer"), bytes("acceptor"));
    EXPECT_EQ(a.from_dialer, b.from_dialer);
    EXPECT_EQ(a.acceptor_proof, b.acceptor_proof);
    const std::array<Digest, 4> all = {a.dialer_proof, a.acceptor_proof, a.from_dialer, a.from_acceptor};
    for (std::size_t i = 0; i < all.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            EXPECT_NE(all[i], all[j]);
        }
    }
}

TEST(MeshAuth, AnotherKeyOrAnotherConversationGivesOthers) {
    const Key key = Key::of(bytes("0123456789abcdef"));
    const SessionKeys a = derive(key, bytes("dialer"), bytes("acceptor"));
    EXPECT_NE(a.dialer_proof, derive(key, bytes("dialer"), bytes("acceptor2")).dialer_proof);
    EXPECT_NE(a.dialer_proof, derive(key, bytes("dialer2"), bytes("acceptor")).dialer_proof);
    EXPECT_NE(a.dialer_proof,
              derive(Key::of(bytes("0123456789abcdeF")), bytes("dialer"), bytes("acceptor")).dialer_proof);
}

TEST(MeshAuth, TagsDependOnPlacePartAndContent) {
    const Digest key{};
    Seal sender(key);
    Seal receiver(key);
    const Tag first = sender.head(bytes("head"));
    EXPECT_TRUE(same(first, receiver.head(bytes("head"))));
    const Tag body = sender.body(bytes("head"));
    EXPECT_FALSE(same(first, body)) << "a head is no body";
    EXPECT_TRUE(same(body, receiver.body(bytes("head"))));
    const Tag second = sender.head(bytes("head"));
    EXPECT_FALSE(same(first, second)) << "a frame cannot be repeated";
    EXPECT_FALSE(same(second, receiver.head(bytes("heae"))));
}

TEST(MeshAuth, ATagIsTheStartOfTheHmacThatTheDocumentDescribes) {
    // printf '\1\0\0\0\0\0\0\0\1head' | openssl dgst -sha256 -mac HMAC -macopt hexkey:00..00
    Seal seal(Digest{});
    const Tag tag = seal.head(bytes("head"));
    std::string hex;
    for (const std::byte byte : tag) {
        hex += fmt::format("{:02x}", static_cast<unsigned>(byte));
    }
    EXPECT_EQ(hex, "bcaf3b0a8a737d74a1bf9095412e48b2");
}

}  // namespace
}  // namespace ernic::mesh
