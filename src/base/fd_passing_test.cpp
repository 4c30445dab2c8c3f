// SPDX-License-Identifier: MIT
#include "base/fd_passing.hpp"

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <array>

namespace ernic {
namespace {

class FdPassing : public testing::Test {
  protected:
    FdPassing() {
        std::array<int, 2> ends{};
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
        near_.reset(ends[0]);
        far_.reset(ends[1]);
    }
    std::vector<UniqueFd> receive() {
        alignas(cmsghdr) std::array<char, fd_control_size(4)> control{};
        std::array<std::byte, 16> bytes{};
        iovec room{bytes.data(), bytes.size()};
        msghdr message{};
        message.msg_iov = &room;
        message.msg_iovlen = 1;
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        EXPECT_EQ(::recvmsg(far_.get(), &message, 0), 1);
        return received_fds(message);
    }

    UniqueFd near_;
    UniqueFd far_;
};

TEST_F(FdPassing, ADescriptorArrivesAndIsTheSameFile) {
    const UniqueFd event(::eventfd(0, EFD_CLOEXEC));
    const std::array data = {std::byte{1}};
    ASSERT_EQ(send_with_fd(near_.get(), data, event.get()), 1);
    const auto fds = receive();
    ASSERT_EQ(fds.size(), 1U);
    ASSERT_EQ(::eventfd_write(fds[0].get(), 7), 0);
    eventfd_t value = 0;
    ASSERT_EQ(::eventfd_read(event.get(), &value), 0);
    EXPECT_EQ(value, 7U);
}

TEST_F(FdPassing, WithoutADescriptorJustTheBytesArrive) {
    const std::array data = {std::byte{1}};
    ASSERT_EQ(send_with_fd(near_.get(), data, -1), 1);
    EXPECT_TRUE(receive().empty());
}

TEST_F(FdPassing, ASocketNobodyReadsIsAnErrorAndNoSignal) {
    far_.reset();
    const std::array data = {std::byte{1}};
    EXPECT_EQ(send_with_fd(near_.get(), data, -1), -1);
    EXPECT_EQ(errno, EPIPE);
}

}  // namespace
}  // namespace ernic
