// SPDX-License-Identifier: MIT
#include "app/options.hpp"

#include <fmt/format.h>
#include <sys/un.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <vector>

#include "app/option_values.hpp"
#include "base/suggest.hpp"
#include "net/faults.hpp"

namespace ernic::app {
namespace {

constexpr int kUsageError = 2;
constexpr std::size_t kLongestSocketPath = sizeof(sockaddr_un::sun_path) - 1;

using Words = std::vector<std::string>;

/// The words as typed, a list per option.
struct RawOptions {
    Words socket, socket_group, backend, target, dhcp, stack_memory, tap, mac, stats_file, stats_interval,
        pcap, control, log_file, log_level, sandbox, busy_poll, fault, link_follows;
    bool verbose = false;
};

Farewell refuse(std::string_view sentence) {
    return {kUsageError, fmt::format("rocm-ernic: {}\n", sentence)};
}

/// An option without the value behind '='.
std::string_view name_of(std::string_view word) {
    return word.substr(0, word.find('='));
}

/// CLI11 only splits the words and prints the help; every value is read by a function of ours, which can
/// suggest.
class Parser {
  public:
    Parser()
        : cli_("One RDMA network card for one virtual machine, offered on a vfio-user socket.\n",
               "rocm-ernic") {
        cli_.allow_extras();
        cli_.get_formatter()->column_width(30);
        value("-s,--socket", raw_.socket, "PATH",
              "Socket a VMM connects to\n(default: vfio-user-rocm-ernic.sock in $TMPDIR or /tmp)");
        value("--socket-group", raw_.socket_group, "GROUP",
              "Let this group connect too (default: only the owner)");
        value("-b,--backend", raw_.backend, "SPEC",
              "What the port is plugged into (default: loopback):\nnone\nloopback[:mode=MODE][,md5] with "
              "MODE preserve, "
              "zeros,\nones, increment, decrement, alternate or random\ntcp:manager:listen:PORT, "
              "tcp:manager:ADDRESS:PORT or\ntcp:worker:HOST:PORT, "
              "then ,key=FILE,bind=ADDRESS,name=TEXT,\nheartbeat=MS,dead-after=MS (docs/mesh.md)");
        value("--link-follows", raw_.link_follows, "mesh|always-up",
              "Whether the card's link is down while no peer of a mesh\nis connected (default: always-up)");
        value("--target", raw_.target, "SPEC",
              "A service on the segment; may be given several "
              "times:\necho:ip=ADDRESS/PREFIX[,ip=..][,gw=ADDRESS]"
              "[,mac=MAC][,mtu=N],\nreflect[:mac=MAC], null, or nvmeof[:KEY=VALUE,..]\n(docs/nvmeof.md)");
        value("--dhcp", raw_.dhcp, "RANGE",
              "Lease IPv4 addresses: "
              "FIRST-LAST[,prefix=N][,ip=ADDRESS]\n[,router=ADDRESS][,dns=ADDRESS][,mtu=N]"
              "[,lease=SECONDS][,mac=MAC]");
        value("--stack-memory", raw_.stack_memory, "MIB",
              "Memory of all services' connections (default: 32)");
        value("-T,--tap", raw_.tap, "IF", "Existing TAP interface of the host that Ethernet frames go to");
        value("-m,--mac", raw_.mac, "MAC", "MAC address of the card\n(default: made from the socket path)");
        value("-S,--stats-file", raw_.stats_file, "FILE", "Write statistics here as JSON");
        value("--stats-interval", raw_.stats_interval, "SECONDS",
              "Rewrite the statistics file this often when numbers\nchanged, 0 = only at start and exit "
              "(default: 5)");
        value("--pcap", raw_.pcap, "FILE[,snaplen=N]",
              "Write everything on the segment here as pcapng,\nat most N bytes of each packet");
        value("--fault", raw_.fault, "SPEC",
              "Disturb the traffic, may be given many times:\ndrop, delay=TIME, duplicate, reorder, corrupt, "
              "rate=RATE or\nlink-down[=TIME], then ,KEY=VALUE.. (docs/faults.md)");
        value("--control", raw_.control, "PATH", "Socket for ernicctl and other operators\n(default: none)");
        value("-l,--log-file", raw_.log_file, "FILE", "Append the log here (default: standard error)");
        value("-L,--log-level", raw_.log_level, "LEVEL",
              "none, error, warn, info or debug\n(default: $ERNIC_LOG_LEVEL or info)");
        cli_.add_flag("-v,--verbose", raw_.verbose, "Short for --log-level debug")
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
        value("--sandbox", raw_.sandbox, "on|off",
              "Give up privileges once the socket listens (default: on)");
        value("--busy-poll", raw_.busy_poll, "USEC",
              "Spin this long after the last event before sleeping,\n0 = never (default: 20)");
        cli_.set_version_flag("--version", "rocm-ernic " ERNIC_VERSION, "Show the version");
        cli_.set_help_flag("-h,--help", "Show this help");
        cli_.footer("Every option is explained in docs/usage.md.");
    }

