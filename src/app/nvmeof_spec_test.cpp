// SPDX-License-Identifier: MIT
#include "app/nvmeof_spec.hpp"

#include <gtest/gtest.h>

#include "app/backend_spec.hpp"
#include "app/target_spec.hpp"

namespace ernic::app {
namespace {

constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20U;

nvmeof::TargetConfig read(std::string_view text) {
    auto parsed = parse_nvmeof(text);
    EXPECT_TRUE(parsed) << text << ": " << parsed.error().message;
    return parsed ? parsed.value() : nvmeof::TargetConfig{};
}

std::string refused(std::string_view text) {
    const auto parsed = parse_nvmeof(text);
    EXPECT_FALSE(parsed) << text;
    return parsed ? "" : parsed.error().message;
}

TEST(ParseNvmeof, EverythingHasADefault) {
    const auto config = read("");
    EXPECT_EQ(config.nqn, "nvmet-test");
    EXPECT_EQ(config.host.ipv4->to_string(), "192.168.200.1/24");
    EXPECT_EQ(config.port, 4420);
    EXPECT_EQ(config.queues, 8);
    EXPECT_EQ(config.in_capsule, 16384U);
    EXPECT_EQ(config.max_transfer, kMebibyte);
    EXPECT_EQ(config.namespaces, std::vector<nvmeof::NamespaceConfig>{nvmeof::NamespaceConfig{}});
    EXPECT_EQ(config.namespaces[0].size, 64 * kMebibyte);
    EXPECT_EQ(config.namespaces[0].block_size, 512U);
    EXPECT_EQ(config.namespaces[0].id, 1U);
}

TEST(ParseNvmeof, ReadsAllSettings) {
    const auto config = read(
        "size=1G,bs=4096,nqn=nqn.2024-01.org.example:a,ip=10.0.0.7/"
        "16,ip=fd00::7,gw=10.0.0.1,port=4421,queues=64,"
        "nsid=3,model=M,serial=S,mdts=2MiB,inline=8K,hosts=one,hosts=two,auth=/"
        "secret,dhgroup=ffdhe3072,latency=100us,iops=5000,"
        "fault=status=0x281;every=100;opcode=read;lba=8-0x10;dnr,mtu=9000,mac=02:00:00:00:00:09");
    EXPECT_EQ(config.host.ipv4->to_string(), "10.0.0.7/16");
    EXPECT_EQ(config.host.ipv6.at(0).to_string(), "fd00::7/64");
    EXPECT_EQ(config.host.ipv4_gateway->to_string(), "10.0.0.1");
    EXPECT_EQ(config.host.mtu, 9000);
    EXPECT_EQ(config.host.mac.bytes[5], 9);
    EXPECT_EQ(config.port, 4421);
    EXPECT_EQ(config.queues, 64);
    EXPECT_EQ(config.model, "M");
    EXPECT_EQ(config.serial, "S");
    EXPECT_EQ(config.max_transfer, 2 * kMebibyte);
    EXPECT_EQ(config.in_capsule, 8192U);
    EXPECT_EQ(config.hosts, (std::vector<std::string>{"one", "two"}));
    EXPECT_EQ(config.auth_file, "/secret");
    EXPECT_EQ(config.auth_group, 2);
    EXPECT_EQ(config.latency, 100'000U);
    EXPECT_EQ(config.iops, 5000U);
    ASSERT_EQ(config.faults.size(), 1U);
    const nvmeof::FaultConfig fault{
        .status = 0x281, .do_not_retry = true, .every = 100, .opcode = 2, .first_block = 8, .last_block = 16};
    EXPECT_EQ(config.faults[0], fault);
    ASSERT_EQ(config.namespaces.size(), 1U);
    EXPECT_EQ(config.namespaces[0].size, 1024 * kMebibyte);
    EXPECT_EQ(config.namespaces[0].block_size, 4096U);
    EXPECT_EQ(config.namespaces[0].id, 3U);
}

TEST(ParseNvmeof, NamespacesAreNumberedAroundThoseThatHaveNumbers) {
    const auto config =
        read("ns=size=1M,ns=file=/a;nsid=1;ro,ns=file=/b;size=2M;bs=4K;truncate,size=4M,nsid=4");
    ASSERT_EQ(config.namespaces.size(), 4U);
    EXPECT_EQ(config.namespaces[0].id, 1U);
    EXPECT_EQ(config.namespaces[0].file, "/a");
    EXPECT_EQ(config.namespaces[0].size, 0U);
    EXPECT_TRUE(config.namespaces[0].read_only);
    EXPECT_EQ(config.namespaces[1].id, 2U);
    EXPECT_EQ(config.namespaces[1].size, kMebibyte);
    EXPECT_EQ(config.namespaces[2].id, 3U);
    EXPECT_EQ(config.namespaces[2].block_size, 4096U);
    EXPECT_TRUE(config.namespaces[2].truncate);
    EXPECT_EQ(config.namespaces[3].id, 4U);
    // Without settings of its own there is no first one.
    EXPECT_EQ(read("ns=size=1M").namespaces.size(), 1U);
}

TEST(ParseNvmeof, SizesHaveManySpellings) {
    for (const char* text : {"size=1048576", "size=1048576B", "size=1024K", "size=1024KB", "size=1024KiB",
                             "size=1M", "size=1MB", "size=1MiB"}) {
        EXPECT_EQ(read(text).namespaces[0].size, kMebibyte) << text;
    }
    EXPECT_EQ(read("size=2T").namespaces[0].size, 2 * kMebibyte * kMebibyte);
    for (const char* text : {"size=M", "size=1iB", "size=", "size=1m", "size=1.5M", "size=-1", "size=1 M"}) {
        EXPECT_FALSE(refused(text).empty()) << text;
    }
    EXPECT_EQ(refused("size=99999999T"),
              "nvmeof option size '99999999T' is too large: at most 'size=1048576T'");
}

TEST(ParseNvmeof, ABadSpellingIsRefusedWithTheNearestOne) {
    EXPECT_TRUE(refused("sizze=1M").starts_with("unknown nvmeof option 'sizze': did you mean 'size'?"));
    EXPECT_EQ(refused("size=1000"),
              "nvmeof option size '1000' is no multiple of the block size 512: the nearest valid value is "
              "'512'");
    EXPECT_EQ(refused("bs=513"), "nvmeof option bs '513' is no block size: write 512, 1024, 2048 or 4096");
    EXPECT_EQ(refused("queues=65"),
              "nvmeof option queues '65' is out of range: the nearest valid value is '64' (1 to 64)");
    EXPECT_EQ(refused("ro=1"), "nvmeof option 'ro' takes no value: write just 'ro'");
    EXPECT_EQ(refused("ns=size=1M;nsid=2,ns=size=1M;nsid=2"),
              "nvmeof namespace 2 is given twice: change one nsid");
    EXPECT_EQ(refused("ns=size=1M;"), "nvmeof ns options end with a semicolon: leave it out");
    EXPECT_TRUE(refused("ns=sise=1M").starts_with("unknown nvmeof ns option 'sise': did you mean 'size'?"));
    EXPECT_EQ(refused("truncate"),
              "nvmeof option 'truncate' means nothing without 'file=..': add that or leave it out");
    EXPECT_EQ(refused("truncate,file=/x"),
              "nvmeof option 'truncate' needs to know the size: write for example 'size=64M'");
    EXPECT_EQ(refused("fault=every=3"),
              "nvmeof option fault needs a status: write for example 'fault=status=0x281;every=100'");
    EXPECT_TRUE(refused("fault=status=1;opcode=raed")
                    .starts_with("unknown nvmeof fault opcode 'raed': did you mean 'read'?"));
    EXPECT_TRUE(refused("nqn=nqn.2014-08.org.nvmexpress.discovery").ends_with("every discovery service"));
    EXPECT_TRUE(refused("auth=/secret,dhgroup=ffdhe2084")
                    .starts_with("unknown nvmeof dhgroup 'ffdhe2084': did you mean 'ffdhe2048'?"));
    EXPECT_TRUE(refused("dhgroup=ffdhe2048").starts_with("nvmeof option 'dhgroup' needs secrets"));
    for (const char* text : {"port=0",
                             "port=65536",
                             "queues=0",
                             "mdts=3M",
                             "mdts=1K",
                             "mdts=4K",
                             "inline=32K",
                             "inline=17",
                             "latency=5",
                             "iops=0",
                             "model=12345678901234567890123456789012345678901",
                             "serial=123456789012345678901",
                             "nqn=a b",
                             "ip=192.168.200.255",
                             "ip=1.2.3.4/33",
                             "fault=status=0",
                             "fault=status=0x800",
                             "fault=status=1;lba=5-4",
                             "nsid=0",
                             "nsid=1025",
                             "gw=10.0.0.1",
                             "size=0",
                             "nqn="}) {
        EXPECT_FALSE(refused(text).empty()) << text;
    }
    EXPECT_FALSE(refused("nqn=" + std::string(224, 'x')).empty());
}

TEST(ParseNvmeof, APathBringsOnlyItsPlace) {
    const auto path = parse_nvmeof("path-of=nvmet-test,ip=10.0.0.2,port=4421,ana=inaccessible").value();
    EXPECT_EQ(path.path_of, "nvmet-test");
    EXPECT_EQ(path.port, 4421);
    EXPECT_EQ(path.ana_state, wire::nvme::AnaState::Inaccessible);
    EXPECT_TRUE(path.namespaces.empty());
    EXPECT_EQ(parse_nvmeof("ana=change").value().ana_state, wire::nvme::AnaState::Change);
    EXPECT_EQ(refused("path-of=x,ip=10.0.0.2,size=1M"),
              "nvmeof option 'size' belongs to the target 'x' and not to a path to it: leave it out");
    EXPECT_TRUE(refused("path-of=x").starts_with("nvmeof option 'path-of' needs an address of its own"));
    EXPECT_TRUE(
        refused("ana=optimised").starts_with("unknown ANA state 'optimised': did you mean 'optimized'?"));
    EXPECT_FALSE(refused("path-of=").empty());
}

TEST(ParseNvmeof, IsATargetAndABackend) {
    const auto target = parse_target("nvmeof:size=1M");
    ASSERT_TRUE(target);
    EXPECT_EQ(target.value().kind, TargetSpec::Kind::Nvmeof);
    EXPECT_EQ(target.value().nvmeof->namespaces[0].size, kMebibyte);
    EXPECT_EQ(target.value().host.ipv4->to_string(), "192.168.200.1/24");
    EXPECT_TRUE(parse_target("nvmeof"));
    for (const char* text : {"nvmeof", "nvmeof:size=1M"}) {
        const auto backend = parse_backend(text);
        ASSERT_TRUE(backend) << text;
        EXPECT_EQ(backend.value().kind, BackendSpec::Kind::Nvmeof);
        EXPECT_EQ(to_string(backend.value()), text);
    }
    EXPECT_FALSE(parse_backend("nvmeof:sizze=1M"));
}

}  // namespace
}  // namespace ernic::app
