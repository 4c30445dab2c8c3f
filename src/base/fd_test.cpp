// SPDX-License-Identifier: MIT
#include "base/fd.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <utility>

namespace ernic {
namespace {

UniqueFd open_null() {
    return UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

bool is_open(int fd) {
    return fcntl(fd, F_GETFD) >= 0;
}

TEST(UniqueFd, ClosesAtTheEndOfItsLife) {
    int number = -1;
    {
        const UniqueFd fd = open_null();
        number = fd.get();
        EXPECT_TRUE(fd.valid());
        EXPECT_TRUE(is_open(number));
    }
    EXPECT_FALSE(is_open(number));
}

TEST(UniqueFd, MovesWithoutClosing) {
    UniqueFd from = open_null();
    const int number = from.get();
    UniqueFd to(std::move(from));
    EXPECT_EQ(to.get(), number);
    EXPECT_TRUE(is_open(number));
    UniqueFd other = open_null();
    const int replaced = other.get();
    other = std::move(to);
    EXPECT_EQ(other.get(), number);
    EXPECT_FALSE(is_open(replaced));
}

TEST(UniqueFd, SurvivesMoveToItself) {
    UniqueFd fd = open_null();
    UniqueFd& same = fd;
    fd = std::move(same);
    EXPECT_TRUE(is_open(fd.get()));
}

TEST(UniqueFd, ReleaseGivesTheDescriptorUp) {
    UniqueFd fd = open_null();
    const UniqueFd owner(fd.release());
    EXPECT_FALSE(fd);
    EXPECT_TRUE(is_open(owner.get()));
}

}  // namespace
}  // namespace ernic
