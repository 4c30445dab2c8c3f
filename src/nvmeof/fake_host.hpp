// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "nvmeof/transport.hpp"
#include "wire/nvme.hpp"

/// The transport's place taken by memory, for tests and fuzzing.
namespace ernic::nvmeof::test {

namespace nvme = wire::nvme;

constexpr std::uint64_t kHostBase = 0x10000;
constexpr std::uint32_t kKey = 0x1234;

/// The host's memory: one region, under one key.
struct HostRam {
    explicit HostRam(std::size_t size) : bytes(size) {}
    std::vector<std::byte> bytes;

    [[nodiscard]] std::byte* at(const HostMemory& memory, std::uint32_t offset, std::size_t size) {
        if (memory.key != kKey || memory.address < kHostBase) {
            return nullptr;
        }
        const std::uint64_t start = memory.address - kHostBase + offset;
        return start <= bytes.size() && size <= bytes.size() - start && offset + size <= memory.length
                   ? bytes.data() + start
                   : nullptr;
    }
};

/// A connection: keeps what is asked of it until pump(), as a card would.
class FakeChannel final : public QueueChannel {
  public:
    explicit FakeChannel(HostRam& ram) : ram_(ram) {}

    struct Response {
        nvme::CompletionEntry entry;
        std::optional<std::uint32_t> invalidated;
    };

    void write_host(const HostMemory& to, std::uint32_t offset, const mem::SpanList& from,
                    Transfer* done) override {
        pending_.push_back({to, offset, from, true, done, {}, {}, 0});
    }
    void read_host(const HostMemory& from, std::uint32_t offset, const mem::SpanList& to,
                   Transfer& done) override {
        pending_.push_back({from, offset, to, false, &done, {}, {}, 0});
    }
    void respond(std::uint16_t slot, Bytes completion, std::optional<std::uint32_t> key) override {
        violated = violated || completion.size() != kCompletionBytes || closed;
        pending_.push_back(
            {{}, 0, {}, false, nullptr, read_value<nvme::CompletionEntry>(completion), key, slot});
    }
    void close() override { closed = true; }

    /// Does all that is pending, in order. False: a transfer has failed, the connection is broken.
    bool pump() {
        while (!pending_.empty() && !broken) {
            const Pending next = pending_.front();
            pending_.pop_front();
            if (next.completion) {
                responses.push_back({*next.completion, next.key});
                free_slots.push_back(next.slot);
                answered_slots.push_back(next.slot);
                handler->responded(next.slot);
                continue;
            }
            std::byte* const place = ram_.at(next.host, next.offset, next.memory.bytes());
            mem::SpanList host;
            if (place == nullptr) {
                broken = true;
            } else {
                host.add(place, next.memory.bytes());
                next.write ? mem::copy(host, next.memory) : mem::copy(next.memory, host);
            }
            if (next.done != nullptr) {
                next.done->transferred(!broken);
            }
        }
        return !broken;
    }
    [[nodiscard]] bool idle() const { return pending_.empty(); }
    /// Ends the connection, as a lost one or after close().
    void end() {
        ended = true;
        pending_.clear();
        handler->gone();
    }

    QueueHandler* handler = nullptr;
    std::deque<Response> responses;
    std::deque<std::uint16_t> free_slots;
    /// Of the responses so far; the user's to clear.
    std::vector<std::uint16_t> answered_slots;
    bool closed = false;
    bool broken = false;
    /// The controller has done what it must not.
    bool violated = false;
    bool ended = false;

  private:
    struct Pending {
        HostMemory host;
        std::uint32_t offset;
        mem::SpanList memory;
        bool write;
        Transfer* done;
        std::optional<nvme::CompletionEntry> completion;
        std::optional<std::uint32_t> key;
        std::uint16_t slot;
    };
    HostRam& ram_;
    std::deque<Pending> pending_;
};

}  // namespace ernic::nvmeof::test
