// SPDX-License-Identifier: MIT
#include "app/nvmeof_control.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <variant>

#include "app/ana_words.hpp"
#include "app/spec_items.hpp"
#include "nvmeof/file_store.hpp"
#include "nvmeof/queue.hpp"

namespace ernic::app {
namespace {

using control::Answer;
using control::Call;
using nlohmann::json;
using nvmeof::Namespace;
using nvmeof::NamespaceConfig;
using nvmeof::Subsystem;

constexpr std::uint32_t kDefaultBlock = 512;

json row_of(const Subsystem& subsystem, const Namespace& space) {
    return {{"nqn", subsystem.nqn()},
            {"nsid", space.id()},
            {"bytes", space.store().size()},
            {"block", space.block_size()},
            {"medium", space.config().file.empty() ? "memory" : space.config().file},
            {"writable", space.writable()},
            {"reads", space.counters.reads.value()},
            {"writes", space.counters.writes.value()},
            {"bytes_read", space.counters.read_bytes.value()},
            {"bytes_written", space.counters.written_bytes.value()},
            {"media_errors", space.counters.media_errors.value()}};
}

json row_of(const nvmeof::Target& path) {
    return {{"nqn", path.nvm().nqn()},
            {"address", path.addresses().front().to_string()},
            {"port", path.config().port},
            {"ana", to_string(path.path().state())},
            {"connections", path.connections()}};
}

json row_of(const nvmeof::Controller& controller) {
    unsigned queues = 0;
    for (std::uint16_t id = 1; id <= nvmeof::kMaxIoQueues; ++id) {
        queues += controller.queue(id) != nullptr ? 1U : 0U;
    }
    const nvmeof::Queue* const admin = controller.queue(0);
    return {{"nqn", controller.subsystem().nqn()},
            {"controller", controller.id()},
            {"address", admin == nullptr ? "" : admin->target().addresses().front().to_string()},
            {"host", controller.host().nqn},
            {"io_queues", queues},
            {"ready", controller.ready()},
            {"keep_alive_ms", controller.keep_alive()},
            {"errors", controller.errors.count()}};
}

json list(const NvmeofTargets& targets) {
    json spaces = json::array();
    json paths = json::array();
    json controllers = json::array();
    const auto add_controllers = [&controllers](const Subsystem& subsystem) {
        for (const auto& controller : subsystem.controllers()) {
            controllers.push_back(row_of(*controller));
        }
    };
    for (std::size_t i = 0; i < targets.size(); ++i) {
        const nvmeof::Target& target = targets.target(i);
        paths.push_back(row_of(target));
        add_controllers(target.discovery());
        if (target.further_path()) {
            continue;
        }
        add_controllers(target.nvm());
        for (const auto& space : target.nvm().namespaces()) {
            if (space != nullptr) {
                spaces.push_back(row_of(target.nvm(), *space));
            }
        }
    }
    return {{"namespaces", std::move(spaces)},
            {"paths", std::move(paths)},
            {"controllers", std::move(controllers)}};
}

Error missing(const char* name) {
    return {Errc::InvalidArgument, fmt::format("argument '{}' is missing", name)};
}

/// The subsystem that `nqn` names; the only one when it names none.
std::variant<Subsystem*, Error> subsystem_of(NvmeofTargets& targets, const Call& call) {
    const auto nqn = call.text("nqn");
    if (!nqn) {
        return nqn.error();
    }
    if (targets.size() == 0) {
        return Error{Errc::Unsupported, "this server has no NVMe-oF target"};
    }
    if (!nqn.value()) {
        Subsystem* const only = &targets.target(0).nvm();
        for (std::size_t i = 1; i < targets.size(); ++i) {
            if (&targets.target(i).nvm() != only) {
                return Error{Errc::InvalidArgument, "there are several subsystems: name one with 'nqn'"};
            }
        }
        return only;
    }
    for (std::size_t i = 0; i < targets.size(); ++i) {
        if (targets.target(i).nvm().nqn() == *nqn.value()) {
            return &targets.target(i).nvm();
        }
    }
    return Error{Errc::InvalidArgument, fmt::format("no target has the NQN '{}'", *nqn.value())};
}

/// The argument `size`, which must be there.
Result<std::uint64_t> size_of(const Call& call) {
    const auto text = call.text("size");
    if (!text) {
        return text.error();
    }
    return text.value() ? parse_size("nvme", "size", *text.value()) : missing("size");
}

/// The argument `nsid`; 0 when it is not given.
Result<std::uint32_t> nsid_of(const Call& call) {
    const auto nsid = call.number("nsid", 1, NamespaceConfig::kMostId);
    if (!nsid) {
        return nsid.error();
    }
    return static_cast<std::uint32_t>(nsid.value().value_or(0));
}

std::uint32_t lowest_free(const Subsystem& subsystem) {
    std::uint32_t nsid = 1;
    while (subsystem.find(nsid) != nullptr) {
        ++nsid;
    }
    return nsid;
}

Error taken(std::uint32_t nsid) {
    return {Errc::AlreadyExists, fmt::format("there is a namespace {} already", nsid)};
}

/// A host must never take a namespace for one of the same number that was there before, and keep what it has
/// cached.
std::uint64_t new_generation(const nvmeof::Runtime& runtime) {
    return runtime.loop.clock().now() | 1U;
}

/// The argument `file`: the name of the file that comes open with the request; empty when there is none.
Result<std::string> file_of(const Call& call) {
    const auto name = call.text("file");
    if (!name) {
        return name.error();
    }
    if (!name.value()) {
        for (const char* const needs_file : {"ro", "new"}) {
            if (call.arguments.contains(needs_file)) {
                return Error{Errc::InvalidArgument,
                             fmt::format("argument '{}' is for files only", needs_file)};
            }
        }
        return std::string();
    }
    if (name.value()->empty() || !control::can_be_shown(*name.value())) {
        return Error{Errc::InvalidArgument, "argument 'file' must be a name without control characters"};
    }
    if (!call.fd) {
        return Error{Errc::InvalidArgument,
                     "the request must carry the file's open file descriptor (SCM_RIGHTS)"};
    }
    return *name.value();
}

/// The files that are being looked at.
using Openings = std::vector<nvmeof::FileStore::Identity>;

/// Whether a namespace of any target is in this file, or soon may be.
bool in_use(const NvmeofTargets& targets, const Openings& openings, nvmeof::FileStore::Identity file) {
    for (std::size_t i = 0; i < targets.size(); ++i) {
        for (const auto& space : targets.target(i).nvm().namespaces()) {
            const auto* const other =
                space == nullptr ? nullptr : dynamic_cast<const nvmeof::FileStore*>(&space->store());
            if (other != nullptr && nvmeof::FileStore::identity_of(other->fd()) == file) {
                return true;
            }
        }
    }
    return std::find(openings.begin(), openings.end(), file) != openings.end();
}

/// Looks at the file, which may take a while, and then offers it. `any_id`: under a free number.
Answer add_file(NvmeofTargets& targets, const std::shared_ptr<Openings>& openings, Subsystem& subsystem,
                const NamespaceConfig& wanted, bool any_id, UniqueFd fd, bool made) {
    struct Opening {
        NamespaceConfig config;
        UniqueFd fd;
        nvmeof::FileStore::Identity file;
        std::optional<Result<std::unique_ptr<nvmeof::FileStore>>> store;
    };
    // Before anything is done to it: what comes may be a second descriptor of the same open file, which has
    // its lock and its flags.
    const nvmeof::FileStore::Identity file = nvmeof::FileStore::identity_of(fd.get());
    if (in_use(targets, *openings, file)) {
        return Error{Errc::Busy, fmt::format("'{}' is in use by another namespace", wanted.file)};
    }
    openings->push_back(file);
    auto opening = std::make_shared<Opening>(Opening{wanted, std::move(fd), file, std::nullopt});
    auto later = std::make_shared<control::Later>();
    nvmeof::Runtime& runtime = targets.runtime();
    runtime.background().run(
        [opening, made, &engine = runtime.files()] {
            opening->store = nvmeof::FileStore::adopt(opening->config, std::move(opening->fd), made, engine);
        },
        [opening, openings, later, any_id, &subsystem, &runtime] {
            openings->erase(std::find(openings->begin(), openings->end(), opening->file));
            NamespaceConfig& config = opening->config;
            if (!opening->store->ok()) {
                return later->answer(opening->store->error());
            }
            if (any_id) {
                config.id = lowest_free(subsystem);
            }
            if (config.id > NamespaceConfig::kMostId || subsystem.find(config.id) != nullptr) {
                return later->answer(taken(config.id));
            }
            auto store = std::move(**opening->store);
            config.generation = new_generation(runtime);
            nvmeof::log_store(config, *store, runtime);
            subsystem.put(std::make_shared<Namespace>(config, subsystem.nqn(), std::move(store)));
            later->answer(json{{"nqn", subsystem.nqn()}, {"nsid", config.id}});
        });
    return later;
}

Answer add(NvmeofTargets& targets, const std::shared_ptr<Openings>& openings, Call& call) {
    const auto found = subsystem_of(targets, call);
    if (const auto* error = std::get_if<Error>(&found)) {
        return *error;
    }
    Subsystem& subsystem = *std::get<Subsystem*>(found);
    const auto file = file_of(call);
    if (!file) {
        return file.error();
    }
    const bool in_file = !file.value().empty();
    // Without a size a file is used as it is.
    const bool sized = !in_file || call.arguments.contains("size");
    const auto size = sized ? size_of(call) : Result<std::uint64_t>(0);
    const auto nsid = nsid_of(call);
    const auto block = call.number("bs", kDefaultBlock, 4096);
    if (!size || !nsid || !block) {
        return !size ? size.error() : !nsid ? nsid.error() : block.error();
    }
    NamespaceConfig config;
    config.file = file.value();
    config.id = nsid.value() != 0 ? nsid.value() : lowest_free(subsystem);
    config.size = size.value();
    config.block_size = static_cast<std::uint32_t>(block.value().value_or(kDefaultBlock));
    if (!NamespaceConfig::is_block_size(config.block_size)) {
        return Error{Errc::OutOfRange, "argument 'bs' must be 512, 1024, 2048 or 4096"};
    }
    if (config.size % config.block_size != 0 || (sized && config.size == 0)) {
        return Error{Errc::InvalidArgument, fmt::format("size {} is no multiple of the block size {}",
                                                        config.size, config.block_size)};
    }
    if (config.id > NamespaceConfig::kMostId || subsystem.find(config.id) != nullptr) {
        return taken(config.id);
    }
    if (in_file) {
        const auto read_only = call.flag("ro");
        const auto made = call.flag("new");
        if (!read_only || !made) {
            return !read_only ? read_only.error() : made.error();
        }
        config.read_only = read_only.value();
        return add_file(targets, openings, subsystem, config, nsid.value() == 0, std::move(call.fd),
                        made.value());
    }
    config.generation = new_generation(targets.runtime());
    auto store = nvmeof::make_store(config, targets.runtime());
    if (!store) {
        return store.error();
    }
    subsystem.put(std::make_shared<Namespace>(config, subsystem.nqn(), std::move(*store)));
    return json{{"nqn", subsystem.nqn()}, {"nsid", config.id}};
}

Answer remove(NvmeofTargets& targets, const Call& call) {
    const auto found = subsystem_of(targets, call);
    if (const auto* error = std::get_if<Error>(&found)) {
        return *error;
    }
    const auto nsid = nsid_of(call);
    if (!nsid) {
        return nsid.error();
    }
    if (nsid.value() == 0) {
        return missing("nsid");
    }
    if (!std::get<Subsystem*>(found)->remove(nsid.value())) {
        return Error{Errc::InvalidArgument, fmt::format("there is no namespace {}", nsid.value())};
    }
    return json{{"nqn", std::get<Subsystem*>(found)->nqn()}, {"nsid", nsid.value()}};
}

Answer resize(NvmeofTargets& targets, const Call& call) {
    const auto found = subsystem_of(targets, call);
    if (const auto* error = std::get_if<Error>(&found)) {
        return *error;
    }
    const auto size = size_of(call);
    const auto nsid = nsid_of(call);
    if (!size || !nsid) {
        return !size ? size.error() : nsid.error();
    }
    if (nsid.value() == 0) {
        return missing("nsid");
    }
    if (const Status resized = std::get<Subsystem*>(found)->resize(nsid.value(), size.value()); !resized) {
        return resized.error();
    }
    return json{{"nqn", std::get<Subsystem*>(found)->nqn()}, {"nsid", nsid.value()}, {"bytes", size.value()}};
}

Answer set_ana_state(NvmeofTargets& targets, const Call& call) {
    const auto address = call.text("address");
    const auto word = call.text("state");
    if (!address || !word) {
        return !address ? address.error() : word.error();
    }
    if (!address.value() || !word.value()) {
        return missing(!address.value() ? "address" : "state");
    }
    const auto state = parse_ana(*word.value());
    if (!state) {
        return state.error();
    }
    const auto wanted = net::IpAddress::parse(*address.value());
    for (std::size_t i = 0; wanted && i < targets.size(); ++i) {
        nvmeof::Target& target = targets.target(i);
        const auto addresses = target.addresses();
        if (std::find(addresses.begin(), addresses.end(), *wanted) != addresses.end()) {
            target.set_ana_state(state.value());
            return row_of(target);
        }
    }
    return Error{Errc::InvalidArgument,
                 fmt::format("no NVMe-oF target has the address '{}'", *address.value())};
}

}  // namespace

void add_nvmeof_commands(control::Commands& commands, NvmeofTargets& targets) {
    commands.add("nvme-list", {}, [&targets](Call&) -> Answer { return list(targets); });
    commands.add("nvme-add", {"nqn", "nsid", "size", "bs", "file", "ro", "new"},
                 [&targets, openings = std::make_shared<Openings>()](Call& call) {
                     return add(targets, openings, call);
                 });
    commands.add("nvme-remove", {"nqn", "nsid"}, [&targets](Call& call) { return remove(targets, call); });
    commands.add("nvme-resize", {"nqn", "nsid", "size"},
                 [&targets](Call& call) { return resize(targets, call); });
    commands.add("nvme-ana", {"address", "state"},
                 [&targets](Call& call) { return set_ana_state(targets, call); });
}

}  // namespace ernic::app
