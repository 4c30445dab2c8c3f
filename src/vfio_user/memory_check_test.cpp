// SPDX-License-Identifier: MIT
// MemoryCheck and DmaReader through a whole server: both only make sense with a client that answers.
#include "vfio_user/memory_check.hpp"

#include "vfio_user/limits.hpp"
#include "vfio_user/test_support.hpp"

namespace ernic::vfio_user {
namespace {

using namespace test;

class MemoryCheckTest : public ServerTest {
  protected:
    MemoryCheckTest() : client_(negotiated()) {
        EXPECT_EQ(call(client_, Command::DmaMap, map_payload(0x10000, 0x10000), {file_.get()})->error(), 0);
        server_->memory().set_enabled(true);
        const Buffer page(0x1000, std::byte{0xab});
        EXPECT_EQ(::pwrite(file_.get(), page.data(), page.size(), 0x2000), 0x1000);
    }

    /// The question the server has asked.
    std::optional<Answer> question() {
        pump();
        auto asked = client_.receive();
        if (asked) {
            EXPECT_EQ(asked->header.code(), Command::DmaRead);
            EXPECT_EQ(asked->header.type(), w::Header::kTypeCommand);
            EXPECT_EQ(asked->as<w::DmaAccess>().address.get(), 0x12000U);
            EXPECT_EQ(asked->as<w::DmaAccess>().count.get(), 0x1000U);
        }
        return asked;
    }

    void answer(const Answer& question, const Buffer& data, std::uint32_t flags = w::Header::kTypeReply) {
        Buffer payload = question.payload;
        payload.insert(payload.end(), data.begin(), data.end());
        client_.send(message(Command::DmaRead, payload, question.header.id.get(), flags));
        pump();
    }

    std::uint64_t checks() { return server_->counters().memory_checks.value(); }
    std::uint64_t mismatches() { return server_->counters().memory_mismatches.value(); }

