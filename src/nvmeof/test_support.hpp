// SPDX-License-Identifier: MIT
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nvmeof/fake_host.hpp"
#include "nvmeof/target.hpp"
#include "wire/nvme.hpp"
#include "wire/nvme_identify.hpp"
#include "wire/nvme_log.hpp"

/// A host in miniature, with memory and queues but without RDMA.
namespace ernic::nvmeof::test {

namespace nvme = wire::nvme;
using nvme::AdminOpcode;
using nvme::Cns;
using nvme::IoOpcode;
using nvme::SglDescriptor;
using nvme::Status;
using nvme::SubmissionEntry;

constexpr const char* kHostNqn = "nqn.2014-08.org.nvmexpress:uuid:host";
constexpr const char* kNqn = "nvmet-test";

/// One queue of the host.
struct HostQueue {
    HostQueue(Target& target, HostRam& ram, std::uint16_t id, std::uint16_t entries,
              const wire::MacAddress& peer = {})
        : channel(ram) {
        const QueueRequest request{id, entries, entries, 0, peer};
        const auto grant = target.consider(request);
        EXPECT_TRUE(grant.has_value());
        channel.handler = &target.accepted(request, channel);
        capsules.resize(grant->entries);
        for (std::uint16_t slot = 0; slot < grant->entries; ++slot) {
            channel.free_slots.push_back(slot);
            capsules[slot].resize(grant->in_capsule_bytes);
        }
    }

    /// Sends a capsule, with a fresh id unless it has one.
    std::uint16_t submit(SubmissionEntry entry, Bytes in_capsule = {}) {
        const std::uint16_t slot = channel.free_slots.front();
        channel.free_slots.pop_front();
        if (entry.command_id.get() == 0) {
            entry.command_id.set(++last_id);
        }
        std::copy(in_capsule.begin(), in_capsule.end(), capsules[slot].begin());
        channel.handler->command(slot, bytes_of(entry),
                                 MutableBytes(capsules[slot]).first(in_capsule.size()));
        return entry.command_id.get();
    }

    FakeChannel channel;
    std::vector<std::vector<std::byte>> capsules;
    std::uint16_t last_id = 0x100;
};

constexpr std::uint32_t kRamBytes = 16U << 20U;

inline TargetConfig default_config() {
    TargetConfig config;
    config.namespaces = {{1, kRamBytes, 512, "", false, false}};
    config.host.ipv4 = net::IpPrefix::parse("192.168.200.1/24");
    return config;
}

/// A target and a host that talks to it.
class Machine {
  public:
    explicit Machine(const TargetConfig& config = default_config()) {
        auto made = Target::make(config, runtime, directory);
        EXPECT_TRUE(made.ok()) << made.error().message;
        target = std::move(*made);
    }

    FakeClock clock;
    EventLoop loop{clock};
    Runtime runtime{loop, log::Logger(log::null_sink(), "nvmeof")};
    Directory directory;
    std::unique_ptr<Target> target;
    HostRam ram{9U << 20U};
    std::map<std::uint16_t, std::unique_ptr<HostQueue>> queues;

    HostQueue& open(std::uint16_t id, std::uint16_t entries = 32) {
        queues[id] = std::make_unique<HostQueue>(*target, ram, id, entries);
        return *queues[id];
    }

    /// Lets everything happen that can.
    void settle() {
        bool more = true;
        while (more) {
            more = runtime.step();
            for (auto& [id, queue] : queues) {
                more = more || !queue->channel.idle();
                queue->channel.pump();
                if ((queue->channel.broken || queue->channel.closed) && !queue->channel.ended) {
                    queue->channel.end();
                    more = true;
                }
            }
            if (!more && runtime.in_background() != 0) {
                loop.run_once(true);
                more = true;
            }
        }
        loop.run_once(false);
    }

    /// Advances time and lets timers fire.
    void wait(Nanoseconds time) {
        clock.advance(time);
        loop.run_once(false);
        settle();
    }

    /// The status of what `queue` answers next; settles first.
    FakeChannel::Response next(std::uint16_t queue) {
        settle();
        auto& responses = queues.at(queue)->channel.responses;
        if (responses.empty()) {
            ADD_FAILURE() << "no response on queue " << queue;
            return {};
        }
        EXPECT_FALSE(queues.at(queue)->channel.violated);
        const auto response = responses.front();
        responses.pop_front();
        return response;
    }
    [[nodiscard]] bool answered(std::uint16_t queue) {
        settle();
        return !queues.at(queue)->channel.responses.empty();
    }

    FakeChannel::Response run(std::uint16_t queue, const SubmissionEntry& entry, Bytes in_capsule = {}) {
        queues.at(queue)->submit(entry, in_capsule);
        return next(queue);
    }

