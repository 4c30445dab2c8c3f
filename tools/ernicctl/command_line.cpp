// SPDX-License-Identifier: MIT
#include "ernicctl/command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/suggest.hpp"
#include "ernicctl/completion.hpp"

namespace ernic::ctl {
namespace {

using nlohmann::json;

Farewell refuse(std::string_view sentence) {
    return {kUsageError, fmt::format("ernicctl: {} (--help shows all commands)\n", sentence)};
}

std::string state_word(const std::string& text) {
    static constexpr std::array<std::string_view, 2> kStates = {"up", "down"};
    return std::find(kStates.begin(), kStates.end(), text) != kStates.end()
               ? ""
               : unknown_word("link state", text, kStates);
}

std::string shell_word(const std::string& text) {
    const auto shells = completion_shells();
    return std::find(shells.begin(), shells.end(), text) != shells.end()
               ? ""
               : unknown_word("shell", text, shells);
}

std::string fault_word(const std::string& text) {
    const bool number = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
    return number || text == "all" ? ""
                                   : fmt::format("'{}' is neither the number of a fault nor 'all'", text);
}

/// The grammar. CLI11 fills the places, on_parse() makes the job of them.
class Parser {
  public:
    explicit Parser(Job& job)
        : job_(job), cli_("Shows and changes a running rocm-ernic (docs/control.md).\n", "ernicctl") {
        cli_.require_subcommand(1);
        cli_.fallthrough();
        cli_.add_option("-c,--control", job_.socket,
                        "Control socket of the server (default: $ERNIC_CONTROL, else "
                        "rocm-ernic-control.sock in $TMPDIR or /tmp)")
            ->type_name("PATH");
        cli_.add_flag("--json", job_.json, "Print the answer as JSON");
        cli_.set_version_flag("--version", "ernicctl " ERNIC_VERSION, "Show the version of ernicctl");
        cli_.set_help_flag("-h,--help", "Show this help");
        add_readers();
        add_writers();
    }

    std::optional<Farewell> run(std::span<const char* const> arguments) {
        std::vector<const char*> argv = {"ernicctl"};
        argv.insert(argv.end(), arguments.begin(), arguments.end());
        try {
            cli_.parse(static_cast<int>(argv.size()), argv.data());
        } catch (const CLI::CallForHelp&) {
            return Farewell{0, cli_.help() + "\n"};
        } catch (const CLI::CallForVersion&) {
            return Farewell{0, "ernicctl " ERNIC_VERSION "\n"};
        } catch (const CLI::ValidationError& problem) {
            // Ours say a whole sentence behind CLI11's "NAME: ".
            const std::string_view text = problem.what();
            const std::size_t colon = text.find(": ");
            return refuse(colon == std::string_view::npos ? text : text.substr(colon + 2));
        } catch (const CLI::ParseError& problem) {
            return refuse(unknown_command(arguments).value_or(problem.what()));
        }
        return std::nullopt;
    }

  private:
    CLI::App* command(CLI::App& parent, const char* name, const char* help, const char* wire) {
        CLI::App* const made = parent.add_subcommand(name, help);
        made->fallthrough();
        if (wire != nullptr) {
            made->callback([this, wire] { job_.command = wire; });
        } else {
            made->require_subcommand(1);
        }
        return made;
    }

    /// A word that goes into the arguments under `key`.
    CLI::Option* argument(CLI::App* command, const char* name, const char* key, const char* help) {
        return command->add_option_function<std::string>(
            name, [this, key](const std::string& text) { job_.arguments[key] = text; }, help);
    }

    void add_readers() {
        command(cli_, "version", "Version and protocol of the server", "version");
        command(cli_, "status", "The server at a glance", "status");
        CLI::App* const stats = command(cli_, "stats", "Every number of the server", "stats");
        argument(stats, "--match", "match", "Only names that begin with this, such as rdma.")
            ->type_name("PREFIX");
        stats->add_option("--watch", job_.watch, "Again every so many seconds, with the changes")
            ->type_name("SECONDS")
            ->check(CLI::Range(0.1, 86400.0));
        command(cli_, "ports", "The ports of the segment", "ports");
        command(cli_, "peers", "The other servers of the mesh", "peers");
        command(cli_, "macs", "MAC addresses seen on the segment", "mac-table");
    }

    void add_writers() {
        argument(command(cli_, "link", "Show the link, or switch it", "link"), "state", "state", "up or down")
            ->check(state_word, "")
            ->type_name("[up|down]");
        CLI::App* const pcap = command(cli_, "pcap", "Capture the segment's traffic", nullptr);
        CLI::App* const start = command(*pcap, "start", "Begin a capture", "pcap-start");
        start->add_option("file", job_.output, "File to write, - for standard output (a pipe)")
            ->required()
            ->type_name("FILE");
        start
            ->add_option_function<std::uint64_t>(
                "--snaplen", [this](const std::uint64_t& bytes) { job_.arguments["snaplen"] = bytes; },
                "Bytes kept of each packet")
            ->type_name("N");
        command(*pcap, "stop", "End the capture", "pcap-stop");
        CLI::App* const fault = command(cli_, "fault", "Faults on the segment", nullptr);
        argument(command(*fault, "add", "Add a fault", "fault-add"), "spec", "spec",
                 "What the option --fault takes")
            ->required()
            ->type_name("SPEC");
        command(*fault, "list", "Show the faults", "fault-list");
        command(*fault, "clear", "Remove a fault, or all", "fault-clear")
            ->add_option_function<std::string>(
                "id", [this](const std::string& text) { set_fault(text); }, "Number of a fault, or all")
            ->required()
            ->check(fault_word, "")
            ->type_name("ID|all");
        add_nvme();
        argument(command(cli_, "log-level", "Show or set the log level", "log-level"), "level", "level",
                 "none, error, warn, info or debug")
            ->type_name("[LEVEL]");
        command(cli_, "completion", "Print a completion script for a shell", "completion")
            ->add_option("shell", job_.shell, "bash, zsh or fish")
            ->required()
            ->check(shell_word, "")
            ->type_name("SHELL");
    }