    UniqueFd file_ = memory_file(0x10000);
    Client client_;
};

TEST_F(MemoryCheckTest, EqualPageIsSharedMemory) {
    server_->verify_shared_memory({0x12345});
    const auto asked = question();
    ASSERT_TRUE(asked);

    answer(*asked, Buffer(0x1000, std::byte{0xab}));

    EXPECT_EQ(checks(), 1U);
    EXPECT_EQ(mismatches(), 0U);
}

TEST_F(MemoryCheckTest, TwoMismatchesAreReportedByName) {
    server_->verify_shared_memory({0x12000});
    auto asked = question();
    ASSERT_TRUE(asked);
    answer(*asked, Buffer(0x1000, std::byte{1}));
    EXPECT_EQ(mismatches(), 0U);
    asked = question();
    ASSERT_TRUE(asked);

    answer(*asked, Buffer(0x1000, std::byte{1}));

    EXPECT_EQ(mismatches(), 1U);
    ASSERT_FALSE(sink_->lines.empty());
    EXPECT_EQ(sink_->lines.back().first, log::Level::Error);
    EXPECT_NE(sink_->lines.back().second.find("share=on"), std::string::npos);
}

TEST_F(MemoryCheckTest, PageThatChangesMeanwhileIsNoMismatch) {
    server_->verify_shared_memory({0x12000});
    const auto asked = question();
    ASSERT_TRUE(asked);
    const Buffer newer(0x1000, std::byte{0xcd});
    ASSERT_EQ(::pwrite(file_.get(), newer.data(), newer.size(), 0x2000), 0x1000);

    answer(*asked, newer);

    EXPECT_EQ(checks(), 1U);
    EXPECT_EQ(mismatches(), 0U);
}

TEST_F(MemoryCheckTest, RefusalIsNoVerdict) {
    server_->verify_shared_memory({0x12000});
    const auto asked = question();
    ASSERT_TRUE(asked);

    client_.send(message(Command::DmaRead, {}, asked->header.id.get(), 0x21));
    pump();

    EXPECT_EQ(checks(), 0U);
    EXPECT_FALSE(client_.closed());
}

TEST_F(MemoryCheckTest, ShortOrWrongAnswerIsNoVerdict) {
    for (const std::size_t size : {0U, 0xfffU, 0x1001U}) {
        server_->verify_shared_memory({0x12000});
        const auto asked = question();
        ASSERT_TRUE(asked) << size;

        answer(*asked, Buffer(size));

        EXPECT_EQ(checks(), 0U);
    }
    EXPECT_EQ(server_->counters().unexpected_replies.value(), 0U);
}

TEST_F(MemoryCheckTest, SilentClientIsForgottenAndItsLateAnswerIgnored) {
    server_->verify_shared_memory({0x12000});
    const auto asked = question();
    ASSERT_TRUE(asked);

    clock_.advance(kDmaReadTimeout);
    pump();
    answer(*asked, Buffer(0x1000, std::byte{1}));

    EXPECT_EQ(checks(), 0U);
    EXPECT_EQ(server_->counters().unexpected_replies.value(), 1U);
    server_->verify_shared_memory({0x12000});
    EXPECT_TRUE(question()) << "and the next check is possible";
}

TEST_F(MemoryCheckTest, OtherTrafficFlowsWhileTheAnswerIsAwaited) {
    server_->verify_shared_memory({0x12000});
    const auto asked = question();
    ASSERT_TRUE(asked);
    client_.send(write_message(2, 8, 99));

    const auto info = call(client_, Command::DeviceGetInfo, pack(w::DeviceInfo{le32(16), {}, {}, {}}));
    answer(*asked, Buffer(0x1000, std::byte{0xab}));

    ASSERT_TRUE(info);
    EXPECT_EQ(info->error(), 0);
    EXPECT_EQ(function_.writes.size(), 1U);
    EXPECT_EQ(checks(), 1U);
}

TEST_F(MemoryCheckTest, ReplyWithTheSameIdAsOneOfTheClientsCommandsIsKeptApart) {
    server_->verify_shared_memory({0x12000});
    const auto asked = question();
    ASSERT_TRUE(asked);

    client_.send(
        message(Command::DeviceGetInfo, pack(w::DeviceInfo{le32(16), {}, {}, {}}), asked->header.id.get()));
    pump();
    const auto info = client_.receive();
    answer(*asked, Buffer(0x1000, std::byte{0xab}));

    ASSERT_TRUE(info);
    EXPECT_EQ(info->header.type(), w::Header::kTypeReply);
    EXPECT_EQ(checks(), 1U);
}

TEST_F(MemoryCheckTest, ClientThatLeavesWithAQuestionOpenIsNoProblem) {
    server_->verify_shared_memory({0x12000});
    ASSERT_TRUE(question());

    client_.close();
    pump();
    clock_.advance(2 * kDmaReadTimeout);
    pump();

    EXPECT_FALSE(server_->connected());
    EXPECT_EQ(checks(), 0U);
}

TEST_F(MemoryCheckTest, UnreachablePageIsNotAskedFor) {
    server_->verify_shared_memory({0x90000});

    EXPECT_FALSE(question());
    EXPECT_EQ(sink_->lines.back().first, log::Level::Warn);
}

TEST_F(MemoryCheckTest, CallFromInsideARegisterAccessIsAllowed) {
    function_.on_write = [this](const FakeFunction::Write&) { server_->verify_shared_memory({0x12000}); };

    const auto reply = call(client_, Command::RegionWrite, {}, {});
    EXPECT_EQ(reply->error(), EINVAL);
    client_.send(write_message(0, 0, 1, 8, 0));
    pump();
    const auto written = client_.receive();

    ASSERT_TRUE(written);
    EXPECT_EQ(written->header.code(), Command::RegionWrite);
    EXPECT_TRUE(question());
}

}  // namespace
}  // namespace ernic::vfio_user
