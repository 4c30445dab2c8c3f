// SPDX-License-Identifier: MIT
#include "vfio_user/server.hpp"

#include <chrono>
#include <nlohmann/json.hpp>

#include "vfio_user/test_support.hpp"

namespace ernic::vfio_user {
namespace {

using namespace test;

TEST_F(ServerTest, ClientThatLeavesLeavesNothingBehind) {
    const std::size_t before = open_fds();
    const UniqueFd file = memory_file(0x1000);
    const UniqueFd event(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    {
        Client client = negotiated();
        ASSERT_EQ(call(client, Command::DmaMap, map_payload(0, 0x1000), {file.get()})->error(), 0);
        ASSERT_EQ(call(client, Command::DeviceSetIrqs, irqs_payload(0x24, 2, 0, 1), {event.get()})->error(),
                  0);
        server_->memory().set_enabled(true);
    }
    pump();

    EXPECT_FALSE(server_->connected());
    EXPECT_EQ(function_.resets, 1);
    EXPECT_EQ(server_->dma_map().size(), 0U);
    EXPECT_EQ(server_->dma_map().files().files(), 0U);
    EXPECT_FALSE(server_->memory().enabled());
    EXPECT_FALSE(server_->send_msix(0));
    EXPECT_EQ(open_fds(), before + 2);
}

TEST_F(ServerTest, NextClientIsServedLikeTheFirst) {
    for (int i = 0; i < 20; ++i) {
        Client client = negotiated();
        EXPECT_EQ(call(client, Command::DeviceReset, {})->error(), 0);
        client.close();
        pump();
    }
    EXPECT_EQ(server_->counters().clients.value(), 20U);
}

TEST_F(ServerTest, SecondClientIsClosedAtOnceAndTheFirstLives) {
    Client first = negotiated();

    Client second = connect();

    EXPECT_TRUE(second.closed());
    EXPECT_EQ(server_->counters().clients_refused.value(), 1U);
    EXPECT_EQ(call(first, Command::DeviceReset, {})->error(), 0);
}

TEST_F(ServerTest, SuccessorOfADeadClientIsNotMistakenForASecondOne) {
    Client first = negotiated();
    first.close();
    Client second = Client::connect(path_);

    pump();

    EXPECT_FALSE(second.closed());
    EXPECT_TRUE(server_->connected());
    EXPECT_EQ(function_.resets, 1);
    EXPECT_EQ(call(second, Command::Version, Buffer(4))->error(), 0);
}

TEST_F(ServerTest, PollExecutesWhatHasArrived) {
    Client client = negotiated();
    EXPECT_FALSE(server_->poll());
    client.send(write_message(2, 0, 5));

    EXPECT_TRUE(server_->poll());

    EXPECT_EQ(function_.writes.size(), 1U);
    EXPECT_FALSE(server_->poll());
    client.close();
    EXPECT_TRUE(server_->poll());
    EXPECT_FALSE(server_->connected());
    EXPECT_FALSE(server_->poll());
}

TEST_F(ServerTest, RepliesTooBigForTheSocketLeaveWhenItIsRead) {
    Client client = negotiated();
    for (std::uint16_t i = 0; i < 40; ++i) {
        client.send(message(Command::RegionRead, pack(w::RegionAccess{le64(0), le32(0), le32(0x10000)}), i));
    }
    for (std::uint16_t i = 0; i < 40; ++i) {
        std::optional<Answer> answer;
        for (int round = 0; round < 100 && !answer; ++round) {
            pump(1);
            answer = client.receive();
        }
        ASSERT_TRUE(answer);
        EXPECT_EQ(answer->header.id.get(), i);
        EXPECT_EQ(answer->payload.size(), 16U + 0x10000U);
    }
    EXPECT_FALSE(client.closed());
}

TEST_F(ServerTest, BurstOfMapsWithDescriptorsIsTakenInOneWakeup) {
    Client client = negotiated();
    const UniqueFd file = memory_file(0x40000);
    for (std::uint64_t i = 0; i < 40; ++i) {
        client.send(message(Command::DmaMap, map_payload(i * 0x1000, 0x1000, i * 0x1000)), {file.get()});
    }

    pump(1);

    EXPECT_EQ(server_->dma_map().size(), 40U);
}

TEST_F(ServerTest, CloseRemovesTheSocketAndResetsTheFunction) {
    Client client = negotiated();

    server_->close();

    EXPECT_FALSE(std::filesystem::exists(path_));
    EXPECT_TRUE(client.closed());
    EXPECT_EQ(function_.resets, 1);
}

TEST_F(ServerTest, NumbersAreRegistered) {
    Client client = negotiated();
    const auto numbers = registry_.to_json()["vfio_user"];

    EXPECT_EQ(numbers["clients"], 1);
    EXPECT_EQ(numbers["connected"], 1);
    EXPECT_EQ(numbers["messages"], 1);
    EXPECT_EQ(numbers["reject"]["range"], 0);
}

TEST_F(ServerTest, AClientThatComesAgainAndAgainCannotFloodTheLog) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 200; ++i) {
        Client refused = negotiated();
        refused.send(write_message(9, 0, 0));  // no such region
        pump(2);
        refused.close();
        pump(2);
        Client broken = negotiated();
        broken.send(Buffer(16));  // a header that says "0 bytes"
        pump(2);
    }
    EXPECT_EQ(rejects(Reject::Index), 200U);
    EXPECT_EQ(rejects(Reject::HeaderSize), 200U);
    const auto seconds = std::chrono::steady_clock::now() - begin;
    // "listening"; then connected, disconnected, refused and dropped, each once a second.
    const auto most = 1 + 4 * (1 + std::chrono::duration_cast<std::chrono::seconds>(seconds).count());
    EXPECT_LE(sink_->lines.size(), static_cast<std::size_t>(most));
}

TEST_F(ServerTest, FloodOfBadMessagesIsLoggedOnce) {
    Client client = negotiated();
    sink_->lines.clear();
    for (int i = 0; i < 1000; ++i) {
        client.send(write_message(9, 0, 0));
        pump(1);
    }

    EXPECT_EQ(rejects(Reject::Index), 1000U);
    EXPECT_LE(sink_->lines.size(), 2U);
}

}  // namespace
}  // namespace ernic::vfio_user
