// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "base/clock.hpp"
#include "ernicctl/command_line.hpp"
#include "ernicctl/completion.hpp"
#include "ernicctl/connection.hpp"
#include "ernicctl/render.hpp"

namespace ernic::ctl {
namespace {

using nlohmann::json;

int give_up(const Error& error) {
    fmt::print(stderr, "ernicctl: {}\n", error.message);
    return kRefused;
}

/// What a capture is written to, opened with the rights of whoever calls us. Fails: Io with one sentence.
Result<UniqueFd> open_output(const std::string& path) {
    const bool is_stdout = path == "-";
    if (is_stdout && ::isatty(STDOUT_FILENO) != 0) {
        return Error{Errc::Io, "standard output is a terminal: redirect it to a file or a pipe"};
    }
    struct stat info {};
    if (is_stdout && (::fstat(STDOUT_FILENO, &info) != 0 || !S_ISFIFO(info.st_mode))) {
        return UniqueFd(::dup(STDOUT_FILENO));
    }
    // A pipe is opened anew, because the server makes it non-blocking, and others may hold this end, too.
    const std::string name = is_stdout ? "/proc/self/fd/1" : path;
    constexpr mode_t kOwnerOnly = 0600;  // guest data is nobody else's business
    const int create = is_stdout ? 0 : O_CREAT | O_TRUNC;
    UniqueFd fd(::open(name.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | create, kOwnerOnly));
    if (!fd) {
        return Error{Errc::Io,
                     fmt::format("cannot write '{}': {}", path,
                                 errno == ENXIO ? "nobody reads from this pipe, start the reader first"
                                                : std::strerror(errno))};
    }
    return fd;
}

/// The name the server shows for a capture.
std::string shown_name(const std::string& path) {
    std::error_code problem;
    const auto absolute = std::filesystem::absolute(path, problem);
    constexpr std::size_t kLongest = 255;
    return path == "-" || problem ? path : absolute.string().substr(0, kLongest);
}

Result<json> start_capture(Connection& connection, Job& job) {
    // Asked before the file is emptied: it may be the one that is being written.
    const auto status = connection.request("status", json::object());
    if (!status) {
        return status.error();
    }
    if (status.value().is_object() && !status.value().value("capture", json()).is_null()) {
        return Error{Errc::Busy, "a capture is running already: end it with 'ernicctl pcap stop'"};
    }
    auto output = open_output(*job.output);
    if (!output) {
        return output.error();
    }
    job.arguments["name"] = shown_name(*job.output);
    return connection.request(job.command, job.arguments, output.value().get());
}

/// Opens the file of a namespace with the rights of whoever calls us, or makes it, and hands it over.
Result<json> add_file(Connection& connection, Job& job) {
    const std::string& path = *job.file;
    const int access = (job.read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NOCTTY;
    UniqueFd fd(::open(path.c_str(), access));
    bool made = false;
    if (!fd && errno == ENOENT && job.arguments.contains("size") && !job.read_only) {
        constexpr mode_t kOwnerOnly = 0600;
        fd.reset(::open(path.c_str(), access | O_CREAT | O_EXCL, kOwnerOnly));
        made = fd.valid();
    }
    if (!fd) {
        return Error{Errc::Io, fmt::format("cannot open '{}': {}", path, std::strerror(errno))};
    }
    job.arguments["file"] = shown_name(path);
    job.arguments["ro"] = job.read_only;
    job.arguments["new"] = made;
    auto result = connection.request(job.command, job.arguments, fd.get());
    // Without an answer the server may be about to use it.
    if (!result && made && connection.answered()) {
        ::unlink(path.c_str());
    }
    return result;
}

std::string text_of(const json& value, int indent) {
    return value.dump(indent, ' ', false, json::error_handler_t::replace) + '\n';
}

/// Shows the changes until somebody interrupts it, or the server goes.
int watch(Connection& connection, const Job& job, json before) {
    const SystemClock clock;
    const auto interval = static_cast<Nanoseconds>(*job.watch * 1e9);
    timespec pause{static_cast<time_t>(interval / 1'000'000'000U),
                   static_cast<long>(interval % 1'000'000'000U)};
    Nanoseconds last = clock.now();
    while (true) {
        ::nanosleep(&pause, nullptr);
        auto now = connection.request(job.command, job.arguments);
        if (!now) {
            return give_up(now.error());
        }
        const Nanoseconds time = clock.now();
        const double seconds = static_cast<double>(time - last) / 1e9;
        fmt::print("{}{}", job.json ? "" : "\n",
                   job.json ? text_of(now.value(), -1) : render_changes(before, now.value(), seconds));
        if (std::fflush(stdout) != 0) {
            return kRefused;
        }
        before = std::move(now.value());
        last = time;
    }
}

int run(Job job) {
    if (job.command == "completion") {
        fmt::print("{}", completion_script(job.shell));
        return 0;
    }
    auto connection = Connection::open(job.socket);
    if (!connection) {
        return give_up(connection.error());
    }
    auto result = job.output ? start_capture(*connection, job)
                  : job.file ? add_file(*connection, job)
                             : connection->request(job.command, job.arguments);
    if (!result) {
        return give_up(result.error());
    }
    const bool stdout_taken = job.output == "-";
    fmt::print(stdout_taken ? stderr : stdout, "{}",
               job.json ? text_of(result.value(), job.watch ? -1 : 2) : render(job.command, result.value()));
    if (std::fflush(stdout) != 0) {
        return kRefused;
    }
    return job.watch ? watch(*connection, job, std::move(result.value())) : 0;
}

}  // namespace
}  // namespace ernic::ctl

int main(int argc, char** argv) {
    using namespace ernic::ctl;
    auto parsed =
        parse({argv + 1, static_cast<std::size_t>(argc > 0 ? argc - 1 : 0)}, Environment::of_process());
    if (const auto* farewell = std::get_if<Farewell>(&parsed)) {
        std::fputs(farewell->text.c_str(), farewell->exit_code == 0 ? stdout : stderr);
        return farewell->exit_code;
    }
    return run(std::move(std::get<Job>(parsed)));
}
