// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "net/stack/host.hpp"
#include "nvmeof/limits.hpp"
#include "wire/nvme.hpp"
#include "wire/nvme_log.hpp"

/// What one target is made of: complete, checked and typed. app/nvmeof_spec reads it from the command line;
/// docs/nvmeof.md says what each option means.
namespace ernic::nvmeof {

/// One namespace and the medium behind it.
struct NamespaceConfig {
    static constexpr std::uint32_t kMostId = 1024;
    /// 512, 1024, 2048 and 4096 are.
    static constexpr bool is_block_size(std::uint64_t bytes) {
        return bytes >= 512 && bytes <= 4096 && std::has_single_bit(bytes);
    }

    std::uint32_t id = 1;
    /// Bytes; 0 only with `file`: the size of the file.
    std::uint64_t size = std::uint64_t{64} << 20U;
    /// Bytes of a logical block.
    std::uint32_t block_size = 512;
    /// Empty: memory of the process.
    std::string file;
    bool read_only = false;
    /// `file` may be made as large, or as small, as `size` says.
    bool truncate = false;
    /// Goes into its identifiers: not 0 for a namespace whose content is another one each time.
    std::uint64_t generation = 0;

    friend bool operator==(const NamespaceConfig&, const NamespaceConfig&) = default;
};

/// A fault on purpose: some commands end with a status of the operator's choice.
struct FaultConfig {
    /// Status code and its type as in a completion, without phase, retry and do-not-retry bits: SCT << 8 |
    /// SC.
    std::uint16_t status = 0;
    bool do_not_retry = false;
    /// Every so many matching commands fail; 1: each of them.
    std::uint64_t every = 1;
    /// Only commands of this opcode.
    std::optional<std::uint8_t> opcode;
    /// Only commands that touch one of these blocks.
    std::uint64_t first_block = 0;
    std::uint64_t last_block = UINT64_MAX;

    friend bool operator==(const FaultConfig&, const FaultConfig&) = default;
};

/// One target: a host on the segment and the one NVM subsystem it offers.
struct TargetConfig {
    /// Of I/O queues; the card's queues and the initiator's CPUs set the real number.
    static constexpr std::uint16_t kMostQueues = kMaxIoQueues;
    static constexpr std::uint16_t kDefaultPort = 4420;
    /// Where hosts look for a discovery controller first (NVMe over Fabrics, well-known port).
    static constexpr std::uint16_t kDiscoveryPort = 8009;
    static constexpr std::size_t kLongestNqn = wire::nvme::kMaxNqnLength;
    static constexpr std::size_t kModelBytes = 40;
    static constexpr std::size_t kSerialBytes = 20;
    /// MDTS counts pages of 4096 bytes as a power of two, and 0 in it means no limit.
    static constexpr std::uint32_t kLeastTransfer = 8192;
    static constexpr std::uint32_t kMostTransfer = kMaxTransfer;
    static constexpr std::uint32_t kMostInline = kMaxInCapsule;

    /// NQN of the target whose subsystem this one is a further path to; empty: it has its own. A path takes
    /// everything but its addresses, port and ANA state from there.
    std::string path_of;
    /// How good this way to the subsystem is.
    wire::nvme::AnaState ana_state = wire::nvme::AnaState::Optimized;

    /// Its addresses; `mac` is zero until somebody has chosen one.
    net::stack::HostConfig host;
    std::uint16_t port = kDefaultPort;

    std::string nqn = "nvmet-test";
    std::string model = "rocm-ernic NVMe-oF target";
    /// Empty: made from the NQN, so that it stays the same from run to run.
    std::string serial;
    /// In ascending order of ids, at least one.
    std::vector<NamespaceConfig> namespaces;

    std::uint16_t queues = 8;
    /// Bytes of the longest transfer of one command: a power of two (MDTS).
    std::uint32_t max_transfer = std::uint32_t{1} << 20U;
    /// Bytes of data that a command capsule may carry: a multiple of 16.
    std::uint32_t in_capsule = kMostInline;

    /// NQNs of the hosts that may connect; empty: all.
    std::vector<std::string> hosts;
    /// File with the DH-HMAC-CHAP secrets; empty: no authentication.
    std::string auth_file;
    /// The Diffie-Hellman group of that (nvmeof/dh_exchange): 0 is none.
    std::uint8_t auth_group = 0;

    /// An emulated slower device: what each command takes at least, and how many commands in a second it
    /// does at most; 0: as fast as can be.
    Nanoseconds latency = 0;
    std::uint64_t iops = 0;
    std::vector<FaultConfig> faults;
};

}  // namespace ernic::nvmeof
