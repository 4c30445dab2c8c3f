// SPDX-License-Identifier: MIT
#include "base/result.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace ernic {
namespace {

Result<int> half(int value) {
    if (value % 2 != 0) {
        return Error{Errc::InvalidArgument, "odd"};
    }
    return value / 2;
}

TEST(Result, IsAValueOrAnError) {
    const Result<int> good = half(4);
    EXPECT_TRUE(good.ok());
    EXPECT_TRUE(static_cast<bool>(good));
    EXPECT_EQ(good.value(), 2);
    const Result<int> bad = half(3);
    EXPECT_FALSE(bad.ok());
    EXPECT_EQ(bad.error().code, Errc::InvalidArgument);
    EXPECT_EQ(bad.error().message, "odd");
}

TEST(Result, CarriesValuesThatOnlyMove) {
    Result<std::unique_ptr<int>> result = std::make_unique<int>(5);
    EXPECT_EQ(**result, 5);
    const std::unique_ptr<int> taken = std::move(result.value());
    EXPECT_EQ(*taken, 5);
}

TEST(Result, CanTurnIntoAnErrorLater) {
    Result<std::string> text = std::string("x");
    EXPECT_EQ(text->size(), 1U);
    text = Error{Errc::Io, "gone"};
    EXPECT_EQ(text.error().code, Errc::Io);
}

TEST(Status, IsSuccessWithoutAValue) {
    const Status good = Done{};
    EXPECT_TRUE(good.ok());
    const Status bad = Error{Errc::Busy, "later"};
    EXPECT_EQ(bad.error().code, Errc::Busy);
}

}  // namespace
}  // namespace ernic
