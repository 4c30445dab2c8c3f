// SPDX-License-Identifier: MIT
#include "app/backend_spec.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace ernic::app {
namespace {

using net::PayloadMode;
using testing::HasSubstr;

TEST(ParseBackend, ReadsEveryMode) {
    const std::vector<std::pair<std::string, PayloadMode>> modes = {
        {"preserve", PayloadMode::Preserve},   {"zeros", PayloadMode::Zeros},
        {"ones", PayloadMode::Ones},           {"increment", PayloadMode::Increment},
        {"decrement", PayloadMode::Decrement}, {"alternate", PayloadMode::Alternate},
        {"random", PayloadMode::Random}};
    for (const auto& [name, mode] : modes) {
        const auto spec = parse_backend("loopback:mode=" + name);
        ASSERT_TRUE(spec.ok()) << name;
        EXPECT_EQ(spec.value(), (BackendSpec{BackendSpec::Kind::Loopback, mode, false})) << name;
    }
}

TEST(ParseBackend, ReadsKindsAndOptionsInAnyOrder) {
    EXPECT_EQ(parse_backend("none").value().kind, BackendSpec::Kind::None);
    EXPECT_EQ(parse_backend("loopback").value(), BackendSpec{});
    const BackendSpec both{BackendSpec::Kind::Loopback, PayloadMode::Zeros, true};
    EXPECT_EQ(parse_backend("loopback:mode=zeros,md5").value(), both);
    EXPECT_EQ(parse_backend("loopback:md5,mode=zeros").value(), both);
}

TEST(ParseBackend, WhatToStringWritesReadsBackTheSame) {
    for (const char* const text :
         {"none", "loopback", "loopback:md5", "loopback:mode=ones", "loopback:mode=ones,md5"}) {
        const auto spec = parse_backend(text);
        ASSERT_TRUE(spec.ok()) << text;
        EXPECT_EQ(to_string(spec.value()), text);
    }
}

TEST(ParseBackend, RefusesWithTheNearestSpelling) {
    const std::vector<std::pair<std::string, std::string>> cases = {
        {"", "unknown backend ''"},
        {"loopbak", "did you mean 'loopback'?"},
        {"Loopback", "did you mean 'loopback'?"},
        {"loopback:", "unknown loopback option ''"},
        {"loopback:mod=zeros", "did you mean 'mode'?"},
        {"loopback:md4", "did you mean 'md5'?"},
        {"loopback:mode=zeroes", "did you mean 'zeros'?"},
        {"loopback:mode=", "unknown loopback mode ''"},
        {"loopback:mode", "'mode' needs a value"},
        {"loopback:md5=1", "'md5' takes no value"},
        {"loopback:md5,md5", "'md5' is given twice"},
        {"loopback:mode=ones,mode=ones", "'mode' is given twice"},
        {"loopback:md5,", "unknown loopback option ''"},
        {"none:md5", "'none' takes no options"}};
    for (const auto& [text, sentence] : cases) {
        const auto spec = parse_backend(text);
        ASSERT_FALSE(spec.ok()) << text;
        EXPECT_EQ(spec.error().code, Errc::InvalidArgument);
        EXPECT_THAT(spec.error().message, HasSubstr(sentence));
        EXPECT_THAT(spec.error().message, testing::Not(HasSubstr("\n")));
    }
}

}  // namespace
}  // namespace ernic::app
