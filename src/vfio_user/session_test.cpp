// SPDX-License-Identifier: MIT
#include "vfio_user/session.hpp"

#include "vfio_user/limits.hpp"
#include "vfio_user/test_support.hpp"

namespace ernic::vfio_user {
namespace {

using namespace test;

class SessionTest : public ServerTest {
  protected:
    Client client_ = negotiated();

    std::optional<Answer> read(std::uint32_t region, std::uint64_t offset, std::uint32_t count) {
        return call(client_, Command::RegionRead,
                    pack(w::RegionAccess{le64(offset), le32(region), le32(count)}));
    }
    std::optional<Answer> write(std::uint32_t region, std::uint64_t offset, std::uint64_t value,
                                std::uint32_t count) {
        client_.send(write_message(region, offset, value, count, 0));
        pump();
        return client_.receive();
    }
    w::RegionInfo region_info(std::uint32_t index) {
        w::RegionInfo request{};
        request.argsz.set(32);
        request.index.set(index);
        return call(client_, Command::DeviceGetRegionInfo, pack(request))->as<w::RegionInfo>();
    }
};

TEST_F(ServerTest, FirstMessageMustBeVersion) {
    Client client = connect();

    const auto answer = call(client, Command::DeviceGetInfo, Buffer(16));

    EXPECT_EQ(answer->error(), EINVAL);
    EXPECT_TRUE(client.closed());
    EXPECT_EQ(rejects(Reject::NotNegotiated), 1U);
}

TEST_F(ServerTest, VersionThatCannotBeAcceptedEndsOnlyThisConnection) {
    Client client = connect();

    EXPECT_EQ(call(client, Command::Version, pack(w::Version{le16(999), le16(0)}))->error(), EINVAL);

    EXPECT_TRUE(client.closed());
    Client next = negotiated();
    EXPECT_FALSE(next.closed());
}

TEST_F(ServerTest, VersionWithDescriptorIsRefused) {
    Client client = connect();
    const UniqueFd file = memory_file(4096);

    EXPECT_EQ(call(client, Command::Version, Buffer(4), {file.get()})->error(), EINVAL);

    EXPECT_EQ(rejects(Reject::Fds), 1U);
}

TEST_F(SessionTest, SecondVersionIsRefusedAndTheSessionLives) {
    EXPECT_EQ(call(client_, Command::Version, Buffer(4))->error(), EINVAL);

    EXPECT_EQ(read(7, 0, 4)->error(), 0);
}

TEST_F(SessionTest, DeviceInfoIsPciWithReset) {
    const auto answer = call(client_, Command::DeviceGetInfo, pack(w::DeviceInfo{le32(32), {}, {}, {}}));

    const auto info = answer->as<w::DeviceInfo>();
    EXPECT_EQ(info.argsz.get(), 16U);
    EXPECT_EQ(info.flags.get(), 3U);
    EXPECT_EQ(info.regions.get(), 9U);
    EXPECT_EQ(info.irqs.get(), 5U);
}

TEST_F(SessionTest, RegionsHaveTheFunctionsSizesAndNoMmapFlag) {
    const std::array<std::uint64_t, 9> sizes{0x10000, 0, 0x2000, 0, 0, 0, 0, 4096, 0};
    for (std::uint32_t index = 0; index < sizes.size(); ++index) {
        const w::RegionInfo info = region_info(index);
        EXPECT_EQ(info.size.get(), sizes[index]) << index;
        EXPECT_EQ(info.flags.get(), sizes[index] != 0 ? 3U : 0U) << index;
        EXPECT_EQ(info.argsz.get(), 32U);
    }
}

TEST_F(SessionTest, IrqInfoOffersMsixAndRefusesErr) {
    const auto info = [&](std::uint32_t index) {
        return call(client_, Command::DeviceGetIrqInfo, pack(w::IrqInfo{le32(16), {}, le32(index), {}}));
    };

    EXPECT_EQ(info(w::kIrqMsix)->as<w::IrqInfo>().count.get(), 8U);
    EXPECT_EQ(info(w::kIrqMsix)->as<w::IrqInfo>().flags.get(), 1U);
    EXPECT_EQ(info(w::kIrqIntx)->as<w::IrqInfo>().count.get(), 0U);
    EXPECT_EQ(info(w::kIrqErr)->error(), EINVAL);
    EXPECT_EQ(info(5)->error(), EINVAL);
}

TEST_F(SessionTest, IoFdsAreNone) {
    const auto ask = [&](std::uint32_t argsz, std::uint32_t flags, std::uint32_t index) {
        return call(client_, Command::DeviceGetRegionIoFds,
                    pack(w::RegionIoFds{le32(argsz), le32(flags), le32(index), {}}));
    };

    EXPECT_EQ(ask(16, 0, 0)->as<w::RegionIoFds>().count.get(), 0U);
    EXPECT_EQ(ask(15, 0, 0)->error(), EINVAL);
    EXPECT_EQ(ask(16, 1, 0)->error(), EINVAL);
    EXPECT_EQ(ask(16, 0, 1)->error(), EINVAL);
    EXPECT_EQ(ask(16, 0, 99)->error(), EINVAL);
}

TEST_F(SessionTest, WriteReachesTheBarAndIsEchoed) {
    const auto written = write(2, 0x1000, 0x1122334455667788, 8);
    const auto seen = read(2, 0x1004, 2);

    EXPECT_EQ(written->as<w::RegionAccess>().count.get(), 8U);
    EXPECT_EQ(function_.writes, (std::vector<FakeFunction::Write>{{2, 0x1000, 0x1122334455667788, 8}}));
    EXPECT_EQ(seen->payload.size(), 18U);
    EXPECT_EQ(read_value<le16>(Bytes(seen->payload).subspan(16))->get(), 0x3344U);
}

TEST_F(SessionTest, WholeConfigSpaceIsReadAtOnce) {
    EXPECT_EQ(write(7, 4, 0x0406, 2)->error(), 0);

    const auto answer = read(7, 0, 4096);

    ASSERT_EQ(answer->payload.size(), 16U + 4096U);
    EXPECT_EQ(answer->payload[16 + 4], std::byte{0x06});
}

TEST_F(SessionTest, PostedWritesAreExecutedBeforeAFollowingRead) {
    Buffer burst;
    for (std::uint64_t i = 1; i <= 20; ++i) {
        const Buffer one = write_message(0, 0x100, i);
        burst.insert(burst.end(), one.begin(), one.end());
    }
    client_.send(burst);

    const auto answer = read(0, 0x100, 8);

    EXPECT_EQ(read_value<le64>(Bytes(answer->payload).subspan(16))->get(), 20U);
    EXPECT_EQ(function_.writes.size(), 20U);
    EXPECT_FALSE(client_.receive()) << "posted writes are not answered";
}

struct BadAccess {
    const char* what;
    std::uint32_t region;
    std::uint64_t offset;
    std::uint32_t count;
};

class SessionRejectsAccess : public SessionTest, public testing::WithParamInterface<BadAccess> {};

TEST_P(SessionRejectsAccess, OutOfBounds) {
    const BadAccess& bad = GetParam();

    EXPECT_EQ(read(bad.region, bad.offset, bad.count)->error(), EINVAL) << bad.what;

    EXPECT_FALSE(client_.closed());
}

INSTANTIATE_TEST_SUITE_P(
    Accesses, SessionRejectsAccess,
    testing::Values(BadAccess{"region 9", 9, 0, 4}, BadAccess{"region -1", 0xffffffff, 0, 4},
                    BadAccess{"wraps", 0, ~0ULL, 256}, BadAccess{"past the end", 0, 0xfffd, 4},
                    BadAccess{"behind the end", 0, 0x10000, 1}, BadAccess{"absent BAR", 4, 0, 1},
                    BadAccess{"config end", 7, 4093, 4}, BadAccess{"ROM", 6, 0, 4},
                    BadAccess{"too large", 0, 0, kMaxDataTransfer + 1}));

TEST_F(SessionTest, EmptyAccessSucceeds) {
    EXPECT_EQ(read(0, 0, 0)->payload.size(), 16U);
    EXPECT_EQ(write(0, 0, 0, 0)->error(), 0);
    EXPECT_TRUE(function_.writes.empty());
}

TEST_F(SessionTest, WriteWhoseDataDoesNotMatchItsCountIsRefused) {
    for (const std::size_t data : {0U, 3U, 5U}) {
        Buffer payload = pack(w::RegionAccess{le64(0), le32(0), le32(4)});
        payload.resize(payload.size() + data);
        EXPECT_EQ(call(client_, Command::RegionWrite, payload)->error(), EINVAL);
    }
    EXPECT_TRUE(function_.writes.empty());
}

Buffer multi(std::initializer_list<w::MultiWrite> entries, std::uint64_t count) {
    Buffer payload = pack(w::WriteMulti{le64(count)});
    for (const w::MultiWrite& entry : entries) {
        payload.insert(payload.end(), bytes_of(entry).begin(), bytes_of(entry).end());
    }
    return payload;
}

TEST_F(SessionTest, MultiWriteExecutesItsEntriesInOrder) {
    const w::MultiWrite first{le64(8), le32(2), le32(8), {std::byte{1}}};
    const w::MultiWrite second{le64(0x10), le32(0), le32(2), {std::byte{2}, std::byte{3}, std::byte{4}}};

    EXPECT_FALSE(
        call(client_, Command::RegionWriteMulti, multi({first, second}, 2), {}, w::Header::kFlagNoReply));
    const auto answered = call(client_, Command::RegionWriteMulti, multi({first}, 1));

    EXPECT_EQ(function_.writes,
              (std::vector<FakeFunction::Write>{{2, 8, 1, 8}, {0, 0x10, 0x0302, 2}, {2, 8, 1, 8}}));
    EXPECT_EQ(answered->as<w::WriteMulti>().count.get(), 1U);
}

TEST_F(SessionTest, BadEntryOfAMultiWriteDoesNotStopTheOthers) {
    const w::MultiWrite bad{le64(0), le32(9), le32(8), {}};
    const w::MultiWrite too_long{le64(0), le32(0), le32(9), {}};
    const w::MultiWrite good{le64(8), le32(2), le32(8), {std::byte{1}}};

    const auto answer = call(client_, Command::RegionWriteMulti, multi({bad, too_long, good}, 3));

    EXPECT_EQ(answer->error(), EINVAL);
    EXPECT_EQ(function_.writes.size(), 1U);
}

TEST_F(SessionTest, MultiWriteWithAWrongCountIsRefused) {
    const w::MultiWrite entry{le64(8), le32(2), le32(8), {}};

    for (const std::uint64_t count :
         {std::uint64_t{0}, std::uint64_t{2}, ~std::uint64_t{0}, std::uint64_t{1} << 61U}) {
        EXPECT_EQ(call(client_, Command::RegionWriteMulti, multi({entry}, count))->error(), EINVAL) << count;
    }
    EXPECT_TRUE(function_.writes.empty());
}

TEST_F(SessionTest, ResetKeepsMapsAndEventfds) {
    const UniqueFd file = memory_file(0x1000);
    const UniqueFd event(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    ASSERT_EQ(call(client_, Command::DmaMap, map_payload(0, 0x1000), {file.get()})->error(), 0);
    ASSERT_EQ(call(client_, Command::DeviceSetIrqs, irqs_payload(0x24, 2, 0, 1), {event.get()})->error(), 0);

    EXPECT_EQ(call(client_, Command::DeviceReset, {})->error(), 0);
    EXPECT_EQ(call(client_, Command::DeviceReset, {})->error(), 0);

    EXPECT_EQ(function_.resets, 2);
    EXPECT_EQ(server_->dma_map().size(), 1U);
    EXPECT_TRUE(server_->send_msix(0));
}

TEST_F(SessionTest, CommandsWithoutPayloadOrWithForeignDescriptorsAreRefused) {
    const UniqueFd file = memory_file(0x1000);
    const std::size_t before = open_fds();
    for (const auto command :
         {Command::DmaMap, Command::DmaUnmap, Command::DeviceGetInfo, Command::DeviceGetRegionInfo,
          Command::DeviceGetRegionIoFds, Command::DeviceGetIrqInfo, Command::DeviceSetIrqs,
          Command::RegionRead, Command::RegionWrite, Command::RegionWriteMulti}) {
        EXPECT_EQ(call(client_, command, {})->error(), EINVAL) << static_cast<int>(command);
        EXPECT_EQ(call(client_, command, Buffer(64), {file.get(), file.get()})->error(), EINVAL);
    }
    EXPECT_EQ(open_fds(), before);
}

TEST_F(SessionTest, UnknownAndUnsupportedCommandsAreAnswered) {
    for (const std::uint16_t number : {0, 11, 12, 14, 19, 999}) {
        EXPECT_EQ(call(client_, static_cast<Command>(number), Buffer(8))->error(), EINVAL) << number;
    }
    for (const std::uint16_t number : {16, 17, 18}) {
        EXPECT_EQ(call(client_, static_cast<Command>(number), Buffer(8))->error(), ENOTSUP) << number;
    }
}

TEST_F(SessionTest, UnexpectedRepliesAreCountedAndIgnored) {
    EXPECT_FALSE(call(client_, Command::DmaRead, Buffer(100), {}, w::Header::kTypeReply));
    EXPECT_FALSE(call(client_, Command::RegionRead, Buffer(16), {}, w::Header::kTypeReply));

    EXPECT_EQ(server_->counters().unexpected_replies.value(), 2U);
    EXPECT_FALSE(client_.closed());
}

TEST_F(SessionTest, MessageThatIsNeitherCommandNorReplyIsRefused) {
    EXPECT_EQ(call(client_, Command::RegionRead, Buffer(16), {}, 2)->error(), EINVAL);

    EXPECT_EQ(rejects(Reject::HeaderType), 1U);
    EXPECT_FALSE(client_.closed());
}

TEST_F(SessionTest, DebugLogHasOneLinePerMessage) {
    sink_->set_level(log::Level::Debug);
    sink_->lines.clear();

    write(2, 8, 0x1234, 4);

    ASSERT_EQ(sink_->lines.size(), 2U);
    EXPECT_NE(sink_->lines[0].second.find("recv id=7 REGION_WRITE(10) size=36"), std::string::npos);
    EXPECT_NE(sink_->lines[0].second.find("region=2 offset=0x8 count=4 value=0x1234"), std::string::npos);
    EXPECT_NE(sink_->lines[1].second.find("send id=7 REGION_WRITE(10) size=32"), std::string::npos);
}

}  // namespace
}  // namespace ernic::vfio_user
