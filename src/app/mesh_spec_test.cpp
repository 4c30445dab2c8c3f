// SPDX-License-Identifier: MIT
#include "app/mesh_spec.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ernic::app {
namespace {

using ::testing::HasSubstr;

TEST(ParseMesh, RolesPlacesAndOptionsAreRead) {
    const auto manager = parse_mesh("manager:listen:7000,name=alpha,heartbeat=100,dead-after=500");
    ASSERT_TRUE(manager) << manager.error().message;
    EXPECT_TRUE(manager.value().is_manager);
    EXPECT_EQ(manager.value().host, "");
    EXPECT_EQ(manager.value().port, 7000);
    EXPECT_EQ(manager.value().name, "alpha");
    EXPECT_EQ(manager.value().heartbeat, 100'000'000U);
    EXPECT_EQ(manager.value().dead_after, 500'000'000U);
    const auto worker = parse_mesh("worker:alpha.example.org:7000,key=/etc/mesh.key,bind=0.0.0.0");
    ASSERT_TRUE(worker) << worker.error().message;
    EXPECT_FALSE(worker.value().is_manager);
    EXPECT_EQ(worker.value().host, "alpha.example.org");
    EXPECT_EQ(worker.value().key_file, "/etc/mesh.key");
    const auto six = parse_mesh("worker:[::1]:7000");
    ASSERT_TRUE(six) << six.error().message;
    EXPECT_EQ(six.value().host, "::1");
}

TEST(ParseMesh, WhatIsPrintedIsReadBack) {
    for (const char* const text :
         {"manager:listen:7000", "manager:10.0.0.1:7000,key=k", "worker:[fe80::7]:1,key=k",
          "worker:localhost:7000,heartbeat=20,dead-after=100,name=x"}) {
        const auto spec = parse_mesh(text);
        ASSERT_TRUE(spec) << spec.error().message;
        EXPECT_EQ(to_string(spec.value()), text);
        EXPECT_EQ(parse_mesh(to_string(spec.value())).value(), spec.value());
    }
}

TEST(ParseMesh, ThreadsOfItsOwnAreRefusedInOneSentence) {
    EXPECT_TRUE(parse_mesh("manager:listen:7000,io-threads=0"));
    const auto spec = parse_mesh("manager:listen:7000,io-threads=2");
    ASSERT_FALSE(spec);
    EXPECT_THAT(spec.error().message, HasSubstr("io-threads=2"));
    EXPECT_THAT(spec.error().message, HasSubstr("only 0 is possible"));
}

TEST(ParseMesh, BeyondThisHostThereMustBeAKey) {
    for (const char* const text : {"manager:10.0.0.1:7000", "manager:listen:7000,bind=0.0.0.0",
                                   "manager:listen:7000,bind=::", "worker:[fd00::1]:7000"}) {
        const auto spec = parse_mesh(text);
        ASSERT_FALSE(spec) << text;
        EXPECT_THAT(spec.error().message, HasSubstr("needs a key"));
    }
    EXPECT_TRUE(parse_mesh("manager:127.0.0.1:7000"));
    EXPECT_TRUE(parse_mesh("manager:listen:7000,bind=127.0.0.2"));
    // Who this is, only a name server knows: prepare_mesh() looks again.
    EXPECT_TRUE(parse_mesh("worker:alpha.example.org:7000"));
}

TEST(ParseMesh, WithoutBindANodeListensOnLoopback) {
    const auto config = prepare_mesh(parse_mesh("manager:listen:7000").value());
    ASSERT_TRUE(config);
    EXPECT_EQ(config.value().listen.to_string(), "127.0.0.1:7000");
    const auto worker = prepare_mesh(parse_mesh("worker:127.0.0.1:7000").value());
    ASSERT_TRUE(worker);
    EXPECT_EQ(worker.value().listen.to_string(), "127.0.0.1:0");
    EXPECT_EQ(worker.value().manager.to_string(), "127.0.0.1:7000");
    EXPECT_FALSE(worker.value().name.empty());
}

}  // namespace
}  // namespace ernic::app
