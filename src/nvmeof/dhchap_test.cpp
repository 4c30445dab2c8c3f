// SPDX-License-Identifier: MIT
#include "nvmeof/dhchap.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "nvmeof/test_support.hpp"

namespace ernic::nvmeof::test {
namespace {

namespace auth = nvme::auth;

// Made by another implementation of the format: bytes 0, 1, 2, .. as key, with zlib's CRC.
constexpr const char* kPlain = "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";
constexpr const char* kHashed = "DHHC-1:01:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";
constexpr const char* kLonger =
    "DHHC-1:02:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vcSEgBQ==:";

std::string hex(Bytes bytes) {
    std::string text;
    for (const std::byte b : bytes) {
        text += fmt::format("{:02x}", static_cast<unsigned>(b));
    }
    return text;
}

/// A file with `text` in it.
class TextFile {
  public:
    explicit TextFile(const std::string& text) {
        const int fd = mkstemp(path_.data());
        EXPECT_GE(fd, 0);
        ::close(fd);
        std::ofstream(path_) << text;
    }
    ~TextFile() { ::unlink(path_.c_str()); }
    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    std::string path_ = testing::TempDir() + "dhchap_test_XXXXXX";
};

TEST(NvmeofSecret, KeysAreTransformedForTheirOwner) {
    const auto plain = secret_key(kPlain, kHostNqn);
    ASSERT_TRUE(plain.has_value());
    EXPECT_EQ(plain->size(), 32U);
    EXPECT_EQ((*plain)[31], std::byte{31});
    const auto hashed = secret_key(kHashed, kHostNqn);
    ASSERT_TRUE(hashed.has_value());
    EXPECT_EQ(hex(*hashed), "d06bfe416d2de81dd5cccafd02bca7f68fe6d9ed50c7393fa37471335959cdf7");
    const auto longer = secret_key(kLonger, kHostNqn);
    ASSERT_TRUE(longer.has_value());
    EXPECT_EQ(hex(*longer).substr(0, 32), "c157cd5cafc8bf44889b9a215ae863da");
}

TEST(NvmeofSecret, WhatIsNoSecretIsRefused) {
    for (const char* text :
         {"", "DHHC-1:", "DHHC-1:00::", "DHHC-1:04:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:",
          "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaS:",
          "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR",
          "DHHC-1:00:!!ECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:", "DHHC-1:00:AAEC:"}) {
        EXPECT_FALSE(secret_key(text, kHostNqn).has_value()) << text;
    }
}

TEST(NvmeofSecret, FilesSayWhereTheyAreWrong) {
    const auto error = [](const std::string& text) {
        const TextFile file(text);
        const auto read = DhChapSecrets::read(file.path(), kNqn);
        return read.ok() ? std::string() : read.error().message;
    };
    EXPECT_EQ(
        error(fmt::format("# hosts\n\n{} {}\n* {} {}  # all others\n", kHostNqn, kPlain, kHashed, kLonger)),
        "");
    EXPECT_THAT(error(fmt::format("{} {}\nhost secret\n", kHostNqn, kPlain)), testing::HasSubstr("line 2"));
    EXPECT_THAT(error("# nothing\n"), testing::HasSubstr("no secret"));
    EXPECT_THAT(error(fmt::format("host {} {} more\n", kPlain, kPlain)), testing::HasSubstr("line 1"));
    EXPECT_FALSE(DhChapSecrets::read("/nonexistent", kNqn).ok());
}

/// A host that authenticates itself at a target, which wants `group`.
class NvmeofAuthentication : public testing::Test {
  protected:
    explicit NvmeofAuthentication(std::uint8_t group = 0)
        : group_(group), file_(fmt::format("{} {} {}\n", kHostNqn, kHashed, kPlain)) {
        TargetConfig config = default_config();
        config.auth_file = file_.path();
        config.auth_group = group;
        machine.emplace(config);
        machine->open(0);
        const auto connected = machine->connect(0, 32, Machine::connect_data(kNqn, 0xffff));
        EXPECT_EQ(status(connected), Status::Success);
        EXPECT_EQ(connected.entry.result.get() >> 16U, 2U);
        id = static_cast<std::uint16_t>(connected.entry.result.get());
    }

