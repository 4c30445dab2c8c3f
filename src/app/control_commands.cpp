// SPDX-License-Identifier: MIT
#include "app/control_commands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <utility>

#include "app/option_values.hpp"
#include "base/suggest.hpp"
#include "control/limits.hpp"
#include "metrics/report.hpp"
#include "net/mac_text.hpp"

namespace ernic::app {
namespace {

using control::Answer;
using control::Call;
using control::Commands;
using nlohmann::json;

constexpr std::array<std::string_view, 2> kLinkStates = {"up", "down"};
/// Bytes of a capture's name; it is for people.
constexpr std::size_t kLongestName = 255;

json link_of(const ControlTargets& targets) {
    using Source = net::Link::Source;
    json down = json::array();
    for (const auto& [source, name] :
         {std::pair(Source::Cable, targets.cable.c_str()), std::pair(Source::Mesh, "mesh"),
          std::pair(Source::Fault, "fault"), std::pair(Source::Operator, "operator")}) {
        if (!targets.link.up(source)) {
            down.push_back(name);
        }
    }
    return {{"up", targets.link.up()}, {"down_by", std::move(down)}};
}

json counts_of(const net::Capture::Counts& counts) {
    return {{"packets", counts.packets}, {"dropped", counts.dropped}};
}

json capture_of(const net::Capture& capture) {
    if (capture.state() != net::Capture::State::Running) {
        return nullptr;
    }
    json running = counts_of(capture.counts());
    running["name"] = capture.name();
    running["snaplen"] = capture.snaplen();
    return running;
}

json status(const ControlTargets& targets) {
    json result = targets.identity;
    result["protocol"] = control::kProtocolVersion;
    result["uptime_seconds"] =
        static_cast<double>((targets.clock.now() - targets.started) / 1'000'000U) / 1000.0;
    result["connected"] = metrics::value_of(targets.registry, "vfio_user.connected").value_or(0) != 0;
    result["driver"] = targets.driver_attached();
    result["link"] = link_of(targets);
    result["capture"] = capture_of(targets.capture.capture());
    result["log_level"] = name_of(targets.sink->level());
    for (const char* const name : {"queue_pairs", "memory_regions"}) {
        result[name] = metrics::value_of(targets.registry, std::string("rdma.") + name).value_or(0);
    }
    return result;
}

/// A port's own link: the guest's is the card's, that of others is what they themselves say about it.
bool port_up(const net::FramePort& port, const ControlTargets& targets) {
    if (port.name() == "guest") {
        return targets.link.up();
    }
    if (port.name() == "mesh") {
        return port.connected() && targets.link.up(net::Link::Source::Mesh);
    }
    return port.connected() && (port.name() != targets.cable || targets.link.up(net::Link::Source::Cable));
}

json ports(const ControlTargets& targets) {
    json list = json::array();
    for (std::size_t id = 0; id < net::Bridge::kMaxPorts; ++id) {
        if (const auto* port = targets.bridge.port(static_cast<net::MacTable::Port>(id))) {
            const net::FramePort::Counts counts = port->counts();
            list.push_back({{"name", port->name()},
                            {"connected", port->connected()},
                            {"link", port_up(*port, targets)},
                            {"frames_in", counts.frames_in},
                            {"bytes_in", counts.bytes_in},
                            {"frames_out", counts.frames_out},
                            {"bytes_out", counts.bytes_out},
                            {"drops", counts.drops}});
        }
    }
    return {{"ports", std::move(list)}};
}

/// Reads the table some hundred places a step, as text.
class MacTableText {
  public:
    explicit MacTableText(const net::Bridge& bridge) : bridge_(&bridge) {}