    /// Fills raw(). Fails: the farewell.
    std::optional<Farewell> run(std::span<const char* const> arguments) {
        collect_names();
        for (const char* const argument : arguments) {
            if (auto problem = check_spelling(argument)) {
                return problem;
            }
        }
        std::vector<const char*> argv = {"rocm-ernic"};
        argv.insert(argv.end(), arguments.begin(), arguments.end());
        try {
            cli_.parse(static_cast<int>(argv.size()), argv.data());
        } catch (const CLI::CallForHelp&) {
            return Farewell{0, cli_.help() + "\n"};
        } catch (const CLI::CallForVersion&) {
            return Farewell{0, "rocm-ernic " ERNIC_VERSION "\n"};
        } catch (const CLI::ArgumentMismatch&) {
            // The only mismatch these options can have: the last word is an option that wants a value.
            return refuse(needs_value(name_of(arguments.back())));
        } catch (const CLI::ParseError& problem) {
            return refuse(fmt::format("{} (--help lists all options)", problem.what()));
        }
        return check_words();
    }

    [[nodiscard]] const RawOptions& raw() const { return raw_; }

  private:
    void value(const std::string& names, Words& words, const std::string& type, const std::string& help) {
        // Every use is kept: CLI11 would otherwise refuse a second one in its own words.
        const auto keep = [&words](const CLI::results_t& results) {
            words = results;
            return true;
        };
        cli_.add_option(names, keep, help)
            ->type_name(type)
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    }

    static bool is_flag(const CLI::Option& option) { return option.get_expected_max() == 0; }

    void collect_names() {
        for (const CLI::Option* option : cli_.get_options()) {
            for (const std::string& name : option->get_lnames()) {
                names_.push_back("--" + name);
            }
            for (const std::string& name : option->get_snames()) {
                names_.push_back("-" + name);
            }
        }
    }

    [[nodiscard]] bool known(std::string_view word) const {
        return std::find(names_.begin(), names_.end(), name_of(word)) != names_.end();
    }

    /// Two spellings that CLI11 would take for something else. Fails: the farewell.
    [[nodiscard]] std::optional<Farewell> check_spelling(std::string_view word) const {
        // `-socket X` would mean `-s ocket`, and somebody would search for a long time.
        if (word.size() > 2 && word[0] == '-' && word[1] != '-' && known(fmt::format("-{}", word))) {
            return refuse(fmt::format("unknown option '{}': did you mean '-{}'?", word, word));
        }
        const std::string name(name_of(word));
        if (name != word && known(word) && is_flag(*cli_.get_option(name))) {
            return refuse(fmt::format("option '{}' takes no value: write just '{}'", name, name));
        }
        return std::nullopt;
    }

    static std::string needs_value(std::string_view option) {
        return fmt::format("option '{}' needs a value (--help shows which)", option);
    }