    static SubmissionEntry message_entry(nvme::FabricsType type, std::uint32_t bytes) {
        SubmissionEntry e = Machine::fabrics(type);
        e.data = SglDescriptor::keyed(kHostBase, bytes, kKey, false);
        e.dwords[0].set(0xe9010100U);
        e.dwords[1].set(bytes);
        return e;
    }
    Status send(Bytes message, std::uint16_t queue = 0) {
        machine->put(0, message);
        return status(machine->run(queue, message_entry(nvme::FabricsType::AuthenticationSend,
                                                        static_cast<std::uint32_t>(message.size()))));
    }
    Status receive(std::uint16_t queue = 0) {
        return status(machine->run(queue, message_entry(nvme::FabricsType::AuthenticationReceive, 2048)));
    }
    /// The whole conversation on one queue.
    void prove_on(std::uint16_t queue, bool mutual = false) {
        EXPECT_EQ(send(bytes_of(negotiation()), queue), Status::Success);
        EXPECT_EQ(receive(queue), Status::Success);
        EXPECT_EQ(send(reply(kHashed, mutual), queue), Status::Success);
        EXPECT_EQ(receive(queue), Status::Success);
        EXPECT_EQ(machine->get<auth::Success1>().header.id, auth::kSuccess1);
        EXPECT_EQ(machine->get<auth::Success1>().response_valid, mutual ? 1 : 0);
    }
    auth::Negotiate negotiation(std::uint8_t hash = auth::kSha384) const {
        auth::Negotiate negotiate{};
        negotiate.header = {auth::kCommon, auth::kNegotiate, {}, le16(77)};
        negotiate.descriptors = 1;
        negotiate.descriptor.method = auth::kDhChap;
        negotiate.descriptor.hashes = 1;
        negotiate.descriptor.groups = 2;
        negotiate.descriptor.hash_list[0] = hash;
        negotiate.descriptor.group_list[0] = 4;
        negotiate.descriptor.group_list[1] = group_;
        return negotiate;
    }
    /// Answers the challenge in host memory, with `secret`; with a challenge of its own if `mutual`.
    std::vector<std::byte> reply(const char* secret, bool mutual) {
        const auto head = machine->get<auth::Challenge>();
        EXPECT_EQ(head.header.id, auth::kChallenge);
        EXPECT_EQ(head.hash_length, 48);
        const Digest challenge(machine->ram.bytes.begin() + 16, machine->ram.bytes.begin() + 16 + 48);
        EXPECT_EQ(head.group, group_);
        EXPECT_EQ(head.value_length.get(), group_bytes(group_));
        Digest own_value;
        if (group_ != 0) {
            const auto exchange = DhExchange::make(group_);
            const auto value = machine->ram.bytes.begin() + 16 + 48;
            shared_ =
                exchange->secret(Digest(value, value + static_cast<std::ptrdiff_t>(group_bytes(group_))));
            EXPECT_FALSE(shared_.empty());
            own_value = exchange->public_value();
        }
        const Digest key = *secret_key(secret, kHostNqn);
        const std::uint8_t zero = 0;
        const std::string_view host = kHostNqn;
        const std::string_view nqn = kNqn;
        const std::string_view role = "HostHost";
        const Digest response =
            hmac(head.hash, key,
                 {augmented(challenge), bytes_of(head.sequence), bytes_of(le16(77)), bytes_of(zero),
                  std::as_bytes(std::span(role)), std::as_bytes(std::span(host)), bytes_of(zero),
                  std::as_bytes(std::span(nqn))});
        auth::Reply message{};
        message.header = {auth::kDhChap, auth::kReply, {}, le16(77)};
        message.hash_length = 48;
        message.challenge_valid = mutual ? 1 : 0;
        message.value_length.set(static_cast<std::uint16_t>(own_value.size()));
        message.sequence.set(5);
        std::vector<std::byte> bytes(bytes_of(message).begin(), bytes_of(message).end());
        bytes.insert(bytes.end(), response.begin(), response.end());
        bytes.insert(bytes.end(), 48, std::byte{0x33});
        bytes.insert(bytes.end(), own_value.begin(), own_value.end());
        return bytes;
    }
    /// A challenge as it goes into a response (8.13.5.5: with a group, H of the shared secret is the key of
    /// an HMAC over it).
    [[nodiscard]] Digest augmented(const Digest& challenge) const {
        return group_ == 0 ? challenge : hmac(auth::kSha384, digest(auth::kSha384, shared_), {challenge});
    }
    Status enable() { return status(machine->set_property(nvme::property::kConfiguration, 0x00460001)); }

