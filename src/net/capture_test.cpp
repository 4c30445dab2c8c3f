// SPDX-License-Identifier: MIT
#include "net/capture.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/byte_order.hpp"
#include "metrics/report.hpp"
#include "net/checksum.hpp"
#include "wire/ethernet.hpp"

namespace ernic::net {
namespace {

using testing::HasSubstr;

/// A pcapng file read back by the rules of the format, with everything it prescribes checked.
struct ParsedFile {
    struct Packet {
        std::uint64_t time;
        std::uint32_t length;
        std::vector<std::byte> bytes;
    };
    std::vector<std::uint32_t> block_types;
    std::map<std::uint16_t, std::vector<std::byte>> section_options;
    std::map<std::uint16_t, std::vector<std::byte>> interface_options;
    std::map<std::uint16_t, std::vector<std::byte>> statistics;
    std::uint32_t snaplen = 0;
    std::vector<Packet> packets;
};

std::map<std::uint16_t, std::vector<std::byte>> parse_options(ByteReader reader) {
    std::map<std::uint16_t, std::vector<std::byte>> options;
    while (true) {
        const std::uint16_t code = reader.read<le16>().value().get();
        const std::uint16_t size = reader.read<le16>().value().get();
        const Bytes value = reader.take((size + 3U) / 4 * 4).value().first(size);
        if (code == 0) {
            EXPECT_EQ(size, 0);
            EXPECT_TRUE(reader.empty());
            return options;
        }
        options[code].assign(value.begin(), value.end());
    }
}

ParsedFile parse_file(Bytes bytes) {
    ParsedFile file;
    ByteReader reader(bytes);
    while (!reader.empty()) {
        const std::uint32_t type = reader.read<le32>().value().get();
        const std::uint32_t size = reader.read<le32>().value().get();
        EXPECT_EQ(size % 4, 0U);
        ByteReader body(reader.take(size - 12).value());
        EXPECT_EQ(reader.read<le32>().value().get(), size) << "the second length";
        file.block_types.push_back(type);
        switch (type) {
            case 0x0a0d0d0a:
                EXPECT_EQ(body.read<le32>().value().get(), 0x1a2b3c4dU);
                EXPECT_EQ(body.read<le16>().value().get(), 1);
                EXPECT_EQ(body.read<le16>().value().get(), 0);
                EXPECT_EQ(body.read<le64>().value().get(), ~std::uint64_t{0});
                file.section_options = parse_options(body);
                break;
            case 1:
                EXPECT_EQ(body.read<le16>().value().get(), 1) << "Ethernet";
                EXPECT_EQ(body.read<le16>().value().get(), 0);
                file.snaplen = body.read<le32>().value().get();
                file.interface_options = parse_options(body);
                break;
            case 6: {
                EXPECT_EQ(body.read<le32>().value().get(), 0U);
                const std::uint64_t high = body.read<le32>().value().get();
                const std::uint64_t low = body.read<le32>().value().get();
                const std::uint32_t captured = body.read<le32>().value().get();
                const std::uint32_t length = body.read<le32>().value().get();
                const Bytes data = body.take(captured).value();
                EXPECT_LT(body.rest().size(), 4U) << "only padding may follow";
                file.packets.push_back({high << 32U | low, length, {data.begin(), data.end()}});
                break;
            }
            case 5:
                body.take(12);
                file.statistics = parse_options(body);
                break;
            default:
                ADD_FAILURE() << "unknown block " << type;
        }
    }
    return file;
}

std::uint64_t number(const std::vector<std::byte>& bytes) {
    return read_value<le64>(bytes).value().get();
}

struct Wanted {
    std::uint32_t snaplen = Capture::kMaxSnaplen;
    std::size_t buffer = Capture::kDefaultBuffer;
};

class CaptureTest : public testing::Test {
  protected:
    CaptureTest() {
        std::string name = (std::filesystem::temp_directory_path() / "ernic-capture-XXXXXX").string();
        directory_ = ::mkdtemp(name.data());
        route_.ipv4 = true;
        route_.ip4.version_ihl = 0x45;
        route_.ip4.protocol = wire::kIpProtocolUdp;
        message_.route = &route_;
        message_.path_mtu = 1024;
    }
    ~CaptureTest() override { std::filesystem::remove_all(directory_); }