    [[nodiscard]] std::optional<Farewell> check_words() const {
        for (const CLI::Option* option : cli_.get_options()) {
            if (is_flag(*option)) {
                continue;  // twice is as good as once
            }
            const std::string name = "--" + option->get_lnames().front();
            for (const std::string& word : option->results()) {
                // CLI11 lets an option swallow the option behind it.
                if (word.size() > 1 && word[0] == '-' && known(word)) {
                    return refuse(needs_value(name));
                }
                if (word.empty()) {
                    return refuse(fmt::format("option '{}' needs a value that is not empty", name));
                }
            }
            if (option->results().size() > 1 && name != "--fault" && name != "--target") {
                return refuse(fmt::format("option '{}' is given {} times: give it once", name,
                                          option->results().size()));
            }
        }
        std::vector<std::string> extras = cli_.remaining();
        std::erase(extras, "--");  // ends the options; what counts is what follows
        return extras.empty() ? std::nullopt : std::optional(unknown_option(extras.front()));
    }

    static Farewell unexpected(std::string_view word) {
        return refuse(fmt::format(
            "unexpected argument '{}': every value belongs to an option (--help lists them)", word));
    }

    [[nodiscard]] Farewell unknown_option(std::string_view word) const {
        // Known here means: behind `--`, where it no longer counts as an option.
        if (word.size() < 2 || word[0] != '-' || known(word)) {
            return unexpected(word);
        }
        const std::string_view name = name_of(word);
        const bool is_long = name.starts_with("--");
        std::vector<std::string_view> names(names_.begin(), names_.end());
        std::erase_if(names,
                      [is_long](std::string_view other) { return other.starts_with("--") != is_long; });
        return refuse(fmt::format("unknown option '{}': did you mean '{}'? (--help lists all options)", name,
                                  nearest(name, names)));
    }