    std::uint8_t group_;
    Digest shared_;
    TextFile file_;
    std::optional<Machine> machine;
    std::uint16_t id = 0;
};

TEST_F(NvmeofAuthentication, TheRightSecretOpensTheController) {
    EXPECT_EQ(enable(), Status::AuthenticationRequired);
    EXPECT_EQ(status(machine->run(0, Machine::entry(AdminOpcode::KeepAlive))),
              Status::AuthenticationRequired);
    machine->open(1);
    EXPECT_EQ(status(machine->connect(1, 32, Machine::connect_data(kNqn, id))),
              Status::AuthenticationRequired);
    prove_on(0);
    EXPECT_EQ(enable(), Status::Success);
    EXPECT_EQ(status(machine->connect(1, 32, Machine::connect_data(kNqn, id))), Status::Success);
}

TEST_F(NvmeofAuthentication, EveryQueueIsProvedByItself) {
    prove_on(0);
    EXPECT_EQ(enable(), Status::Success);
    machine->open(1);
    const auto connected = machine->connect(1, 32, Machine::connect_data(kNqn, id));
    EXPECT_EQ(status(connected), Status::Success);
    EXPECT_EQ(connected.entry.result.get() >> 16U, 2U) << "authentication required";
    EXPECT_EQ(status(machine->run(1, Machine::entry(static_cast<std::uint8_t>(nvme::IoOpcode::Flush), 1))),
              Status::AuthenticationRequired);
    prove_on(1);
    EXPECT_EQ(status(machine->run(1, Machine::entry(static_cast<std::uint8_t>(nvme::IoOpcode::Flush), 1))),
              Status::Success);
}

TEST_F(NvmeofAuthentication, AWrongSecretCostsAnIoQueueOnlyItself) {
    prove_on(0);
    EXPECT_EQ(enable(), Status::Success);
    machine->open(1);
    EXPECT_EQ(status(machine->connect(1, 32, Machine::connect_data(kNqn, id))), Status::Success);
    EXPECT_EQ(send(bytes_of(negotiation()), 1), Status::Success);
    EXPECT_EQ(receive(1), Status::Success);
    EXPECT_EQ(send(reply(kPlain, false), 1), Status::Success);
    EXPECT_EQ(receive(1), Status::Success);
    EXPECT_EQ(machine->get<auth::Failed>().header.id, auth::kFailure1);
    EXPECT_TRUE(machine->queues[1]->channel.closed);
    EXPECT_FALSE(machine->queues[0]->channel.closed);
    EXPECT_EQ(status(machine->run(0, Machine::entry(AdminOpcode::KeepAlive))), Status::Success);
}

TEST_F(NvmeofAuthentication, TheTargetProvesItselfToo) {
    prove_on(0, true);
    const std::uint8_t zero = 0;
    const std::string_view host = kHostNqn;
    const std::string_view nqn = kNqn;
    const std::string_view role = "Controller";
    const std::vector<std::byte> challenge(48, std::byte{0x33});
    const Digest expected = hmac(auth::kSha384, *secret_key(kPlain, kNqn),
                                 {augmented(challenge), bytes_of(le32(5)), bytes_of(le16(77)), bytes_of(zero),
                                  std::as_bytes(std::span(role)), std::as_bytes(std::span(nqn)),
                                  bytes_of(zero), std::as_bytes(std::span(host))});
    EXPECT_EQ(hex(Bytes(machine->ram.bytes).subspan(16, 48)), hex(expected));
    EXPECT_EQ(enable(), Status::AuthenticationRequired);
    auth::Header done{auth::kDhChap, auth::kSuccess2, {}, le16(77)};
    std::array<std::byte, 16> success{};
    std::memcpy(success.data(), &done, sizeof done);
    EXPECT_EQ(send(success), Status::Success);
    EXPECT_EQ(enable(), Status::Success);
}

TEST_F(NvmeofAuthentication, AWrongSecretCostsTheConnection) {
    EXPECT_EQ(send(bytes_of(negotiation())), Status::Success);
    EXPECT_EQ(receive(), Status::Success);
    EXPECT_EQ(send(reply(kPlain, false)), Status::Success);
    EXPECT_EQ(receive(), Status::Success);
    EXPECT_EQ(machine->get<auth::Failed>().header.id, auth::kFailure1);
    EXPECT_EQ(machine->get<auth::Failed>().explanation, 1);
    EXPECT_TRUE(machine->queues[0]->channel.closed);
}

TEST_F(NvmeofAuthentication, MessagesOutOfTurnFail) {
    EXPECT_EQ(receive(), Status::SequenceError);
    EXPECT_EQ(send(bytes_of(negotiation(9))), Status::Success);
    EXPECT_EQ(receive(), Status::Success);
    EXPECT_EQ(machine->get<auth::Failed>().explanation,
              static_cast<std::uint8_t>(auth::Failure::HashUnusable));
}

class NvmeofAuthenticationByGroup : public NvmeofAuthentication {
  protected:
    NvmeofAuthenticationByGroup() : NvmeofAuthentication(1) {}
};

TEST_F(NvmeofAuthenticationByGroup, TheRightSecretOpensTheController) {
    prove_on(0);
    EXPECT_EQ(enable(), Status::Success);
    machine->open(1);
    EXPECT_EQ(status(machine->connect(1, 32, Machine::connect_data(kNqn, id))), Status::Success);
    const Digest first = shared_;
    prove_on(1);
    EXPECT_NE(first, shared_) << "each conversation has a value of its own";
    EXPECT_EQ(status(machine->run(1, Machine::entry(static_cast<std::uint8_t>(nvme::IoOpcode::Flush), 1))),
              Status::Success);
}

TEST_F(NvmeofAuthenticationByGroup, AWrongSecretDoesNot) {
    EXPECT_EQ(send(bytes_of(negotiation())), Status::Success);
    EXPECT_EQ(receive(), Status::Success);
    EXPECT_EQ(send(reply(kPlain, false)), Status::Success);
    EXPECT_EQ(receive(), Status::Success);
    EXPECT_EQ(machine->get<auth::Failed>().explanation, static_cast<std::uint8_t>(auth::Failure::Failed));
    EXPECT_TRUE(machine->queues[0]->channel.closed);
}

TEST_F(NvmeofAuthenticationByGroup, HostsThatDoNotOfferTheGroupAreRefused) {
    auth::Negotiate other = negotiation();
    other.descriptor.group_list = {0, 2, 3};
    other.descriptor.groups = 3;
    EXPECT_EQ(send(bytes_of(other)), Status::Success);
    EXPECT_EQ(receive(), Status::Success);
    EXPECT_EQ(machine->get<auth::Failed>().explanation,
              static_cast<std::uint8_t>(auth::Failure::GroupUnusable));
}

TEST_F(NvmeofAuthenticationByGroup, AValueThatGivesTheSecretAwayIsRefused) {
    EXPECT_EQ(send(bytes_of(negotiation())), Status::Success);
    EXPECT_EQ(receive(), Status::Success);
    std::vector<std::byte> message = reply(kHashed, false);
    std::fill(message.end() - 256, message.end(), std::byte{0});
    message.back() = std::byte{1};
    EXPECT_EQ(send(message), Status::Success);
    EXPECT_EQ(receive(), Status::Success);
    EXPECT_EQ(machine->get<auth::Failed>().explanation,
              static_cast<std::uint8_t>(auth::Failure::IncorrectPayload));
    EXPECT_TRUE(machine->queues[0]->channel.closed);
}

TEST_F(NvmeofAuthentication, AMessageThatDoesNotFitStaysDue) {
    EXPECT_EQ(send(bytes_of(negotiation())), Status::Success);
    EXPECT_EQ(status(machine->run(0, message_entry(nvme::FabricsType::AuthenticationReceive, 16))),
              Status::SequenceError);
    EXPECT_EQ(receive(), Status::Success);
    EXPECT_EQ(machine->get<auth::Challenge>().header.id, auth::kChallenge);
}

TEST_F(NvmeofAuthenticationByGroup, AConnectionMayEndInTheMiddleOfTheArithmetic) {
    machine->put(0, bytes_of(negotiation()));
    auto& queue = *machine->queues[0];
    queue.submit(message_entry(nvme::FabricsType::AuthenticationSend, sizeof(auth::Negotiate)), {});
    while (machine->runtime.in_background() == 0) {
        (void)machine->runtime.step();
        queue.channel.pump();
    }
    queue.channel.end();
    machine->settle();
    machine->open(0);
    EXPECT_EQ(status(machine->connect(0, 32, Machine::connect_data(kNqn, 0xffff))), Status::Success);
}

TEST_F(NvmeofAuthentication, AStrangerIsRefused) {
    machine->queues[0]->channel.end();
    machine->settle();
    machine->open(0);
    EXPECT_EQ(status(machine->connect(0, 32, Machine::connect_data(kNqn, 0xffff, "nqn.stranger"))),
              Status::ConnectHost);
}

}  // namespace
}  // namespace ernic::nvmeof::test
