// SPDX-License-Identifier: MIT
#include "vfio_user/connection.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "vfio_user/limits.hpp"
#include "vfio_user/test_support.hpp"

namespace ernic::vfio_user {
namespace {

using namespace test;

/// A connection on one end of a socket pair whose receiver records messages and may answer them.
class ConnectionTest : public testing::Test, public Connection::Receiver {
  protected:
    struct Seen {
        Command command;
        std::size_t payload;
        std::vector<UniqueFd> fds;
    };

    ConnectionTest() : client_(UniqueFd()) {
        std::array<int, 2> pair{};
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair.data()), 0);
        client_ = Client(UniqueFd(pair[0]));
        connection_ = std::make_unique<Connection>(UniqueFd(pair[1]), *this, counters_, limits_,
                                                   log::Logger(log::null_sink(), "test"));
    }

    void on_message(Message& message) override {
        seen_.push_back({message.header.code(), message.payload.size(), std::move(message.fds)});
        if (answer_size_) {
            connection_->reply(message.header, *answer_size_);
        }
    }

    /// Receives until the socket is empty.
    Connection::Received drain() {
        for (;;) {
            const auto received = connection_->receive();
            if (received == Connection::Received::Nothing || received == Connection::Received::Closed) {
                return received;
            }
        }
    }

    Counters counters_;
    LogLimits limits_;
    Client client_;
    std::unique_ptr<Connection> connection_;
    std::vector<Seen> seen_;
    std::optional<std::size_t> answer_size_;
};

Buffer joined(std::initializer_list<Buffer> parts) {
    Buffer all;
    for (const Buffer& part : parts) {
        all.insert(all.end(), part.begin(), part.end());
    }
    return all;
}

TEST_F(ConnectionTest, EmptySocketGivesNothing) {
    EXPECT_EQ(connection_->receive(), Connection::Received::Nothing);
}

TEST_F(ConnectionTest, ManyMessagesComeOutOfOneRead) {
    Buffer burst;
    for (std::uint64_t i = 0; i < 100; ++i) {
        const Buffer one = write_message(2, 0, i);
        burst.insert(burst.end(), one.begin(), one.end());
    }
    client_.send(burst);

    EXPECT_EQ(connection_->receive(), Connection::Received::Data);

    EXPECT_EQ(seen_.size(), 100U);
    EXPECT_EQ(counters_.receives.value(), 1U);
}

TEST_F(ConnectionTest, MessageDeliveredByteByByteIsWhole) {
    const Buffer bytes = message(Command::DmaMap, map_payload(0, 4096));
    const UniqueFd file = memory_file(4096);

    for (std::size_t i = 0; i < bytes.size(); ++i) {
        EXPECT_TRUE(seen_.empty());
        client_.send({bytes[i]}, i == 0 ? std::vector<int>{file.get()} : std::vector<int>{});
        drain();
    }

    ASSERT_EQ(seen_.size(), 1U);
    EXPECT_EQ(seen_[0].payload, 32U);
    EXPECT_EQ(seen_[0].fds.size(), 1U);
}

TEST_F(ConnectionTest, DescriptorsStayWithTheirMessageWhenReadsMerge) {
    const UniqueFd file = memory_file(4096);
    client_.send(message(Command::DeviceReset, {}));
    client_.send(message(Command::DmaMap, map_payload(0, 4096)));
    client_.send(message(Command::DmaMap, map_payload(4096, 4096)), {file.get()});
    client_.send(message(Command::DmaMap, map_payload(8192, 4096)));

    drain();

    ASSERT_EQ(seen_.size(), 4U);
    EXPECT_EQ(seen_[0].fds.size(), 0U);
    EXPECT_EQ(seen_[1].fds.size(), 0U);
    EXPECT_EQ(seen_[2].fds.size(), 1U);
    EXPECT_EQ(seen_[3].fds.size(), 0U);
}

TEST_F(ConnectionTest, DescriptorsOfSeveralMessagesInARowStayApart) {
    const UniqueFd file = memory_file(4096);
    for (std::size_t i = 1; i <= 5; ++i) {
        client_.send(message(Command::DeviceSetIrqs, irqs_payload(0x24, 2, 0, 1)),
                     std::vector<int>(i, file.get()));
    }

    drain();

    ASSERT_EQ(seen_.size(), 5U);
    for (std::size_t i = 0; i < 5; ++i) {
        EXPECT_EQ(seen_[i].fds.size(), i + 1);
    }
}