    CLI::App cli_;
    RawOptions raw_;
    Words names_;
};

/// Stores the value of `result` in `target`. Fails: the farewell.
template <typename T, typename Target>
std::optional<Farewell> store(Result<T> result, Target& target) {
    if (!result) {
        return refuse(result.error().message);
    }
    target = std::move(result.value());
    return std::nullopt;
}

std::optional<Farewell> read_paths(const RawOptions& raw, const Environment& environment, Options& options) {
    options.socket_path =
        raw.socket.empty() ? environment.temp_dir + "/vfio-user-rocm-ernic.sock" : raw.socket[0];
    options.control_path = raw.control.empty() ? "" : raw.control[0];
    for (const std::string& path : {options.socket_path, options.control_path}) {
        if (path.size() > kLongestSocketPath) {
            return refuse(
                fmt::format("socket path '{}' is {} bytes long: at most {} fit into a UNIX socket address",
                            path, path.size(), kLongestSocketPath));
        }
    }
    if (options.control_path == options.socket_path) {
        return refuse(
            fmt::format("option '--control' names '{}', where the VMM connects: choose another path",
                        options.control_path));
    }
    options.tap = raw.tap.empty() ? "" : raw.tap[0];
    options.stats_file = raw.stats_file.empty() ? "" : raw.stats_file[0];
    options.log_file = raw.log_file.empty() ? "" : raw.log_file[0];
    if (options.stats_file.empty() && !raw.stats_interval.empty()) {
        return refuse(
            "option '--stats-interval' means nothing without '--stats-file FILE': add that or leave it out");
    }
    return std::nullopt;
}

std::optional<Farewell> read_level(const RawOptions& raw, const Environment& environment, Options& options) {
    if (!raw.log_level.empty()) {
        return store(parse_level("log level", raw.log_level[0]), options.log_level);
    }
    if (raw.verbose) {
        options.log_level = log::Level::Debug;
        return std::nullopt;
    }
    if (environment.log_level && !environment.log_level->empty()) {
        return store(parse_level("log level in ERNIC_LOG_LEVEL", *environment.log_level), options.log_level);
    }
    return std::nullopt;
}

/// What addresses are made from: the same for every way to write a path.
std::string absolute_path(const std::string& socket_path) {
    std::error_code problem;
    const std::filesystem::path absolute = std::filesystem::absolute(socket_path, problem);
    return problem ? socket_path : absolute.lexically_normal().string();
}

/// Options whose value one function reads. Fails: the farewell of the first that is wrong.
std::optional<Farewell> read_values(const RawOptions& raw, Options& options) {
    std::optional<Farewell> problem;
    const auto read = [&problem](const Words& words, auto parse, auto& target) {
        if (!problem && !words.empty()) {
            problem = store(parse(words[0]), target);
        }
    };
    read(raw.backend, parse_backend, options.backend);
    read(raw.mac, parse_mac, options.mac);
    read(raw.pcap, parse_capture, options.capture);
    read(raw.socket_group, parse_group, options.socket_group);
    read(
        raw.stats_interval, [](const auto& text) { return parse_interval("--stats-interval", text); },
        options.stats_interval);
    read(
        raw.busy_poll, [](const auto& text) { return parse_microseconds("--busy-poll", text); },
        options.busy_poll);
    read(
        raw.sandbox, [](const auto& text) { return parse_on_off("--sandbox", text); }, options.sandbox);
    read(raw.link_follows, parse_link_follows, options.link_follows_mesh);
    if (!problem && options.link_follows_mesh && options.backend.kind != BackendSpec::Kind::Tcp) {
        problem = refuse(
            "option '--link-follows mesh' means nothing without '--backend tcp:..': add one or leave it out");
    }
    for (const std::string& word : raw.fault) {
        const auto fault = net::parse_fault(word);
        if (!problem && !fault) {
            problem = refuse(fault.error().message);
        } else if (fault) {
            options.faults.push_back(fault.value());
        }
    }
    if (!problem && options.faults.size() > net::Faults::kMaxFaults) {
        problem = refuse(fmt::format("option '--fault' is given {} times: at most {} faults can be active",
                                     options.faults.size(), net::Faults::kMaxFaults));
    }
    return problem;
}

}  // namespace

Environment Environment::of_process() {
    Environment environment;
    environment.host_name = app::host_name();
    const char* const temp_dir = std::getenv("TMPDIR");
    if (temp_dir != nullptr && *temp_dir != '\0') {
        environment.temp_dir = temp_dir;
    }
    if (const char* const level = std::getenv("ERNIC_LOG_LEVEL")) {
        environment.log_level = level;
    }
    return environment;
}

std::variant<Options, Farewell> parse_options(std::span<const char* const> arguments,
                                              const Environment& environment) {
    Parser parser;
    if (auto farewell = parser.run(arguments)) {
        return *farewell;
    }
    Options options;
    if (auto farewell = read_values(parser.raw(), options)) {
        return *farewell;
    }
    if (auto farewell = read_level(parser.raw(), environment, options)) {
        return *farewell;
    }
    if (auto farewell = read_paths(parser.raw(), environment, options)) {
        return *farewell;
    }
    const std::string path = absolute_path(options.socket_path);
    if (parser.raw().mac.empty()) {
        // Servers on several hosts may well have the same path.
        const bool mesh = options.backend.kind == BackendSpec::Kind::Tcp;
        options.mac = mac_of_path(mesh ? environment.host_name + ":" + path : path);
    }
    const RawOptions& raw = parser.raw();
    Words targets = raw.target;
    if (options.backend.kind == BackendSpec::Kind::Nvmeof) {
        targets.insert(targets.begin(), options.backend.target);
    }
    if (auto farewell = store(parse_services({targets, raw.dhcp, raw.stack_memory}, options.mac, path),
                              options.services)) {
        return *farewell;
    }
    options.services.namespaces_later = !options.control_path.empty();
    const bool nvmeof = options.services.has(TargetSpec::Kind::Nvmeof);
    if (nvmeof && options.backend.kind == BackendSpec::Kind::None) {
        return refuse(
            "target 'nvmeof' is reached by RDMA, and backend 'none' has none: choose backend 'loopback' or "
            "'tcp'");
    }
    if (nvmeof && options.backend.mode != net::PayloadMode::Preserve) {
        return refuse(
            "target 'nvmeof' would get a test pattern instead of commands: leave out 'mode=..' of the "
            "loopback");
    }
    return options;
}

}  // namespace ernic::app
