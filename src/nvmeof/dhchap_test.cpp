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
    std::string path_ = "dhchap_test_XXXXXX";
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

/// A host that authenticates itself at a target.
class NvmeofAuthentication : public testing::Test {
  protected:
    NvmeofAuthentication() : file_(fmt::format("{} {} {}\n", kHostNqn, kHashed, kPlain)) {
        TargetConfig config = default_config();
        config.auth_file = file_.path();
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
    Status send(Bytes message) {
        machine->put(0, message);
        return status(machine->run(0, message_entry(nvme::FabricsType::AuthenticationSend,
                                                    static_cast<std::uint32_t>(message.size()))));
    }
    Status receive() {
        return status(machine->run(0, message_entry(nvme::FabricsType::AuthenticationReceive, 256)));
    }
    static auth::Negotiate negotiation(std::uint8_t hash = auth::kSha384) {
        auth::Negotiate negotiate{};
        negotiate.header = {auth::kCommon, auth::kNegotiate, {}, le16(77)};
        negotiate.descriptors = 1;
        negotiate.descriptor.method = auth::kDhChap;
        negotiate.descriptor.hashes = 1;
        negotiate.descriptor.groups = 2;
        negotiate.descriptor.hash_list[0] = hash;
        negotiate.descriptor.group_list[0] = 1;
        return negotiate;
    }
    /// Answers the challenge in host memory, with `secret`; with a challenge of its own if `mutual`.
    std::vector<std::byte> reply(const char* secret, bool mutual) {
        const auto head = machine->get<auth::Challenge>();
        EXPECT_EQ(head.header.id, auth::kChallenge);
        EXPECT_EQ(head.hash_length, 48);
        const Digest challenge(machine->ram.bytes.begin() + 16, machine->ram.bytes.begin() + 16 + 48);
        const Digest key = *secret_key(secret, kHostNqn);
        const std::uint8_t zero = 0;
        const std::string_view host = kHostNqn;
        const std::string_view nqn = kNqn;
        const std::string_view role = "HostHost";
        const Digest response = hmac(head.hash, key,
                                     {challenge, bytes_of(head.sequence), bytes_of(le16(77)), bytes_of(zero),
                                      std::as_bytes(std::span(role)), std::as_bytes(std::span(host)),
                                      bytes_of(zero), std::as_bytes(std::span(nqn))});
        auth::Reply message{};
        message.header = {auth::kDhChap, auth::kReply, {}, le16(77)};
        message.hash_length = 48;
        message.challenge_valid = mutual ? 1 : 0;
        message.sequence.set(5);
        std::vector<std::byte> bytes(bytes_of(message).begin(), bytes_of(message).end());
        bytes.insert(bytes.end(), response.begin(), response.end());
        bytes.insert(bytes.end(), 48, std::byte{0x33});
        return bytes;
    }
    Status enable() { return status(machine->set_property(nvme::property::kConfiguration, 0x00460001)); }

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
    EXPECT_EQ(send(bytes_of(negotiation())), Status::Success);
    EXPECT_EQ(receive(), Status::Success);
    EXPECT_EQ(send(reply(kHashed, false)), Status::Success);
    EXPECT_EQ(receive(), Status::Success);
    EXPECT_EQ(machine->get<auth::Success1>().header.id, auth::kSuccess1);
    EXPECT_EQ(machine->get<auth::Success1>().response_valid, 0);
    EXPECT_EQ(enable(), Status::Success);
    EXPECT_EQ(status(machine->connect(1, 32, Machine::connect_data(kNqn, id))), Status::Success);
}

TEST_F(NvmeofAuthentication, TheTargetProvesItselfToo) {
    EXPECT_EQ(send(bytes_of(negotiation())), Status::Success);
    EXPECT_EQ(receive(), Status::Success);
    EXPECT_EQ(send(reply(kHashed, true)), Status::Success);
    EXPECT_EQ(receive(), Status::Success);
    EXPECT_EQ(machine->get<auth::Success1>().response_valid, 1);
    const std::uint8_t zero = 0;
    const std::string_view host = kHostNqn;
    const std::string_view nqn = kNqn;
    const std::string_view role = "Controller";
    const std::vector<std::byte> challenge(48, std::byte{0x33});
    const Digest expected = hmac(
        auth::kSha384, *secret_key(kPlain, kNqn),
        {challenge, bytes_of(le32(5)), bytes_of(le16(77)), bytes_of(zero), std::as_bytes(std::span(role)),
         std::as_bytes(std::span(nqn)), bytes_of(zero), std::as_bytes(std::span(host))});
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

TEST_F(NvmeofAuthentication, AStrangerIsRefused) {
    machine->queues[0]->channel.end();
    machine->settle();
    machine->open(0);
    EXPECT_EQ(status(machine->connect(0, 32, Machine::connect_data(kNqn, 0xffff, "nqn.stranger"))),
              Status::ConnectHost);
}

}  // namespace
}  // namespace ernic::nvmeof::test
