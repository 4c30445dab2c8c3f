// SPDX-License-Identifier: MIT
// Only for the unit tests of this folder: a function that remembers what happened to it, a client that speaks
// raw bytes, and a server between them on a loop that is turned by hand.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "vfio_user/server.hpp"
#include "wire/pci.hpp"

namespace ernic::vfio_user::test {

namespace w = wire::vfio_user;
using Buffer = std::vector<std::byte>;

/// BAR0 of 64 KiB and BAR2 of 8 KiB that behave like RAM, config space like RAM, 8 vectors.
class FakeFunction final : public pci::Function {
  public:
    struct Write {
        unsigned bar;
        std::uint64_t offset;
        std::uint64_t value;
        std::size_t size;
        friend bool operator==(const Write&, const Write&) = default;
    };

    [[nodiscard]] std::uint64_t bar_size(unsigned bar) const override {
        return bar < 6 ? bars_[bar].size() : 0;
    }
    void bar_read(unsigned bar, std::uint64_t offset, MutableBytes out) override {
        std::memcpy(out.data(), bars_[bar].data() + offset, out.size());
    }
    void bar_write(unsigned bar, std::uint64_t offset, Bytes data) override {
        std::memcpy(bars_[bar].data() + offset, data.data(), data.size());
        le64 value(0);
        std::memcpy(&value, data.data(), std::min<std::size_t>(8, data.size()));
        writes.push_back({bar, offset, value.get(), data.size()});
        if (on_write) {
            on_write(writes.back());
        }
    }
    void config_read(std::uint32_t offset, MutableBytes out) override {
        std::memcpy(out.data(), config_.data() + offset, out.size());
    }
    void config_write(std::uint32_t offset, Bytes data) override {
        std::memcpy(config_.data() + offset, data.data(), data.size());
    }
    [[nodiscard]] std::uint16_t msix_vectors() const override { return 8; }
    void msix_vector_ready(std::uint16_t vector) override { ready.push_back(vector); }
    void reset() override { ++resets; }

    std::vector<Write> writes;
    std::function<void(const Write&)> on_write;
    std::vector<std::uint16_t> ready;
    int resets = 0;