    /// A number that goes into the arguments under `key`.
    CLI::Option* number(CLI::App* command, const char* name, const char* key, const char* help) {
        return command->add_option_function<std::uint64_t>(
            name, [this, key](const std::uint64_t& value) { job_.arguments[key] = value; }, help);
    }

    void add_nvme() {
        CLI::App* const nvme = command(cli_, "nvme", "Namespaces of NVMe-oF targets", nullptr);
        command(*nvme, "list", "Show namespaces and controllers", "nvme-list");
        CLI::App* const add = command(*nvme, "add", "Add a namespace in memory, or in a file", "nvme-add");
        argument(add, "size", "size", "Its size, such as 64M; of a file that is there: else all of it")
            ->type_name("[SIZE]");
        add->add_option("--file", job_.file, "Keep it in this file, which is made if a size is given")
            ->type_name("FILE");
        add->add_flag("--ro", job_.read_only, "The file is only read");
        number(add, "--nsid", "nsid", "Its number, else the lowest free one")->type_name("N");
        number(add, "--bs", "bs", "Bytes of a block: 512, 1024, 2048 or 4096")->type_name("N");
        CLI::App* const remove = command(*nvme, "remove", "Remove a namespace", "nvme-remove");
        CLI::App* const resize = command(*nvme, "resize", "Change a namespace's size", "nvme-resize");
        for (CLI::App* const each : {remove, resize}) {
            number(each, "nsid", "nsid", "Number of the namespace")->required()->type_name("NSID");
        }
        argument(resize, "size", "size", "Its new size, such as 64M")->required()->type_name("SIZE");
        CLI::App* const ana = command(*nvme, "ana", "Set how good a path is", "nvme-ana");
        argument(ana, "address", "address", "Address of the path")->required()->type_name("ADDRESS");
        argument(ana, "state", "state", "optimized, non-optimized, inaccessible, persistent-loss or change")
            ->required()
            ->type_name("STATE");
        for (CLI::App* const each : {add, remove, resize}) {
            argument(each, "--nqn", "nqn", "Which target, when there are several")->type_name("NQN");
        }
    }

    void set_fault(const std::string& text) {
        if (text == "all") {
            job_.arguments["all"] = true;
        } else {
            job_.arguments["id"] = std::strtoull(text.c_str(), nullptr, 10);
        }
    }

    /// The sentence when a word stands where a command should. Fails: nullopt when that is not what is wrong.
    std::optional<std::string> unknown_command(std::span<const char* const> arguments) {
        CLI::App* at = &cli_;
        for (std::size_t i = 0; i < arguments.size() && !at->get_subcommands(nullptr).empty(); ++i) {
            const std::string word = arguments[i];
            if (word == "-c" || word == "--control") {
                ++i;
                continue;
            }
            if (word.starts_with('-')) {
                continue;
            }
            std::vector<std::string_view> names;
            CLI::App* next = nullptr;
            for (CLI::App* each : at->get_subcommands(nullptr)) {
                names.emplace_back(each->get_name());
                next = each->get_name() == word ? each : next;
            }
            if (next == nullptr) {
                return unknown_word("command", word, names);
            }
            at = next;
        }
        return std::nullopt;
    }

    Job& job_;
    CLI::App cli_;
};

}  // namespace

Environment Environment::of_process() {
    Environment environment;
    const auto read = [](const char* name, std::string& value) {
        const char* const text = std::getenv(name);
        if (text != nullptr && *text != '\0') {
            value = text;
        }
    };
    read("TMPDIR", environment.temp_dir);
    read("ERNIC_CONTROL", environment.control);
    return environment;
}

std::variant<Job, Farewell> parse(std::span<const char* const> arguments, const Environment& environment) {
    Job job;
    Parser parser(job);
    if (auto farewell = parser.run(arguments)) {
        return *farewell;
    }
    if (job.command == "nvme-add" && !job.file && (job.read_only || !job.arguments.contains("size"))) {
        return Farewell{kUsageError, job.read_only
                                         ? "ernicctl: --ro is for a namespace in a file: give --file\n"
                                         : "ernicctl: nvme add needs a size, such as 64M, or --file\n"};
    }
    if (job.socket.empty()) {
        job.socket = environment.control.empty() ? environment.temp_dir + "/rocm-ernic-control.sock"
                                                 : environment.control;
    }
    return job;
}

}  // namespace ernic::ctl