    std::unique_ptr<Capture> make(std::size_t buffer = Capture::kDefaultBuffer) {
        auto made = Capture::make({.application = "test 1", .buffer = buffer}, clock_, log_);
        if (!made) {
            ADD_FAILURE() << made.error().message;
            return nullptr;
        }
        return std::move(made.value());
    }
    std::unique_ptr<Capture> open(const Wanted& wanted = {}) {
        auto capture = make(wanted.buffer);
        const Status opened = capture->open(path(), wanted.snaplen);
        EXPECT_TRUE(opened) << (opened ? "" : opened.error().message);
        return capture;
    }
    ParsedFile finish(Capture& capture) {
        EXPECT_TRUE(capture.finish());
        std::ifstream stream(path(), std::ios::binary);
        const std::string text{std::istreambuf_iterator<char>(stream), {}};
        return parse_file(std::as_bytes(std::span(text)));
    }
    void send(Capture& capture, std::size_t size) {
        payload_.assign(size, std::byte{0x5a});
        mem::SpanList spans;
        spans.add(payload_.data(), payload_.size());
        message_.payload = &spans;
        message_.length = size;
        capture.on_message(message_);
    }
    [[nodiscard]] std::string path() const { return directory_ + "/file.pcapng"; }

    std::string directory_;
    FakeClock clock_;
    log::Logger log_{log::null_sink(), ""};
    Route route_;
    Message message_;
    std::vector<std::byte> payload_;
};

TEST_F(CaptureTest, AFileWithoutPacketsHasABeginningAndAnEnd) {
    const auto capture = open({.snaplen = 96});
    clock_.advance(5);
    const ParsedFile file = finish(*capture);
    EXPECT_EQ(file.block_types, (std::vector<std::uint32_t>{0x0a0d0d0a, 1, 5}));
    EXPECT_EQ(file.snaplen, 96U);
    EXPECT_EQ(file.interface_options.at(9), std::vector{std::byte{9}}) << "nanoseconds";
    EXPECT_EQ(file.interface_options.at(2).size(), std::strlen("segment"));
    EXPECT_EQ(file.section_options.at(4).size(), std::strlen("test 1"));
    EXPECT_EQ(number(file.statistics.at(4)), 0U);
    EXPECT_EQ(number(file.statistics.at(5)), 0U);
    struct stat info {};
    ASSERT_EQ(stat(path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777U, 0600U) << "guest data is nobody else's business";
}

TEST_F(CaptureTest, AMessageBecomesItsPacketsWithTheTimeItWasSeen) {
    const auto capture = open();
    clock_.advance(0x1'2345'6789);
    const std::uint64_t seen = clock_.now();
    send(*capture, 2049);
    clock_.advance(1000);
    message_.kind = MessageKind::Acknowledge;
    send(*capture, 0);
    const ParsedFile file = finish(*capture);
    ASSERT_EQ(file.packets.size(), 4U);
    EXPECT_EQ(file.packets[0].time, seen);
    EXPECT_EQ(file.packets[2].time, seen);
    EXPECT_EQ(file.packets[3].time, seen + 1000);
    EXPECT_EQ(file.packets[0].length, 14U + 20 + 8 + 12 + 1024 + 4);
    EXPECT_EQ(file.packets[0].bytes.size(), file.packets[0].length);
    EXPECT_EQ(file.packets[2].length, 14U + 20 + 8 + 12 + 4 + 4);
    EXPECT_EQ(number(file.statistics.at(4)), 4U);
}

TEST_F(CaptureTest, SnaplenKeepsTheFrontAndTellsTheLength) {
    const auto capture = open({.snaplen = 77});
    send(*capture, 1000);
    payload_.assign(300, std::byte{3});
    mem::SpanList spans;
    spans.add(payload_.data(), payload_.size());
    capture->on_frame(
        {.data = spans, .insert_vlan = {}, .checksum = {}, .checksum_valid = false, .segmentation = {}});
    const ParsedFile file = finish(*capture);
    ASSERT_EQ(file.packets.size(), 2U);
    EXPECT_EQ(file.packets[0].bytes.size(), 77U);
    EXPECT_EQ(file.packets[0].length, 1058U);
    EXPECT_EQ(file.packets[1].bytes.size(), 77U);
    EXPECT_EQ(file.packets[1].length, 300U);
}

TEST_F(CaptureTest, AFrameIsShownWithItsTagAndChecksumDone) {
    const auto capture = open();
    payload_.assign(100, std::byte{0x21});
    mem::SpanList spans;
    spans.add(payload_.data(), 33);
    std::vector<std::byte> rest(payload_.begin() + 33, payload_.end());
    spans.add(rest.data(), rest.size());
    capture->on_frame({.data = spans,
                       .insert_vlan = std::uint16_t{0x0064},
                       .checksum = Frame::Checksum{.start = 34, .offset = 6},
                       .checksum_valid = false,
                       .segmentation = {}});
    const ParsedFile file = finish(*capture);
    ASSERT_EQ(file.packets.size(), 1U);
    const auto& bytes = file.packets[0].bytes;
    ASSERT_EQ(bytes.size(), 104U);
    EXPECT_EQ(bytes[12], std::byte{0x81});
    EXPECT_EQ(bytes[15], std::byte{0x64});
    // The sender's sum of the pseudo header was 0x2121; whoever adds it to the sum of the rest gets ones.
    EXPECT_EQ(ones_complement_add(ones_complement_sum(Bytes(bytes).subspan(38)), 0x2121), 0xffff);
}

TEST_F(CaptureTest, PacketsThatFindNoRoomAreCountedHereAndInTheFile) {
    // A pipe whose reader waits: what does not fit into pipe and buffer is lost, and nobody waits for it.
    ASSERT_EQ(mkfifo(path().c_str(), 0600), 0);
    UniqueFd reader(::open(path().c_str(), O_RDONLY | O_NONBLOCK));
    metrics::Registry registry;
    auto capture = open({.buffer = 8192});
    capture->register_metrics(registry);
    for (int i = 0; i < 500; ++i) {
        send(*capture, 1024);
    }
    const std::uint64_t dropped = metrics::value_of(registry, "capture.dropped_packets").value_or(0);
    EXPECT_GT(dropped, 0U);

    std::vector<std::byte> bytes;
    std::thread drain([&] {
        std::array<std::byte, 4096> buffer{};
        while (true) {
            const ssize_t count = ::read(reader.get(), buffer.data(), buffer.size());
            if (count > 0) {
                bytes.insert(bytes.end(), buffer.begin(), buffer.begin() + count);
            } else if (count == 0) {
                return;
            }
        }
    });
    EXPECT_TRUE(capture->finish());
    // The writer's end closes with the capture.
    capture.reset();
    drain.join();
    const ParsedFile file = parse_file(bytes);
    EXPECT_EQ(number(file.statistics.at(4)), 500U);
    EXPECT_EQ(number(file.statistics.at(5)), dropped);
    EXPECT_EQ(file.packets.size(), 500 - dropped);
}

TEST_F(CaptureTest, ALargeCapturePassesTheEndOfTheBufferManyTimes) {
    const auto capture = open({.buffer = std::size_t{1} << 16U});
    for (int i = 0; i < 2000; ++i) {
        send(*capture, static_cast<std::size_t>(i % 3000));
    }
    const ParsedFile file = finish(*capture);
    EXPECT_EQ(file.packets.size(), number(file.statistics.at(4)) - number(file.statistics.at(5)));
}

TEST_F(CaptureTest, AFailedWriteEndsTheCaptureAndIsTold) {
    ASSERT_EQ(mkfifo(path().c_str(), 0600), 0);
    UniqueFd reader(::open(path().c_str(), O_RDONLY | O_NONBLOCK));
    const auto capture = open();
    reader.reset();
    send(*capture, 10);
    const Status finished = capture->finish();
    ASSERT_FALSE(finished);
    EXPECT_THAT(finished.error().message, HasSubstr("Broken pipe"));
    send(*capture, 10);  // harmless
}

TEST_F(CaptureTest, AReaderThatStoppedReadingDoesNotHoldUpTheEnd) {
    ASSERT_EQ(mkfifo(path().c_str(), 0600), 0);
    const UniqueFd reader(::open(path().c_str(), O_RDONLY | O_NONBLOCK));
    const auto capture = open();
    for (int i = 0; i < 100; ++i) {
        send(*capture, 1024);
    }
    const Status finished = capture->finish();
    ASSERT_FALSE(finished);
    EXPECT_THAT(finished.error().message, HasSubstr("timed out"));
}

TEST_F(CaptureTest, WhatCannotBeWrittenIsRefusedAtOnce) {
    const auto refused = [this](const std::string& path) {
        const Status opened = make()->open(path);
        EXPECT_FALSE(opened);
        return opened ? std::string() : opened.error().message;
    };
    EXPECT_EQ(refused(directory_ + "/no/file"),
              "cannot write capture file '" + directory_ + "/no/file': No such file or directory");
    EXPECT_THAT(refused(directory_), HasSubstr("Is a directory"));
    EXPECT_THAT(refused("/dev/full"), HasSubstr("No space left"));
    ASSERT_EQ(mkfifo(path().c_str(), 0600), 0);
    EXPECT_THAT(refused(path()), HasSubstr("start the reader first"));
}

/// As a client of the control socket hands it over.
class CaptureOnADescriptor : public CaptureTest {
  protected:
    UniqueFd create(int flags = O_WRONLY) {
        return UniqueFd(::open(path().c_str(), flags | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    }
    /// Waits until the thread has something to tell.
    static void wait_for_event(const Capture& capture) {
        pollfd event{capture.event_fd(), POLLIN, 0};
        ASSERT_EQ(::poll(&event, 1, 10'000), 1);
        eventfd_t ignored = 0;
        ASSERT_EQ(::eventfd_read(capture.event_fd(), &ignored), 0);
    }
};

TEST_F(CaptureOnADescriptor, FilesFollowEachOtherAndEachCountsFromNought) {
    const auto capture = make();
    EXPECT_EQ(capture->state(), Capture::State::Idle);
    for (const std::size_t packets : {3U, 1U}) {
        ASSERT_TRUE(capture->start(create(), "file", 200).ok());
        EXPECT_EQ(capture->state(), Capture::State::Running);
        for (std::size_t i = 0; i < packets; ++i) {
            send(*capture, 1000);
        }
        EXPECT_EQ(capture->counts().packets, packets);
        const ParsedFile file = finish(*capture);
        EXPECT_EQ(capture->state(), Capture::State::Idle);
        EXPECT_EQ(file.packets.size(), packets);
        EXPECT_EQ(file.snaplen, 200U);
        EXPECT_EQ(number(file.statistics.at(4)), packets);
        EXPECT_EQ(capture->counts().packets, packets) << "still told afterwards";
    }
}

TEST_F(CaptureOnADescriptor, StoppingDoesNotWaitAndTheEndIsTold) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    UniqueFd reader(ends[0]);
    const auto capture = make();
    ASSERT_TRUE(capture->start(UniqueFd(ends[1]), "pipe"));
    for (int i = 0; i < 100; ++i) {
        send(*capture, 1024);
    }
    capture->stop();
    EXPECT_EQ(capture->state(), Capture::State::Ending) << "100 KiB do not fit into the pipe";
    std::vector<std::byte> bytes;
    std::array<std::byte, 4096> buffer{};
    ssize_t count = 0;
    while ((count = ::read(reader.get(), buffer.data(), buffer.size())) > 0) {
        bytes.insert(bytes.end(), buffer.begin(), buffer.begin() + count);
    }
    wait_for_event(*capture);
    EXPECT_EQ(capture->state(), Capture::State::Idle);
    EXPECT_TRUE(capture->outcome());
    EXPECT_EQ(parse_file(bytes).packets.size(), 100U);
}

TEST_F(CaptureOnADescriptor, AReaderThatGoesAwayIsNoticedWithoutTraffic) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    UniqueFd reader(ends[0]);
    const auto capture = make();
    ASSERT_TRUE(capture->start(UniqueFd(ends[1]), "pipe"));
    reader.reset();
    wait_for_event(*capture);
    EXPECT_EQ(capture->error(), EPIPE);
    EXPECT_EQ(capture->state(), Capture::State::Running) << "until somebody stops it";
    send(*capture, 10);
    EXPECT_EQ(capture->counts().dropped, 1U);
    EXPECT_FALSE(capture->finish());
    ASSERT_TRUE(capture->start(create(), "file")) << "the next one is not affected";
    send(*capture, 10);
    EXPECT_EQ(finish(*capture).packets.size(), 1U);
}

TEST_F(CaptureOnADescriptor, WhatIsNoPlaceForACaptureIsRefused) {
    const auto capture = make();
    create();
    for (UniqueFd& fd : std::array<UniqueFd, 5>{UniqueFd(), create(O_RDONLY),
                                                UniqueFd(::open(path().c_str(), O_PATH | O_CLOEXEC)),
                                                UniqueFd(::open(directory_.c_str(), O_RDONLY | O_CLOEXEC)),
                                                UniqueFd(::eventfd(0, EFD_CLOEXEC))}) {
        const Status started = capture->start(std::move(fd), "x");
        ASSERT_FALSE(started);
        EXPECT_EQ(started.error().code, Errc::InvalidArgument);
        EXPECT_EQ(capture->state(), Capture::State::Idle);
    }
}

}  // namespace
}  // namespace ernic::net