    bool operator()(std::string& out) {
        if (place_ == 0) {
            out += fmt::format(R"({{"capacity":{},"ageing_seconds":{},"entries":[)", net::MacTable::kCapacity,
                               net::MacTable::kAgeing / 1'000'000'000U);
        }
        for (const std::size_t end = place_ + kStep; place_ != end; ++place_) {
            if (const auto seen = bridge_->address(place_)) {
                const net::FramePort* const port = bridge_->port(seen->port);
                out +=
                    fmt::format(R"({}{{"mac":"{}","port":"{}","age_seconds":{}.{:03}}})", first_ ? "" : ",",
                                net::to_string(seen->mac), port != nullptr ? port->name() : "",
                                seen->age / 1'000'000'000U, seen->age / 1'000'000U % 1000U);
                first_ = false;
            }
        }
        const bool more = place_ < net::MacTable::kCapacity;
        out += more ? "" : "]}";
        return more;
    }

  private:
    static constexpr std::size_t kStep = 128;
    static_assert(net::MacTable::kCapacity % kStep == 0);

    const net::Bridge* bridge_;
    std::size_t place_ = 0;
    bool first_ = true;
};

Answer statistics(const ControlTargets& targets, const Call& call) {
    auto match = call.text("match");
    if (!match) {
        return match.error();
    }
    return control::Producer(
        [report = metrics::Report(targets.registry, metrics::Style::Compact, match.value().value_or(""))](
            std::string& out) mutable { return report.step(out); });
}

Answer link(ControlTargets& targets, log::Limiter& limiter, const Call& call) {
    const auto given = call.text("state");
    if (!given) {
        return given.error();
    }
    if (const auto& state = given.value()) {
        if (std::find(kLinkStates.begin(), kLinkStates.end(), *state) == kLinkStates.end()) {
            return invalid(unknown_word("link state", *state, kLinkStates));
        }
        const bool up = *state == "up";
        targets.link.set(net::Link::Source::Operator, up);
        targets.log.info_limited(limiter, "operator: link {}", up ? "up" : "down");
    }
    return link_of(targets);
}

Answer pcap_start(ControlTargets& targets, Call& call) {
    const auto name = call.text("name");
    if (!name) {
        return name.error();
    }
    const auto snaplen = call.number("snaplen", net::Capture::kMinSnaplen, net::Capture::kMaxSnaplen);
    if (!snaplen) {
        return snaplen.error();
    }
    if (!call.fd) {
        return invalid("the request must carry an open file descriptor to write to (SCM_RIGHTS)");
    }
    const std::string shown = name.value().value_or("descriptor");
    if (shown.size() > kLongestName || !control::can_be_shown(shown)) {
        return invalid(fmt::format("argument 'name' must have at most {} bytes and no control characters",
                                   kLongestName));
    }
    const auto kept = static_cast<std::uint32_t>(snaplen.value().value_or(net::Capture::kMaxSnaplen));
    if (const Status started = targets.capture.start(std::move(call.fd), shown, kept); !started) {
        return started.error();
    }
    return json{{"name", shown}, {"snaplen", kept}};
}

Answer pcap_stop(ControlTargets& targets) {
    auto later = std::make_shared<control::Later>();
    const Status stopping =
        targets.capture.stop([later, name = targets.capture.capture().name()](
                                 const net::Capture::Counts& counts, const Status& outcome) {
            if (!outcome) {
                later->answer(outcome.error());
                return;
            }
            json result = counts_of(counts);
            result["name"] = name;
            later->answer(std::move(result));
        });
    return stopping ? Answer(later) : Answer(stopping.error());
}

Answer log_level(ControlTargets& targets, const Call& call) {
    const auto given = call.text("level");
    if (!given) {
        return given.error();
    }
    if (const auto& text = given.value()) {
        const auto level = parse_level("log level", *text);
        if (!level) {
            return level.error();
        }
        targets.sink->set_level(level.value());
    }
    return json{{"level", name_of(targets.sink->level())}};
}

json list_of(const net::Faults& faults) {
    json all = json::array();
    for (const net::Faults::Status& fault : faults.list()) {
        all.push_back({{"id", fault.id}, {"spec", fault.text}, {"seen", fault.seen}, {"hits", fault.hits}});
    }
    return all;
}

Answer fault_add(net::Faults& faults, const Call& call) {
    const auto spec = call.text("spec");
    if (!spec) {
        return spec.error();
    }
    if (!spec.value()) {
        return invalid("argument 'spec' is missing: it is what the option --fault takes");
    }
    const auto id = faults.add(*spec.value());
    return id ? Answer(json{{"id", id.value()}}) : Answer(id.error());
}

Answer fault_clear(net::Faults& faults, const Call& call) {
    const auto id = call.number("id", 0, UINT64_MAX);
    if (!id) {
        return id.error();
    }
    const auto all = call.arguments.find("all");
    const bool has_all = all != call.arguments.end();
    if (has_all == id.value().has_value() || (has_all && *all != json(true))) {
        return invalid(R"(give either {"id": N} or {"all": true})");
    }
    if (has_all) {
        return json{{"cleared", faults.clear_all()}};
    }
    constexpr auto kLargest = std::numeric_limits<net::Faults::Id>::max();
    if (*id.value() > kLargest || !faults.clear(static_cast<net::Faults::Id>(*id.value()))) {
        return invalid(fmt::format("there is no fault {}", *id.value()));
    }
    return json{{"cleared", 1}};
}

void add_fault_commands(Commands& commands, const ControlTargets& targets) {
    commands.add("fault-add", {"spec"}, [&targets](Call& call) { return fault_add(targets.faults, call); });
    commands.add("fault-list", {}, [&targets](Call&) -> Answer {
        return json{{"faults", list_of(targets.faults)}};
    });
    commands.add("fault-clear", {"id", "all"},
                 [&targets](Call& call) { return fault_clear(targets.faults, call); });
}

}  // namespace

void add_control_commands(Commands& commands, ControlTargets& targets) {
    commands.add("version", {}, [&commands](Call&) -> Answer {
        return json{{"version", ERNIC_VERSION},
                    {"protocol", control::kProtocolVersion},
                    {"commands", commands.names()}};
    });
    commands.add("status", {}, [&targets](Call&) -> Answer { return status(targets); });
    commands.add("stats", {"match"}, [&targets](Call& call) { return statistics(targets, call); });
    commands.add("ports", {}, [&targets](Call&) -> Answer { return ports(targets); });
    commands.add("mac-table", {},
                 [&targets](Call&) -> Answer { return control::Producer(MacTableText(targets.bridge)); });
    commands.add("link", {"state"}, [&targets, limiter = log::Limiter()](Call& call) mutable {
        return link(targets, limiter, call);
    });
    commands.add("pcap-start", {"name", "snaplen"},
                 [&targets](Call& call) { return pcap_start(targets, call); });
    commands.add("pcap-stop", {}, [&targets](Call&) { return pcap_stop(targets); });
    commands.add("log-level", {"level"}, [&targets](Call& call) { return log_level(targets, call); });
    add_fault_commands(commands, targets);
}

}  // namespace ernic::app
