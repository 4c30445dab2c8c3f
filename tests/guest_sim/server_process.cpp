// SPDX-License-Identifier: MIT
#include "guest_sim/server_process.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "guest_sim/error.hpp"
#include "guest_sim/wait.hpp"

namespace ernic::guest_sim {
namespace {

std::string binary() {
    const char* chosen = std::getenv("ERNIC_SERVER");
    return chosen != nullptr ? chosen : ERNIC_SERVER_BINARY;
}

std::string make_directory() {
    std::string path = (std::filesystem::temp_directory_path() / "ernic-guest-XXXXXX").string();
    if (::mkdtemp(path.data()) == nullptr) {
        throw_errno("mkdtemp");
    }
    return path;
}

bool enter_namespace(const std::string& name) {
    const UniqueFd space(::open(("/run/netns/" + name).c_str(), O_RDONLY | O_CLOEXEC));
    return space.valid() && ::setns(space.get(), CLONE_NEWNET) == 0;
}

int exit_code_of(int status) {
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace

ServerProcess::ServerProcess(const Options& options) : directory_(make_directory()) {
    spawn(options);
    if (options.wait) {
        try {
            wait_until_up();
        } catch (const GuestError&) {
            stop();
            remove_directory();
            throw;
        }
    }
}

void ServerProcess::wait_until_up() {
    const bool up = wait_until([this] {
        first_ = try_connect();
        return first_.valid() || !running();
    });
    start_time_ = std::chrono::steady_clock::now() - begin_;
    if (!up || !first_.valid()) {
        throw GuestError("the server did not start: " + log());
    }
}

ServerProcess::~ServerProcess() {
    stop();
    remove_directory();
}

void ServerProcess::spawn(const Options& options) {
    std::vector<std::string> words = {binary(), "--socket", directory_ + "/socket", "--log-file",
                                      directory_ + "/log"};
    if (options.control) {
        words.insert(words.end(), {"--control", control_path()});
    }
    words.insert(words.end(), options.arguments.begin(), options.arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) {
        argv.push_back(word.data());
    }
    argv.push_back(nullptr);
    const std::string errors = directory_ + "/stderr";
    // vfork semantics would show the parent's page tables in the start time; fork copies only a small test's.
    pid_ = ::fork();
    if (pid_ < 0) {
        throw_errno("fork");
    }
    if (pid_ == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (!options.network_namespace.empty() && !enter_namespace(options.network_namespace)) {
            ::_exit(127);
        }
        if (options.cpu) {
            cpu_set_t set;
            CPU_ZERO(&set);
            CPU_SET(static_cast<std::size_t>(*options.cpu), &set);
            ::sched_setaffinity(0, sizeof(set), &set);
        }
        const int out = ::open(errors.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        ::dup2(out, STDERR_FILENO);
        ::execv(argv[0], argv.data());
        ::_exit(127);
    }
}

UniqueFd ServerProcess::try_connect() const {
    UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = directory_ + "/socket";
    require(path.size() < sizeof(address.sun_path), "socket path too long");
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
        return {};
    }
    return socket;
}

UniqueFd ServerProcess::connect() {
    UniqueFd socket = first_.valid() ? std::move(first_) : try_connect();
    if (!socket.valid()) {
        throw_errno("connect");
    }
    return socket;
}

bool ServerProcess::running() {
    if (pid_ < 0) {
        return false;
    }
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
        exit_code_ = exit_code_of(status);
        pid_ = -1;
    }
    return pid_ >= 0;
}

std::string ServerProcess::log() const {
    std::ostringstream text;
    for (const char* name : {"/stderr", "/log"}) {
        std::ifstream file(directory_ + name);
        if (file) {
            text << file.rdbuf();
            text.clear();  // an empty file counts as a failure
        }
    }
    return text.str();
}

int ServerProcess::stop() {
    first_.reset();
    if (!running()) {
        return exit_code_;
    }
    ::kill(pid_, SIGTERM);
    if (!wait_until([this] { return !running(); }, kPatience)) {
        kill();
    }
    return exit_code_;
}

void ServerProcess::terminate() {
    if (running()) {
        ::kill(pid_, SIGTERM);
    }
}

void ServerProcess::kill() {
    first_.reset();
    if (running()) {
        ::kill(pid_, SIGKILL);
        int status = 0;
        ::waitpid(pid_, &status, 0);
        exit_code_ = exit_code_of(status);
        pid_ = -1;
    }
}

void ServerProcess::remove_directory() const {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
}

}  // namespace ernic::guest_sim