    /// An entry whose data are `length` bytes of host memory from `offset` on.
    static SubmissionEntry entry(std::uint8_t opcode, std::uint32_t nsid, std::uint32_t length = 0,
                                 std::uint64_t offset = 0) {
        SubmissionEntry e{};
        e.opcode = opcode;
        e.flags = SubmissionEntry::kPsdtSgl;
        e.nsid.set(nsid);
        e.data = length == 0 ? SglDescriptor::keyed(0, 0, 0, false)
                             : SglDescriptor::keyed(kHostBase + offset, length, kKey, false);
        return e;
    }
    static SubmissionEntry entry(AdminOpcode opcode, std::uint32_t nsid = 0, std::uint32_t length = 0) {
        return entry(static_cast<std::uint8_t>(opcode), nsid, length);
    }
    /// Reads, writes and the like: `blocks` from `first` on.
    static SubmissionEntry io(IoOpcode opcode, std::uint64_t first, std::uint32_t blocks,
                              std::uint32_t length = 0, std::uint64_t offset = 0) {
        SubmissionEntry e = entry(static_cast<std::uint8_t>(opcode), 1, length, offset);
        e.dwords[0].set(static_cast<std::uint32_t>(first));
        e.dwords[1].set(static_cast<std::uint32_t>(first >> 32U));
        e.dwords[2].set(blocks - 1);
        return e;
    }
    static SubmissionEntry fabrics(nvme::FabricsType type) {
        return entry(static_cast<std::uint8_t>(AdminOpcode::Fabrics), static_cast<std::uint32_t>(type));
    }

    static SubmissionEntry connect_entry(std::uint16_t queue, std::uint16_t entries,
                                         std::uint32_t keep_alive = 0) {
        SubmissionEntry e = fabrics(nvme::FabricsType::Connect);
        e.data = SglDescriptor::keyed(kHostBase, sizeof(nvme::ConnectData), kKey, false);
        e.dwords[0].set(std::uint32_t{queue} << 16U);
        e.dwords[1].set(entries - 1U);
        e.dwords[2].set(keep_alive);
        return e;
    }
    static nvme::ConnectData connect_data(const std::string& nqn, std::uint16_t controller,
                                          const std::string& host = kHostNqn) {
        nvme::ConnectData data{};
        data.host_id[0] = std::byte{0x42};
        data.controller_id.set(controller);
        std::copy(nqn.begin(), nqn.end(), data.subsystem_nqn.begin());
        std::copy(host.begin(), host.end(), data.host_nqn.begin());
        return data;
    }
    /// Connects by data in host memory, or in the capsule.
    FakeChannel::Response connect(std::uint16_t queue, std::uint16_t entries, const nvme::ConnectData& data,
                                  std::uint32_t keep_alive = 0, bool in_capsule = false) {
        SubmissionEntry e = connect_entry(queue, entries, keep_alive);
        if (in_capsule) {
            e.data = SglDescriptor::in_capsule(0, sizeof data);
            return run(queue, e, bytes_of(data));
        }
        put(0, bytes_of(data));
        return run(queue, e);
    }

    std::uint64_t property(std::uint32_t offset, bool wide = false) {
        SubmissionEntry e = fabrics(nvme::FabricsType::PropertyGet);
        e.dwords[0].set(wide ? 1 : 0);
        e.dwords[1].set(offset);
        const auto response = run(0, e);
        EXPECT_EQ(response.entry.status.get(), 0);
        return response.entry.result.get();
    }
    FakeChannel::Response set_property(std::uint32_t offset, std::uint32_t value) {
        SubmissionEntry e = fabrics(nvme::FabricsType::PropertySet);
        e.dwords[1].set(offset);
        e.dwords[2].set(value);
        return run(0, e);
    }

    /// Admin queue, connected and enabled; returns the controller's id.
    std::uint16_t bring_up_admin(const std::string& nqn = kNqn, std::uint32_t keep_alive = 0) {
        open(0);
        const auto response = connect(0, 32, connect_data(nqn, 0xffff), keep_alive);
        EXPECT_EQ(response.entry.status.get(), 0);
        set_property(nvme::property::kConfiguration, 0x00460000);
        set_property(nvme::property::kConfiguration, 0x00460001);
        return static_cast<std::uint16_t>(response.entry.result.get());
    }
    /// The same, and I/O queue 1.
    std::uint16_t bring_up(std::uint16_t io_entries = 32) {
        const std::uint16_t id = bring_up_admin();
        open(1, io_entries);
        EXPECT_EQ(connect(1, io_entries, connect_data(kNqn, id)).entry.status.get(), 0);
        return id;
    }

    void put(std::size_t offset, Bytes data) {
        std::memcpy(ram.bytes.data() + offset, data.data(), data.size());
    }
    template <typename T>
    T get(std::size_t offset = 0) {
        return *read_value<T>(Bytes(ram.bytes).subspan(offset));
    }
    void fill(std::size_t offset, std::size_t size, std::uint8_t seed) {
        for (std::size_t i = 0; i < size; ++i) {
            ram.bytes[offset + i] = static_cast<std::byte>(seed + i * 7 + i / 256);
        }
    }
    [[nodiscard]] bool same(std::size_t a, std::size_t b, std::size_t size) const {
        return std::memcmp(ram.bytes.data() + a, ram.bytes.data() + b, size) == 0;
    }
};

/// The status of a response, without its Do Not Retry and More bits.
inline Status status(const FakeChannel::Response& response) {
    return static_cast<Status>(response.entry.status.get() >> 1U & 0x7ffU);
}
inline bool do_not_retry(const FakeChannel::Response& response) {
    return (response.entry.status.get() >> 1U & nvme::kDoNotRetry) != 0;
}

}  // namespace ernic::nvmeof::test
