// SPDX-License-Identifier: MIT
#include "base/socket_path.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace ernic {
namespace {

class SocketPathTest : public testing::Test {
  protected:
    SocketPathTest() {
        std::string pattern = (std::filesystem::temp_directory_path() / "ernic-path-XXXXXX").string();
        folder_ = ::mkdtemp(pattern.data());
        path_ = folder_ + "/socket";
    }
    ~SocketPathTest() override { std::filesystem::remove_all(folder_); }

    Result<SocketPath> listen(mode_t mode = 0600, const std::string& group = {}) {
        return SocketPath::listen({.path = path_, .mode = mode, .group = group});
    }
    [[nodiscard]] struct stat status() const {
        struct stat status {};
        EXPECT_EQ(::lstat(path_.c_str(), &status), 0);
        return status;
    }

    std::string folder_;
    std::string path_;
};

TEST_F(SocketPathTest, SocketExistsWhileTheObjectLives) {
    {
        const auto socket = listen();
        ASSERT_TRUE(socket.ok());
        EXPECT_TRUE(S_ISSOCK(status().st_mode));
        EXPECT_EQ(status().st_mode & 0777U, 0600U);
    }
    EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(SocketPathTest, ModeIsExactWhateverTheUmask) {
    const mode_t old = ::umask(0077);
    const auto socket = listen(0666);
    ::umask(old);

    ASSERT_TRUE(socket.ok());
    EXPECT_EQ(status().st_mode & 0777U, 0666U);
}

TEST_F(SocketPathTest, GroupMayConnectWhenNamed) {
    const auto socket = listen(0600, std::to_string(::getgid()));

    ASSERT_TRUE(socket.ok());
    EXPECT_EQ(status().st_mode & 0777U, 0660U);
    EXPECT_EQ(status().st_gid, ::getgid());
}

TEST_F(SocketPathTest, UnknownGroupIsRefusedBeforeTheSocketExists) {
    const auto socket = listen(0600, "no-such-group-here");

    ASSERT_FALSE(socket.ok());
    EXPECT_EQ(socket.error().code, Errc::InvalidArgument);
    EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(SocketPathTest, StaleSocketOfADeadServerIsReplaced) {
    {
        const UniqueFd dead(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::memcpy(address.sun_path, path_.data(), path_.size());
        ASSERT_EQ(::bind(dead.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    }

    EXPECT_TRUE(listen().ok());
}

TEST_F(SocketPathTest, LiveServerIsLeftAlone) {
    const auto first = listen();
    ASSERT_TRUE(first.ok());

    const auto second = listen();

    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().code, Errc::Busy);
    EXPECT_TRUE(S_ISSOCK(status().st_mode));
}

TEST_F(SocketPathTest, TheWayIsClearedWithoutListening) {
    EXPECT_TRUE(SocketPath::make_way(path_)) << "nothing is there";
    {
        const auto live = listen();
        ASSERT_TRUE(live.ok());
        EXPECT_EQ(SocketPath::make_way(path_).error().code, Errc::Busy);
        EXPECT_TRUE(std::filesystem::exists(path_));
    }
    std::ofstream(path_) << "not a socket";
    EXPECT_EQ(SocketPath::make_way(path_).error().code, Errc::AlreadyExists);
    EXPECT_FALSE(SocketPath::make_way(std::string(200, 'x')));
}

TEST_F(SocketPathTest, OtherFilesAreNeverRemoved) {
    std::ofstream(path_) << "precious";

    const auto socket = listen();

    ASSERT_FALSE(socket.ok());
    EXPECT_EQ(socket.error().code, Errc::AlreadyExists);
    EXPECT_EQ(std::filesystem::file_size(path_), 8U);
}

TEST_F(SocketPathTest, BadPathsAreExplained) {
    path_ = "";
    EXPECT_EQ(listen().error().code, Errc::InvalidArgument);
    path_ = folder_ + "/" + std::string(200, 'x');
    EXPECT_EQ(listen().error().code, Errc::InvalidArgument);
    path_ = folder_ + "/missing/socket";
    EXPECT_EQ(listen().error().code, Errc::Io);
}

TEST_F(SocketPathTest, SuccessorsSocketIsNotRemoved) {
    auto first = listen();
    ASSERT_TRUE(first.ok());
    std::filesystem::remove(path_);
    const auto second = listen();
    ASSERT_TRUE(second.ok());

    first->close();

    EXPECT_TRUE(S_ISSOCK(status().st_mode));
}

}  // namespace
}  // namespace ernic
