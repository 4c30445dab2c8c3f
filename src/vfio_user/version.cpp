// SPDX-License-Identifier: MIT
#include "vfio_user/version.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "wire/vfio_user.hpp"

namespace ernic::vfio_user {
namespace {

using nlohmann::json;

/// More descriptors per message than any client can mean.
constexpr std::uint64_t kSaneMessageFds = 1024;

/// A non-negative integer, or `fallback` when the key is absent. Fails: nullopt on another type.
std::optional<std::uint64_t> number(const json& object, const char* key, std::uint64_t fallback) {
    const auto found = object.find(key);
    if (found == object.end()) {
        return fallback;
    }
    if (!found->is_number_unsigned()) {
        return std::nullopt;
    }
    return found->get<std::uint64_t>();
}

bool is_page_size(std::uint64_t value) {
    return value != 0 && value % 4096 == 0;
}

bool migration_is_sane(const json& capabilities) {
    const auto migration = capabilities.find("migration");
    if (migration == capabilities.end()) {
        return true;
    }
    if (!migration->is_object()) {
        return false;
    }
    const auto page_size = number(*migration, "pgsize", 4096);
    return page_size && is_page_size(*page_size) && number(*migration, "max_bitmap_size", 0);
}

std::optional<Negotiated> parse_capabilities(const json& capabilities) {
    const auto fds = number(capabilities, "max_msg_fds", 1);
    const auto transfer = number(capabilities, "max_data_xfer_size", kMaxDataTransfer);
    const auto maps = number(capabilities, "max_dma_maps", kMaxDmaMaps);
    const auto page_sizes = number(capabilities, "pgsizes", 4096);
    const bool sane =
        fds && *fds <= kSaneMessageFds && transfer && maps && page_sizes && is_page_size(*page_sizes);
    if (!sane || !migration_is_sane(capabilities)) {
        return std::nullopt;
    }
    Negotiated agreed;
    agreed.max_data_transfer =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(*transfer, kMaxDataTransfer));
    agreed.max_dma_maps = std::min<std::uint64_t>(*maps, kMaxDmaMaps);
    if (const auto multiple = capabilities.find("write_multiple"); multiple != capabilities.end()) {
        if (!multiple->is_boolean()) {
            return std::nullopt;
        }
        agreed.write_multiple = multiple->get<bool>();
    }
    return agreed;
}

}  // namespace

std::optional<Negotiated> parse_version(Bytes payload) {
    const auto version = read_value<wire::vfio_user::Version>(payload);
    if (!version || version->major.get() != wire::vfio_user::kMajor) {
        return std::nullopt;  // any minor version is fine: the reply says ours
    }
    const Bytes text = payload.subspan(sizeof(wire::vfio_user::Version));
    if (text.empty()) {
        return Negotiated();
    }
    if (text.size() > kMaxVersionText || text.back() != std::byte{0}) {
        return std::nullopt;
    }
    const auto* begin = reinterpret_cast<const char*>(text.data());
    const char* end = std::find(begin, begin + text.size(), '\0');
    if (begin == end) {
        return Negotiated();
    }
    const json parsed = json::parse(begin, end, nullptr, /*allow_exceptions=*/false);
    if (!parsed.is_object()) {
        return std::nullopt;
    }
    const auto capabilities = parsed.find("capabilities");
    if (capabilities == parsed.end()) {
        return Negotiated();
    }
    return capabilities->is_object() ? parse_capabilities(*capabilities) : std::nullopt;
}

std::string version_text(const Negotiated& agreed) {
    return fmt::format(
        R"({{"capabilities":{{"max_msg_fds":{},"max_data_xfer_size":{},"pgsizes":4096,"max_dma_maps":{}{}}}}})",
        kMaxMessageFds, agreed.max_data_transfer, agreed.max_dma_maps,
        agreed.write_multiple ? R"(,"write_multiple":true)" : "");
}

}  // namespace ernic::vfio_user
