// SPDX-License-Identifier: MIT
#include "net/fault_spec.hpp"

#include <gtest/gtest.h>

#include <string>

namespace ernic::net {
namespace {

FaultSpec parsed(std::string_view text) {
    const auto spec = parse_fault(text);
    EXPECT_TRUE(spec) << text << ": " << (spec ? "" : spec.error().message);
    return spec ? spec.value() : FaultSpec();
}

std::string refusal(std::string_view text) {
    const auto spec = parse_fault(text);
    EXPECT_FALSE(spec) << text;
    return spec ? "" : spec.error().message;
}

TEST(FaultSpec, AWordAloneIsAWholeFault) {
    EXPECT_EQ(parsed("drop"), FaultSpec());
    EXPECT_EQ(parsed("duplicate").kind, FaultKind::Duplicate);
    EXPECT_EQ(parsed("reorder").amount, 1U);
    EXPECT_EQ(parsed("corrupt=8").amount, 8U);
    EXPECT_EQ(parsed("delay=1.5ms").delay, 1'500'000U);
    EXPECT_EQ(parsed("rate=100Mbit").bits_per_second, 100'000'000U);
    EXPECT_EQ(parsed("link-down=2s").outage, 2'000'000'000U);
    EXPECT_TRUE(parsed("link-down=2s").immediate());
    EXPECT_FALSE(parsed("link-down=2s,after=5").immediate());
}

TEST(FaultSpec, EveryKeyIsRead) {
    const FaultSpec spec = parsed(
        "drop,direction=from-guest,from=02:00:00:00:00:01,to=ff:ff:ff:ff:ff:ff,qp=3,opcode=write+nak,"
        "after=2,every=10,count=5,probability=0.25,seed=7");
    EXPECT_EQ(spec.direction, Direction::FromGuest);
    EXPECT_EQ(spec.from->bytes[5], 1);
    EXPECT_TRUE(spec.to->multicast());
    EXPECT_EQ(spec.qp, 3U);
    EXPECT_EQ(spec.opcodes.bits(), OpcodeSet::bit(MessageKind::Write) | OpcodeSet::kNak);
    EXPECT_EQ(spec.after, 2U);
    EXPECT_EQ(spec.every, 10U);
    EXPECT_EQ(spec.count, 5U);
    EXPECT_EQ(spec.probability, 0.25);
    EXPECT_EQ(spec.seed, 7U);
    EXPECT_FALSE(spec.frames) << "qp and opcode are about messages";
    EXPECT_EQ(parsed("delay=1ms,jitter=3ms").jitter, 3'000'000U);
    EXPECT_EQ(parsed("drop,ethertype=0x88cc").ether_type, 0x88cc);
    EXPECT_EQ(parsed("drop,ethertype=arp,protocol=icmp").protocol, 1);
    EXPECT_FALSE(parsed("drop,protocol=tcp").messages);
    EXPECT_FALSE(parsed("drop,what=messages").frames);
}

TEST(FaultSpec, WhatIsPrintedIsReadAsTheSame) {
    for (const char* const text :
         {"drop", "drop,what=frames", "drop,what=messages,probability=0.1,seed=9", "delay=5ms,jitter=250us",
          "delay=1500us,opcode=read_response", "duplicate=3,direction=to-guest", "reorder,qp=17,every=4",
          "corrupt=2,opcode=send+write,count=1", "rate=64kbit", "rate=2500Mbit,from=02:00:5e:10:00:01",
          "link-down", "link-down=2s,protocol=icmp,after=5,count=1", "drop,ethertype=vlan",
          "drop,opcode=request", "drop,opcode=atomic+ack", "drop,ethertype=0x88cc,protocol=200"}) {
        EXPECT_EQ(to_string(parsed(text)), text);
    }
    EXPECT_EQ(to_string(parsed("drop,opcode=cmp_swap+fetch_add,every=1,what=messages")),
              "drop,opcode=atomic");
}

TEST(FaultSpec, ARefusalNamesTheNearestValidSpelling) {
    const auto says = [](std::string_view text, std::string_view part) {
        const std::string sentence = refusal(text);
        EXPECT_NE(sentence.find(part), std::string::npos) << text << ": " << sentence;
        EXPECT_EQ(sentence.find('\n'), std::string::npos);
    };
    says("dorp", "did you mean 'drop'?");
    says("", "did you mean");
    says("linkdown", "did you mean 'link-down'?");
    says("drop,evry=3", "did you mean 'every'?");
    says("drop,opcode=wirte", "did you mean 'write'?");
    says("drop,opcode=write+", "unknown opcode ''");
    says("drop,what=message", "did you mean 'messages'?");
    says("drop,direction=guest", "from-guest");
    says("drop,protocol=tpc", "did you mean 'tcp'?");
    says("drop,ethertype=ip4", "did you mean 'ipv4'?");
    says("drop=3", "count=5");
    says("delay", "'delay=5ms'");
    says("delay=5", "'delay=5ms'");
    says("delay=61s", "up to 60s");
    says("delay=nans", "is not a time");
    says("rate", "'rate=100Mbit'");
    says("rate=100", "'rate=100Mbit'");
    says("rate=1bit", "1kbit");
    says("drop,every=0", "'every=1'");
    says("drop,every=x", "is not a whole number");
    says("drop,qp=16777216", "'qp=16777215'");
    says("drop,to=02:00", "'to=02:00:5e:10:00:01'");
    says("drop,probability=0", "'probability=0.01'");
    says("drop,probability=1.1", "'probability=0.01'");
    says("drop,every", "needs a value");
    says("drop,every=", "needs a value");
    says("drop,every=2,every=3", "given twice");
    says("drop,", "unknown fault option ''");
    says("drop,jitter=1ms", "belongs to a delay");
    says("drop,qp=3,protocol=tcp", "two faults");
    says("drop,what=frames,qp=3", "what=messages");
    says("corrupt=0", "'corrupt=1'");
}

}  // namespace
}  // namespace ernic::net