TEST_F(ConnectionTest, DescriptorsOfABatchInOneSendGoToTheCommandThatTakesThem) {
    const UniqueFd file = memory_file(4096);
    client_.send(joined({write_message(2, 0, 1), message(Command::DmaMap, map_payload(0, 4096)),
                         write_message(2, 0, 2)}),
                 {file.get()});

    drain();

    ASSERT_EQ(seen_.size(), 3U);
    EXPECT_EQ(seen_[0].fds.size(), 0U);
    EXPECT_EQ(seen_[1].fds.size(), 1U);
    EXPECT_EQ(seen_[2].fds.size(), 0U);
}

TEST_F(ConnectionTest, DescriptorsGoToTheLastMessageWhenNoneTakesThem) {
    const UniqueFd file = memory_file(4096);
    client_.send(message(Command::DeviceReset, {}));
    client_.send(write_message(2, 0, 1), {file.get()});

    drain();

    ASSERT_EQ(seen_.size(), 2U);
    EXPECT_EQ(seen_[1].fds.size(), 1U);
}

TEST_F(ConnectionTest, DescriptorsInTheMiddleOfAMessageAreClosedAndCounted) {
    const UniqueFd file = memory_file(4096);
    const Buffer bytes = message(Command::DmaMap, map_payload(0, 4096));
    const std::size_t before = open_fds();
    client_.send(Buffer(bytes.begin(), bytes.begin() + 20));
    drain();

    client_.send(Buffer(bytes.begin() + 20, bytes.end()), {file.get(), file.get()});
    drain();

    ASSERT_EQ(seen_.size(), 1U);
    EXPECT_TRUE(seen_[0].fds.empty());
    EXPECT_EQ(counters_.stray_fds.value(), 2U);
    EXPECT_EQ(open_fds(), before);
}

TEST_F(ConnectionTest, DescriptorsFollowTheirMessageAcrossABufferMove) {
    const UniqueFd file = memory_file(4096);
    // The first message leaves a partial second one in the buffer, which moves to the front at the next read.
    const Buffer second = message(Command::DmaMap, map_payload(0, 4096));
    client_.send(write_message(2, 0, 1));
    client_.send(Buffer(second.begin(), second.begin() + 8), {file.get()});
    EXPECT_EQ(connection_->receive(), Connection::Received::DataAndFds);
    ASSERT_EQ(seen_.size(), 1U);

    client_.send(Buffer(second.begin() + 8, second.end()));
    drain();

    ASSERT_EQ(seen_.size(), 2U);
    EXPECT_EQ(seen_[1].fds.size(), 1U);
}

TEST_F(ConnectionTest, TooManyDescriptorsEndTheConnectionWithoutLeak) {
    const UniqueFd file = memory_file(4096);
    const std::size_t before = open_fds();
    client_.send(message(Command::DeviceSetIrqs, irqs_payload(0x24, 2, 0, 17)),
                 std::vector<int>(17, file.get()));

    EXPECT_EQ(connection_->receive(), Connection::Received::Closed);

    EXPECT_TRUE(seen_.empty());
    EXPECT_EQ(counters_.clients_truncated.value(), 1U);
    EXPECT_EQ(open_fds(), before);
}

TEST_F(ConnectionTest, LargestMessageIsTakenAndTheNextOneFollows) {
    Buffer big = message(Command::RegionWrite, Buffer(kMaxMessage - sizeof(Header)));
    const Buffer next = write_message(2, 0, 1);
    big.insert(big.end(), next.begin(), next.end());

    for (std::size_t sent = 0; sent < big.size();) {
        const ssize_t taken =
            client_.send(Buffer(big.begin() + static_cast<std::ptrdiff_t>(sent), big.end()));
        sent += taken > 0 ? static_cast<std::size_t>(taken) : 0;
        drain();
    }

    ASSERT_EQ(seen_.size(), 2U);
    EXPECT_EQ(seen_[0].payload, kMaxMessage - sizeof(Header));
}

