// SPDX-License-Identifier: MIT
#include "mesh/tcp_link.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/clock.hpp"
#include "mesh/endpoint.hpp"
#include "mesh/message_codec.hpp"

namespace ernic::mesh {
namespace {

/// Keeps what arrives.
class Collector final : public LinkUser {
  public:
    struct Frame {
        FrameType type;
        std::vector<std::byte> head;
        std::vector<std::byte> body;
        bool streamed;
    };

    bool on_incoming(const Incoming& incoming) override {
        Frame frame{.type = incoming.type,
                    .head = {incoming.head.begin(), incoming.head.end()},
                    .body = std::vector<std::byte>(incoming.body_size),
                    .streamed = incoming.stream != nullptr};
        if (incoming.stream != nullptr && reads) {
            mem::SpanList to;
            to.add(frame.body.data(), frame.body.size());
            EXPECT_TRUE(incoming.stream->read(to));
        } else if (incoming.body != nullptr) {
            mem::copy(MutableBytes(frame.body), *incoming.body);
        }
        frames.push_back(std::move(frame));
        return accepts;
    }
    [[nodiscard]] bool takes_streams() const override { return streams; }
    void on_ready() override { ++ready; }
    void on_end(LinkEnd why) override { end = why; }

    std::vector<Frame> frames;
    std::optional<LinkEnd> end;
    int ready = 0;
    bool streams = true;
    bool reads = true;
    bool accepts = true;
};

class TcpLinkTest : public ::testing::Test {
  protected:
    TcpLinkTest() {
        const auto listener = listen_on({net::IpAddress::v4(0x7f000001), 0});
        UniqueFd client = begin_connect(*local_endpoint(listener.value().get()));
        UniqueFd server(::accept4(listener.value().get(), nullptr, nullptr, SOCK_NONBLOCK));
        tune_connection(client.get(), 10'000);
        tune_connection(server.get(), 10'000);
        raw_ = client.get();
        a_.emplace(std::move(client), loop_, a_user_, counters_, pool_);
        b_.emplace(std::move(server), loop_, b_user_, counters_, pool_);
    }

    void turns(int count = 50) {
        for (int i = 0; i < count; ++i) {
            while (!pool_.dirty.empty()) {
                pool_.dirty.back()->flush();
            }
            loop_.run_once(false);
        }
    }

    bool send_message(std::size_t size, std::uint8_t seed = 1) {
        net::Route route;
        route.ipv4 = true;
        route.ip4.version_ihl = 0x45;
        route.ip4.protocol = wire::kIpProtocolUdp;
        net::Message message;
        message.route = &route;
        message.length = size;
        HeadBuffer head;
        encode(message, head);
        payload_.resize(size);
        for (std::size_t i = 0; i < size; ++i) {
            payload_[i] = static_cast<std::byte>(seed + i * 7);
        }
        mem::SpanList body;
        body.add(payload_.data(), size / 3);
        gap_.assign(payload_.begin() + static_cast<std::ptrdiff_t>(size / 3), payload_.end());
        body.add(gap_.data(), gap_.size());
        const bool sent = a_->send(FrameType::Message, head.view(), &body, Importance::Data);
        // Whatever was not written has been copied.
        std::fill(gap_.begin(), gap_.end(), std::byte{});
        return sent;
    }

    FakeClock clock_;
    EventLoop loop_{clock_};
    Counters counters_;
    LinkPool pool_;
    Collector a_user_;
    Collector b_user_;
    std::optional<TcpLink> a_;
    std::optional<TcpLink> b_;
    int raw_ = -1;
    std::vector<std::byte> payload_;
    std::vector<std::byte> gap_;
};

TEST_F(TcpLinkTest, SmallFramesAreWrittenTogetherAndArriveInOrder) {
    for (std::uint64_t i = 0; i < 100; ++i) {
        const be64 number(i);
        EXPECT_TRUE(a_->send(FrameType::Ping, bytes_of(number), nullptr, Importance::Control));
    }
    EXPECT_EQ(pool_.dirty.size(), 1U);
    turns();
    ASSERT_EQ(b_user_.frames.size(), 100U);
    for (std::uint64_t i = 0; i < 100; ++i) {
        EXPECT_EQ(read_value<be64>(b_user_.frames[i].head)->get(), i);
    }
}

TEST_F(TcpLinkTest, OnlyALinkWithSomethingHalfReadKeepsABuffer) {
    ASSERT_TRUE(send_message(100));
    turns();
    EXPECT_EQ(b_user_.frames.size(), 1U);
    EXPECT_EQ(pool_.buffers.size(), 1U);
    ASSERT_EQ(::send(raw_, "\0", 1, 0), 1);
    turns();
    EXPECT_TRUE(pool_.buffers.empty()) << "the first byte of a frame waits in it";
}

TEST_F(TcpLinkTest, LargeBodiesAreStreamedSmallOnesAreNot) {
    for (const std::size_t size : {100U, 16'000U, 20'000U, 262'144U}) {
        ASSERT_TRUE(send_message(size));
        turns();
        ASSERT_FALSE(b_user_.frames.empty());
        EXPECT_EQ(b_user_.frames.back().body, payload_) << size;
        EXPECT_EQ(b_user_.frames.back().streamed, size > 16'384) << size;
    }
    EXPECT_EQ(counters_.staged.value(), 0U);
}

TEST_F(TcpLinkTest, WhatNobodyReadsIsThrownAwayAndTheNextFrameIsFound) {
    b_user_.reads = false;
    ASSERT_TRUE(send_message(200'000));
    ASSERT_TRUE(send_message(100));
    turns();
    ASSERT_EQ(b_user_.frames.size(), 2U);
    EXPECT_EQ(b_user_.frames[1].body, payload_);
}

TEST_F(TcpLinkTest, AWatchedSegmentGetsTheBodyInOnePiece) {
    b_user_.streams = false;
    ASSERT_TRUE(send_message(262'144));
    turns();
    ASSERT_EQ(b_user_.frames.size(), 1U);
    EXPECT_FALSE(b_user_.frames[0].streamed);
    EXPECT_EQ(b_user_.frames[0].body, payload_);
    EXPECT_EQ(counters_.staged.value(), 1U);
}

TEST_F(TcpLinkTest, AFullSocketMakesTheSenderWaitAndLosesDataBeyondTheBound) {
    int sent = 0;
    while (a_->ready() && sent < 1000) {
        ASSERT_TRUE(send_message(262'144, static_cast<std::uint8_t>(sent++)));
    }
    ASSERT_FALSE(a_->ready());
    int queued = 0;
    while (send_message(60'000) && queued < 100) {
        ++queued;
    }
    EXPECT_LT(queued, 9);
    EXPECT_LE(a_->queued(), kMaxQueued);
    turns(2000);
    EXPECT_TRUE(a_->ready());
    EXPECT_GE(a_user_.ready, 1);
    ASSERT_EQ(b_user_.frames.size(), static_cast<std::size_t>(sent + queued));
    for (int i = 0; i < sent; ++i) {
        EXPECT_EQ(b_user_.frames[static_cast<std::size_t>(i)].body[5], static_cast<std::byte>(i + 35));
    }
}

TEST_F(TcpLinkTest, TagsAreCheckedOnBothParts) {
    a_->seal_sent(Digest{});
    b_->seal_received(Digest{});
    for (const std::size_t size : {100U, 262'144U}) {
        ASSERT_TRUE(send_message(size));
        turns();
        ASSERT_FALSE(b_user_.frames.empty());
        EXPECT_EQ(b_user_.frames.back().body, payload_);
        EXPECT_FALSE(b_user_.frames.back().streamed);
    }
    Digest other{};
    other[0] = std::byte{1};
    a_->seal_sent(other);
    ASSERT_TRUE(send_message(100));
    turns();
    EXPECT_EQ(b_user_.frames.size(), 2U);
    EXPECT_EQ(b_user_.end, LinkEnd::Forged);
}

TEST_F(TcpLinkTest, NonsenseEndsTheLink) {
    ASSERT_EQ(::send(raw_, "\xff\xff\xff\xff\x08\x00\x00\x00", 8, 0), 8);
    turns();
    EXPECT_EQ(b_user_.end, LinkEnd::Protocol);
    EXPECT_FALSE(b_->ready());
    turns();
    EXPECT_EQ(a_user_.end, LinkEnd::Closed);
    EXPECT_FALSE(send_message(100));
}

TEST_F(TcpLinkTest, AUserWhoRefusesEndsTheLink) {
    b_user_.accepts = false;
    ASSERT_TRUE(send_message(262'144));
    turns();
    EXPECT_EQ(b_user_.frames.size(), 1U);
    EXPECT_EQ(b_user_.end, LinkEnd::Protocol);
}

TEST_F(TcpLinkTest, APeerThatLeavesInTheMiddleOfABodyIsNoticed) {
    const Prefix prefix{.body_size = be32(200'000),
                        .type = static_cast<std::uint8_t>(FrameType::Message),
                        .reserved = 0,
                        .head_size = be16(122)};
    std::vector<std::byte> bytes(sizeof prefix + 122 + 50'000);
    std::copy_n(bytes_of(prefix).begin(), sizeof prefix, bytes.begin());
    ASSERT_EQ(::send(raw_, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    turns();
    EXPECT_FALSE(b_user_.end);
    a_->close();
    turns();
    EXPECT_EQ(b_user_.end, LinkEnd::Closed);
    EXPECT_TRUE(b_user_.frames.empty());
}

}  // namespace
}  // namespace ernic::mesh