  private:
    std::array<Buffer, 6> bars_{Buffer(0x10000), Buffer(), Buffer(0x2000), Buffer(), Buffer(), Buffer()};
    Buffer config_ = Buffer(wire::pci::kConfigSize);
};

/// Bytes of several values, one after the other.
template <typename... T>
Buffer pack(const T&... values) {
    Buffer bytes((sizeof(T) + ...));
    std::size_t at = 0;
    ((std::memcpy(bytes.data() + at, &values, sizeof(T)), at += sizeof(T)), ...);
    return bytes;
}

/// VERSION with a JSON text and, if wanted, its NUL.
inline Buffer version_payload(std::string_view text, bool terminated = true, std::uint16_t major = 0,
                              std::uint16_t minor = 0) {
    Buffer bytes(sizeof(w::Version) + text.size() + (terminated ? 1 : 0));
    const w::Version version{le16(major), le16(minor)};
    std::memcpy(bytes.data(), &version, sizeof(version));
    std::memcpy(bytes.data() + sizeof(version), text.data(), text.size());
    return bytes;
}

/// A whole message.
inline Buffer message(w::Command command, const Buffer& payload, std::uint16_t id = 1,
                      std::uint32_t flags = 0) {
    Buffer bytes = pack(w::Header{le16(id), le16(static_cast<std::uint16_t>(command)),
                                  le32(static_cast<std::uint32_t>(sizeof(w::Header) + payload.size())),
                                  le32(flags), le32(0)});
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    return bytes;
}

inline Buffer write_message(std::uint32_t region, std::uint64_t offset, std::uint64_t value,
                            std::uint32_t size = 8, std::uint32_t flags = w::Header::kFlagNoReply) {
    Buffer payload = pack(w::RegionAccess{le64(offset), le32(region), le32(size)});
    const le64 bytes(value);
    payload.insert(payload.end(), bytes_of(bytes).begin(), bytes_of(bytes).begin() + size);
    return message(w::Command::RegionWrite, payload, 7, flags);
}

inline Buffer map_payload(std::uint64_t iova, std::uint64_t size, std::uint64_t offset = 0,
                          std::uint32_t flags = 3) {
    return pack(w::DmaMap{le32(sizeof(w::DmaMap)), le32(flags), le64(offset), le64(iova), le64(size)});
}

inline Buffer unmap_payload(std::uint64_t iova, std::uint64_t size, std::uint32_t flags = 0) {
    return pack(w::DmaUnmap{le32(sizeof(w::DmaUnmap)), le32(flags), le64(iova), le64(size)});
}

inline Buffer irqs_payload(std::uint32_t flags, std::uint32_t index, std::uint32_t start,
                           std::uint32_t count) {
    return pack(w::IrqSet{le32(sizeof(w::IrqSet)), le32(flags), le32(index), le32(start), le32(count)});
}

inline UniqueFd memory_file(std::size_t size) {
    UniqueFd fd(::memfd_create("guest", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(size)), 0);
    return fd;
}

inline std::size_t open_fds() {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

/// One reply or command from the server.
struct Answer {
    w::Header header;
    Buffer payload;

    [[nodiscard]] int error() const { return header.failed() ? static_cast<int>(header.error.get()) : 0; }
    template <typename T>
    [[nodiscard]] T as() const {
        return *read_value<T>(payload);
    }
};

/// The VMM's end of the socket.
class Client {
  public:
    explicit Client(UniqueFd socket) : socket_(std::move(socket)) {}

    static Client connect(const std::string& path) {
        UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::memcpy(address.sun_path, path.data(), path.size());
        EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
        return Client(std::move(fd));
    }

    /// One sendmsg, with file descriptors if given. Returns what the kernel took.
    ssize_t send(const Buffer& bytes, const std::vector<int>& fds = {}) {
        iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
        msghdr header{};
        header.msg_iov = &part;
        header.msg_iovlen = 1;
        alignas(cmsghdr) std::array<char, 512> control{};
        if (!fds.empty()) {
            header.msg_control = control.data();
            header.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
            cmsghdr* head = CMSG_FIRSTHDR(&header);
            head->cmsg_level = SOL_SOCKET;
            head->cmsg_type = SCM_RIGHTS;
            head->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
            std::memcpy(CMSG_DATA(head), fds.data(), fds.size() * sizeof(int));
        }
        return ::sendmsg(socket_.get(), &header, MSG_NOSIGNAL);
    }

    /// The next whole message, if it has arrived.
    std::optional<Answer> receive() {
        fill();
        const auto header = read_value<w::Header>(in_);
        if (!header || in_.size() < header->size.get()) {
            return std::nullopt;
        }
        Answer answer{*header, Buffer(in_.begin() + sizeof(w::Header), in_.begin() + header->size.get())};
        in_.erase(in_.begin(), in_.begin() + header->size.get());
        return answer;
    }

    /// True when the server has closed the connection (everything before that is kept for receive()).
    bool closed() {
        fill();
        return closed_;
    }

    [[nodiscard]] int fd() const { return socket_.get(); }
    void close() { socket_.reset(); }

  private:
    void fill() {
        std::array<std::byte, 65536> part;
        while (!closed_) {
            const ssize_t size = ::recv(socket_.get(), part.data(), part.size(), MSG_DONTWAIT);
            if (size <= 0) {
                closed_ = size == 0 || errno != EAGAIN;
                return;
            }
            in_.insert(in_.end(), part.begin(), part.begin() + size);
        }
    }

    UniqueFd socket_;
    Buffer in_;
    bool closed_ = false;
};

/// A log that keeps its lines.
class MemorySink final : public log::Sink {
  public:
    void write(log::Level level, std::string_view, std::string_view text) override {
        lines.emplace_back(level, std::string(text));
    }
    std::vector<std::pair<log::Level, std::string>> lines;
};

/// A listening server in a private folder.
class ServerTest : public testing::Test {
  protected:
    ServerTest() {
        std::string pattern = (std::filesystem::temp_directory_path() / "ernic-vfio-XXXXXX").string();
        folder_ = ::mkdtemp(pattern.data());
        path_ = folder_ + "/socket";
        server_ = std::make_unique<Server>(loop_, registry_, log::Logger(sink_, "test"),
                                           SocketOptions{.path = path_});
        server_->attach(function_);
        EXPECT_TRUE(server_->listen().ok());
    }
    ~ServerTest() override {
        server_->close();
        std::filesystem::remove_all(folder_);
    }

    /// Lets the server do everything it can without waiting.
    void pump(int rounds = 4) {
        for (int i = 0; i < rounds; ++i) {
            loop_.run_once(false);
        }
    }

    Client connect() {
        Client client = Client::connect(path_);
        pump();
        return client;
    }

    /// A client past VERSION, with WRITE_MULTI.
    Client negotiated() {
        Client client = connect();
        const std::string text = R"({"capabilities":{"write_multiple":true}})";
        EXPECT_EQ(call(client, w::Command::Version, version_payload(text))->error(), 0);
        return client;
    }

    /// Sends one command and returns the answer, if there is one.
    std::optional<Answer> call(Client& client, w::Command command, const Buffer& payload,
                               const std::vector<int>& fds = {}, std::uint32_t flags = 0) {
        client.send(message(command, payload, 42, flags), fds);
        pump();
        return client.receive();
    }

    [[nodiscard]] std::uint64_t rejects(Reject reason) const {
        return server_->counters().rejects[static_cast<std::size_t>(reason)].value();
    }

    FakeClock clock_;
    EventLoop loop_{clock_};
    metrics::Registry registry_;
    std::shared_ptr<MemorySink> sink_ = std::make_shared<MemorySink>();
    FakeFunction function_;
    std::string folder_;
    std::string path_;
    std::unique_ptr<Server> server_;
};

}  // namespace ernic::vfio_user::test