class ConnectionBadSize : public ConnectionTest, public testing::WithParamInterface<std::uint32_t> {};

TEST_P(ConnectionBadSize, ImpossibleSizeIsAnsweredWithEinvalAndEndsTheConnection) {
    client_.send(pack(w::Header{le16(9), le16(4), le32(GetParam()), le32(0), le32(0)}));

    EXPECT_EQ(connection_->receive(), Connection::Received::Closed);

    const auto answer = client_.receive();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->error(), EINVAL);
    EXPECT_EQ(answer->header.id.get(), 9U);
    EXPECT_EQ(counters_.rejects[static_cast<std::size_t>(Reject::HeaderSize)].value(), 1U);
}

INSTANTIATE_TEST_SUITE_P(Sizes, ConnectionBadSize, testing::Values(0U, 15U, kMaxMessage + 1, 0xffffffffU));

TEST_F(ConnectionTest, EndOfFileInsideAHeaderOrPayloadClosesQuietly) {
    const UniqueFd file = memory_file(4096);
    const std::size_t before = open_fds();
    const Buffer bytes = message(Command::DmaMap, map_payload(0, 4096));
    client_.send(Buffer(bytes.begin(), bytes.begin() + 30), {file.get()});
    EXPECT_EQ(connection_->receive(), Connection::Received::DataAndFds);

    client_.close();
    EXPECT_EQ(connection_->receive(), Connection::Received::Closed);
    connection_.reset();

    EXPECT_TRUE(seen_.empty());
    EXPECT_EQ(open_fds(), before - 2) << "both ends of the pair and the passed descriptor are closed";
}

TEST_F(ConnectionTest, RepliesOfABatchLeaveInOneSend) {
    answer_size_ = 16;
    Buffer burst;
    for (int i = 0; i < 50; ++i) {
        const Buffer one = message(Command::DeviceGetInfo, Buffer(16), static_cast<std::uint16_t>(i));
        burst.insert(burst.end(), one.begin(), one.end());
    }
    client_.send(burst);

    drain();

    EXPECT_EQ(counters_.sends.value(), 1U);
    for (int i = 0; i < 50; ++i) {
        const auto answer = client_.receive();
        ASSERT_TRUE(answer);
        EXPECT_EQ(answer->header.id.get(), i);
        EXPECT_EQ(answer->payload.size(), 16U);
    }
}

TEST_F(ConnectionTest, NoReplyMessagesGetNone) {
    answer_size_ = 16;
    client_.send(message(Command::DeviceGetInfo, Buffer(16), 1, Header::kFlagNoReply));

    drain();

    EXPECT_EQ(seen_.size(), 1U);
    EXPECT_FALSE(client_.receive());
}

TEST_F(ConnectionTest, UnreadRepliesAreKeptInOrderUntilTheClientReads) {
    answer_size_ = 100'000;
    for (std::uint16_t i = 0; i < 20; ++i) {
        client_.send(message(Command::RegionRead, Buffer(16), i));
    }
    drain();
    EXPECT_TRUE(connection_->unsent());

    for (std::uint16_t i = 0; i < 20; ++i) {
        std::optional<Answer> answer;
        while (!(answer = client_.receive())) {
            ASSERT_TRUE(connection_->flush());
        }
        EXPECT_EQ(answer->header.id.get(), i);
    }
    EXPECT_FALSE(connection_->unsent());
}

TEST_F(ConnectionTest, ClientThatNeverReadsLosesItsConnection) {
    answer_size_ = 1'000'000;
    for (std::uint16_t i = 0; i < 20; ++i) {
        client_.send(message(Command::RegionRead, Buffer(16), i));
    }

    EXPECT_EQ(drain(), Connection::Received::Closed);

    EXPECT_EQ(counters_.clients_too_slow.value(), 1U);
}

TEST_F(ConnectionTest, VanishedClientIsNoticedWhenReplying) {
    answer_size_ = 16;
    client_.send(message(Command::DeviceGetInfo, Buffer(16)));
    client_.close();

    EXPECT_EQ(connection_->receive(), Connection::Received::Closed) << "EPIPE, and no SIGPIPE";
}

}  // namespace
}  // namespace ernic::vfio_user
