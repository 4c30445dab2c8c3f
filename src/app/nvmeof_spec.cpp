// SPDX-License-Identifier: MIT
#include "app/nvmeof_spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <string>
#include <vector>

#include "app/ana_words.hpp"
#include "app/host_spec.hpp"
#include "app/spec_items.hpp"
#include "base/number.hpp"
#include "base/suggest.hpp"
#include "net/fault_words.hpp"
#include "nvmeof/dh_exchange.hpp"
#include "wire/nvme.hpp"

namespace ernic::app {
namespace {

using nvmeof::FaultConfig;
using nvmeof::NamespaceConfig;
using nvmeof::TargetConfig;
using wire::nvme::IoOpcode;

constexpr std::string_view kWhat = "nvmeof";
constexpr std::array<std::string_view, 26> kKeys = {
    "ip",   "port",   "nqn",   "size",   "bs",   "file",   "nsid",    "ro",     "truncate",
    "ns",   "queues", "model", "serial", "mdts", "inline", "hosts",   "auth",   "latency",
    "iops", "fault",  "gw",    "mac",    "mtu",  "ana",    "path-of", "dhgroup"};
/// What a further path may have of its own.
constexpr std::array<std::string_view, 7> kPathKeys = {"path-of", "ip", "port", "ana", "gw", "mac", "mtu"};
constexpr std::array<std::string_view, 4> kRepeatable = {"ip", "ns", "hosts", "fault"};
constexpr std::array<std::string_view, 2> kFlags = {"ro", "truncate"};
constexpr std::array<std::string_view, 6> kNamespaceKeys = {"size", "bs", "file", "nsid", "ro", "truncate"};
constexpr std::array<std::string_view, 5> kFaultKeys = {"status", "every", "opcode", "lba", "dnr"};
constexpr std::array<std::string_view, 1> kFaultFlags = {"dnr"};
constexpr std::string_view kDefaultAddress = "192.168.200.1";
constexpr std::size_t kMostNamespaces = 64;
constexpr std::size_t kMostHosts = 64;
constexpr std::size_t kMostFaults = 16;

struct OpcodeName {
    std::string_view name;
    /// None: any.
    std::optional<IoOpcode> opcode;
};
constexpr std::array<OpcodeName, 10> kOpcodes = {{{"flush", IoOpcode::Flush},
                                                  {"write", IoOpcode::Write},
                                                  {"read", IoOpcode::Read},
                                                  {"write-uncorrectable", IoOpcode::WriteUncorrectable},
                                                  {"compare", IoOpcode::Compare},
                                                  {"write-zeroes", IoOpcode::WriteZeroes},
                                                  {"dsm", IoOpcode::DatasetManagement},
                                                  {"verify", IoOpcode::Verify},
                                                  {"copy", IoOpcode::Copy},
                                                  {"any", std::nullopt}}};

/// Stores the value of `result`. Fails: its error.
template <typename T, typename Target>
std::optional<Error> store(const Result<T>& result, Target& target) {
    if (!result) {
        return result.error();
    }
    target = static_cast<Target>(result.value());
    return std::nullopt;
}

bool is_namespace_key(std::string_view key) {
    return std::find(kNamespaceKeys.begin(), kNamespaceKeys.end(), key) != kNamespaceKeys.end();
}

/// A namespace as it is being read.
struct NamespaceDraft {
    NamespaceConfig config;
    bool size_given = false;
    bool id_given = false;
};

std::optional<Error> apply_namespace(const SpecItem& item, NamespaceDraft& draft) {
    NamespaceConfig& config = draft.config;
    if (item.key == "size") {
        draft.size_given = true;
        return store(parse_size(kWhat, item.key, item.value), config.size);
    }
    if (item.key == "bs") {
        const auto size = parse_size(kWhat, item.key, item.value);
        if (!size) {
            return size.error();
        }
        if (!NamespaceConfig::is_block_size(size.value())) {
            return invalid(fmt::format(
                "nvmeof option bs '{}' is no block size: write 512, 1024, 2048 or 4096", item.value));
        }
        config.block_size = static_cast<std::uint32_t>(size.value());
        return std::nullopt;
    }
    if (item.key == "nsid") {
        draft.id_given = true;
        return store(parse_number(kWhat, item.key, item.value, 1, NamespaceConfig::kMostId), config.id);
    }
    if (item.key == "file") {
        config.file = item.value;
    } else if (item.key == "ro") {
        config.read_only = true;
    } else {
        config.truncate = true;
    }
    return std::nullopt;
}

/// What does not fit together.
std::optional<Error> check_namespace(NamespaceDraft& draft) {
    NamespaceConfig& config = draft.config;
    if (!config.file.empty() && !draft.size_given) {
        config.size = 0;
        if (config.truncate) {
            return invalid("nvmeof option 'truncate' needs to know the size: write for example 'size=64M'");
        }
        return std::nullopt;
    }
    if (config.truncate && config.file.empty()) {
        return invalid("nvmeof option 'truncate' means nothing without 'file=..': add that or leave it out");
    }
    if (config.size == 0 || config.size % config.block_size != 0) {
        const std::uint64_t nearest =
            std::max<std::uint64_t>(config.size / config.block_size, 1) * config.block_size;
        return invalid(fmt::format(
            "nvmeof option size '{}' is no multiple of the block size {}: the nearest valid value is '{}'",
            config.size, config.block_size, nearest));
    }
    return std::nullopt;
}

Result<NamespaceDraft> parse_namespace(std::string_view text) {
    NamespaceDraft draft;
    const auto items = parse_items("nvmeof ns", text, kNamespaceKeys, {.flags = kFlags, .separator = ';'});
    if (!items) {
        return items.error();
    }
    for (const SpecItem& item : items.value()) {
        if (auto problem = apply_namespace(item, draft)) {
            return *problem;
        }
    }
    return draft;
}

/// A number as `17` or `0x11`.
std::optional<std::uint64_t> parse_any_base(std::string_view text) {
    return text.starts_with("0x") ? parse_integer<std::uint64_t>(text.substr(2), 16)
                                  : parse_integer<std::uint64_t>(text);
}

std::optional<Error> apply_fault(const SpecItem& item, FaultConfig& fault) {
    const auto number = parse_any_base(item.value);
    if (item.key == "dnr") {
        fault.do_not_retry = true;
        return std::nullopt;
    }
    if (item.key == "status") {
        if (!number || *number == 0 || *number > 0x7ff) {
            return invalid(
                fmt::format("nvmeof fault status '{}' is no status of NVMe: write for example 'status=0x281'",
                            item.value));
        }
        fault.status = static_cast<std::uint16_t>(*number);
        return std::nullopt;
    }
    if (item.key == "every") {
        return store(parse_number("nvmeof fault", item.key, item.value, 1, UINT32_MAX), fault.every);
    }
    if (item.key == "opcode") {
        std::vector<std::string_view> names;
        for (const OpcodeName& known : kOpcodes) {
            names.push_back(known.name);
            if (item.value == known.name) {
                fault.opcode =
                    known.opcode ? std::optional(static_cast<std::uint8_t>(*known.opcode)) : std::nullopt;
                return std::nullopt;
            }
        }
        if (!number || *number > 0xff) {
            return invalid(unknown_word("nvmeof fault opcode", item.value, names));
        }
        fault.opcode = static_cast<std::uint8_t>(*number);
        return std::nullopt;
    }
    const std::size_t dash = item.value.find('-');
    const auto first = parse_any_base(item.value.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_any_base(item.value.substr(dash + 1));
    if (!first || !last || *first > *last) {
        return invalid(fmt::format(
            "nvmeof fault lba '{}' is no range of blocks: write for example 'lba=100-199'", item.value));
    }
    fault.first_block = *first;
    fault.last_block = *last;
    return std::nullopt;
}

std::optional<Error> add_fault(std::string_view text, TargetConfig& config) {
    if (config.faults.size() == kMostFaults) {
        return invalid(fmt::format("more than {} faults for one nvmeof target", kMostFaults));
    }
    FaultConfig fault;
    const auto items =
        parse_items("nvmeof fault", text, kFaultKeys, {.flags = kFaultFlags, .separator = ';'});
    if (!items) {
        return items.error();
    }
    for (const SpecItem& item : items.value()) {
        if (auto problem = apply_fault(item, fault)) {
            return problem;
        }
    }
    if (fault.status == 0) {
        return invalid(
            "nvmeof option fault needs a status: write for example 'fault=status=0x281;every=100'");
    }
    config.faults.push_back(fault);
    return std::nullopt;
}

/// A name of a subsystem or host, which is what people type.
std::optional<Error> check_nqn(std::string_view key, std::string_view nqn) {
    const bool plain = std::all_of(nqn.begin(), nqn.end(), [](char c) { return c > ' ' && c < '\x7f'; });
    if (nqn.size() > TargetConfig::kLongestNqn || !plain) {
        return invalid(fmt::format("nvmeof option {} '{}' is no NQN: at most {} bytes, no spaces", key, nqn,
                                   TargetConfig::kLongestNqn));
    }
    if (nqn == wire::nvme::kDiscoveryNqn) {
        return invalid(fmt::format("nvmeof option {} '{}' is the name of every discovery service", key, nqn));
    }
    return std::nullopt;
}

std::optional<Error> set_text(const SpecItem& item, std::size_t most, std::string& target) {
    if (item.value.size() > most) {
        return invalid(fmt::format("nvmeof option {} '{}' is longer than the {} bytes there are for it",
                                   item.key, item.value, most));
    }
    target = item.value;
    return std::nullopt;
}

std::optional<Error> apply_limit(const SpecItem& item, TargetConfig& config) {
    if (item.key == "port") {
        return store(parse_number(kWhat, item.key, item.value, 1, 65535), config.port);
    }
    if (item.key == "queues") {
        return store(parse_number(kWhat, item.key, item.value, 1, TargetConfig::kMostQueues), config.queues);
    }
    if (item.key == "iops") {
        return store(parse_number(kWhat, item.key, item.value, 1, 100'000'000), config.iops);
    }
    if (item.key == "latency") {
        const auto time = net::fault_words::parse_time(item.value);
        if (!time) {
            return invalid(fmt::format(
                "nvmeof option latency '{}' is no time: write for example 'latency=100us'", item.value));
        }
        config.latency = *time;
        return std::nullopt;
    }
    const auto size = parse_size(kWhat, item.key, item.value);
    if (!size) {
        return size.error();
    }
    if (item.key == "mdts") {
        if (!std::has_single_bit(size.value()) || size.value() < TargetConfig::kLeastTransfer ||
            size.value() > TargetConfig::kMostTransfer) {
            return invalid(fmt::format(
                "nvmeof option mdts '{}' is no power of two from 8K to {}M: write for example 'mdts=1M'",
                item.value, TargetConfig::kMostTransfer >> 20U));
        }
        config.max_transfer = static_cast<std::uint32_t>(size.value());
    } else {
        if (size.value() > TargetConfig::kMostInline || size.value() % 16 != 0) {
            return invalid(fmt::format(
                "nvmeof option inline '{}' is no multiple of 16 up to {}K: write for example 'inline=8K'",
                item.value, TargetConfig::kMostInline >> 10U));
        }
        config.in_capsule = static_cast<std::uint32_t>(size.value());
    }
    return std::nullopt;
}

Result<std::uint8_t> parse_group(std::string_view text) {
    if (const auto group = nvmeof::group_of(text)) {
        return *group;
    }
    std::vector<std::string_view> names;
    for (std::uint8_t group = 0; nvmeof::known_group(group); ++group) {
        names.emplace_back(nvmeof::group_name(group));
    }
    return invalid(unknown_word("nvmeof dhgroup", text, names));
}

std::optional<Error> apply(const SpecItem& item, TargetConfig& config) {
    if (item.key == "ip") {
        std::string address(item.value);
        if (item.value.find('/') == std::string_view::npos) {
            address += item.value.find(':') == std::string_view::npos ? "/24" : "/64";
        }
        return apply_host_item(kWhat, {item.key, address}, config.host);
    }
    if (std::find(kHostKeys.begin(), kHostKeys.end(), item.key) != kHostKeys.end()) {
        return apply_host_item(kWhat, item, config.host);
    }
    if (item.key == "nqn") {
        config.nqn = item.value;
        return check_nqn(item.key, item.value);
    }
    if (item.key == "path-of") {
        config.path_of = item.value;
        return check_nqn(item.key, item.value);
    }
    if (item.key == "ana") {
        return store(parse_ana(item.value), config.ana_state);
    }
    if (item.key == "hosts") {
        if (config.hosts.size() == kMostHosts) {
            return invalid(fmt::format("more than {} hosts for one nvmeof target", kMostHosts));
        }
        config.hosts.emplace_back(item.value);
        return check_nqn(item.key, item.value);
    }
    if (item.key == "model") {
        return set_text(item, TargetConfig::kModelBytes, config.model);
    }
    if (item.key == "serial") {
        return set_text(item, TargetConfig::kSerialBytes, config.serial);
    }
    if (item.key == "auth") {
        config.auth_file = item.value;
        return std::nullopt;
    }
    if (item.key == "dhgroup") {
        return store(parse_group(item.value), config.auth_group);
    }
    if (item.key == "fault") {
        return add_fault(item.value, config);
    }
    return apply_limit(item, config);
}

/// Gives ids to those that have none, and sorts.
std::optional<Error> number_namespaces(std::vector<NamespaceDraft>& drafts, TargetConfig& config) {
    if (drafts.size() > kMostNamespaces) {
        return invalid(fmt::format("more than {} namespaces for one nvmeof target", kMostNamespaces));
    }
    std::vector<std::uint32_t> used;
    for (const NamespaceDraft& draft : drafts) {
        if (draft.id_given) {
            if (std::find(used.begin(), used.end(), draft.config.id) != used.end()) {
                return invalid(
                    fmt::format("nvmeof namespace {} is given twice: change one nsid", draft.config.id));
            }
            used.push_back(draft.config.id);
        }
    }
    std::uint32_t next = 1;
    for (NamespaceDraft& draft : drafts) {
        if (!draft.id_given) {
            while (std::find(used.begin(), used.end(), next) != used.end()) {
                ++next;
            }
            draft.config.id = next++;
        }
        if (auto problem = check_namespace(draft)) {
            return problem;
        }
        config.namespaces.push_back(draft.config);
    }
    std::sort(config.namespaces.begin(), config.namespaces.end(),
              [](const auto& a, const auto& b) { return a.id < b.id; });
    return std::nullopt;
}

/// A further path brings nothing along but its place.
std::optional<Error> check_path(const std::vector<SpecItem>& items, const TargetConfig& config) {
    for (const SpecItem& item : items) {
        if (std::find(kPathKeys.begin(), kPathKeys.end(), item.key) == kPathKeys.end()) {
            return invalid(fmt::format(
                "nvmeof option '{}' belongs to the target '{}' and not to a path to it: leave it out",
                item.key, config.path_of));
        }
    }
    if (!config.host.ipv4 && config.host.ipv6.empty()) {
        return invalid(
            "nvmeof option 'path-of' needs an address of its own: write for example "
            "'path-of=nvmet-test,ip=192.168.200.2'");
    }
    return check_host(kWhat, "'nvmeof:path-of=nvmet-test,ip=192.168.200.2'", config.host);
}

}  // namespace

Result<TargetConfig> parse_nvmeof(std::string_view text) {
    const auto items = parse_items(kWhat, text, kKeys, {.repeatable = kRepeatable, .flags = kFlags});
    if (!items) {
        return items.error();
    }
    TargetConfig config;
    NamespaceDraft first;
    bool first_given = false;
    std::vector<NamespaceDraft> drafts;
    for (const SpecItem& item : items.value()) {
        std::optional<Error> problem;
        if (is_namespace_key(item.key)) {
            first_given = true;
            problem = apply_namespace(item, first);
        } else if (item.key == "ns") {
            auto draft = parse_namespace(item.value);
            if (!draft) {
                return draft.error();
            }
            drafts.push_back(std::move(draft.value()));
        } else {
            problem = apply(item, config);
        }
        if (problem) {
            return *problem;
        }
    }
    if (!config.path_of.empty()) {
        if (auto problem = check_path(items.value(), config)) {
            return *problem;
        }
        return config;
    }
    if (first_given || drafts.empty()) {
        drafts.insert(drafts.begin(), first);
    }
    if (config.auth_group != 0 && config.auth_file.empty()) {
        return invalid(
            "nvmeof option 'dhgroup' needs secrets: write for example 'auth=/etc/secrets,dhgroup=ffdhe2048'");
    }
    if (auto problem = number_namespaces(drafts, config)) {
        return *problem;
    }
    if (!config.host.ipv4 && config.host.ipv6.empty()) {
        config.host.ipv4 = net::IpPrefix{*net::IpAddress::parse(kDefaultAddress), 24};
    }
    if (auto problem = check_host(kWhat, "'nvmeof:ip=192.168.200.1'", config.host)) {
        return *problem;
    }
    return config;
}

}  // namespace ernic::app
