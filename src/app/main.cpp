// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "app/capture_control.hpp"
#include "app/control_plane.hpp"
#include "app/options.hpp"
#include "app/sandbox.hpp"
#include "app/signals.hpp"
#include "app/stats_writer.hpp"
#include "app/wiring.hpp"
#include "base/event_loop.hpp"
#include "base/socket_path.hpp"
#include "net/capture.hpp"
#include "net/tap.hpp"

namespace ernic::app {
namespace {

constexpr int kHostFailure = 1;
constexpr int kUsageError = 2;

/// Says why on standard error, if that can be written to.
int give_up(const std::string& why) {
    std::fputs(fmt::format("rocm-ernic: {}\n", why).c_str(), stderr);
    return kHostFailure;
}
int give_up(const Error& error) {
    return give_up(error.message);
}

/// A program started with closed standard descriptors gets /dev/null for them; otherwise the next file it
/// opens would take their place and what is meant for a terminal would go there.
void keep_standard_descriptors() {
    int fd = ::open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO) {
        fd = ::open("/dev/null", O_RDWR);
    }
    if (fd > STDERR_FILENO) {
        ::close(fd);
    }
}

/// A connection to each of a thousand nodes takes more descriptors than programs are usually given.
void raise_descriptor_limit() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)::setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/// Closes the door behind a server that listens. Fails: as enter_sandbox().
Status close_door(const Options& options, const StatsWriter* stats, const log::Logger& log) {
    if (!options.sandbox) {
        log.info("sandbox off, as asked for");
        return Done{};
    }
    if (*sandbox_obstacle() != '\0') {
        log.info("sandbox off: this build has {}, which makes system calls of its own", sandbox_obstacle());
        return Done{};
    }
    SandboxNeeds needs;
    needs.directories.push_back(std::filesystem::absolute(options.socket_path).parent_path().string());
    if (stats != nullptr) {
        needs.directories.push_back(stats->directory());
        needs.creates_files = true;
    }
    if (!options.control_path.empty()) {
        needs.directories.push_back(std::filesystem::absolute(options.control_path).parent_path().string());
    }
    needs.tap = !options.tap.empty();
    needs.mesh = options.backend.kind == BackendSpec::Kind::Tcp;
    needs.storage = options.services.storage();
    const Status entered = enter_sandbox(needs);
    if (entered) {
        log.info("sandbox on");
    }
    return entered;
}

/// The capture of this run, without a file yet. Fails: as net::Capture::make().
Result<std::unique_ptr<net::Capture>> make_capture(const Options& options, const Clock& wall_clock,
                                                   const log::Logger& log) {
    const bool closes_door = options.sandbox && *sandbox_obstacle() == '\0';
    return net::Capture::make({.application = "rocm-ernic " ERNIC_VERSION,
                               .on_thread_start = closes_door ? drop_thread_capabilities : nullptr},
                              wall_clock, log.named("capture"));
}

/// One run of the server, from listening to the last statistics. Everything it builds dies when it returns.
int serve(const Options& options, const std::shared_ptr<log::Sink>& sink) {
    const log::Logger log(sink, "app");
    const SystemClock clock;
    EventLoop loop(clock);
    if (const Status usable = loop.usable(); !usable) {
        return give_up(usable.error());
    }
    loop.set_busy_poll(options.busy_poll);
    auto signals = Signals::watch(loop, [&](int signal) {
        log.info("signal {}: ending", signal);
        loop.stop();
    });
    if (!signals) {
        return give_up(signals.error());
    }

    // Who may not have the sockets is perhaps a second server with the options of the first, whose files it
    // must leave alone.
    for (const std::string& path : {options.socket_path, options.control_path}) {
        if (const Status way = path.empty() ? Status(Done{}) : SocketPath::make_way(path); !way) {
            return give_up(way.error());
        }
    }

    metrics::Registry registry;
    const net::RealTimeClock wall_clock;
    // It must outlive the instance that it watches.
    std::unique_ptr<net::Capture> capture;
    std::optional<net::TapDevice> tap;
    if (!options.tap.empty()) {
        auto opened = net::TapDevice::open(options.tap);
        if (!opened) {
            return give_up(opened.error());
        }
        tap.emplace(std::move(opened.value()));
    }
    std::optional<mesh::Config> mesh;
    if (options.backend.kind == BackendSpec::Kind::Tcp) {
        auto prepared = prepare_mesh(options.backend.mesh);
        if (!prepared) {
            (void)give_up(prepared.error());
            return prepared.error().code == Errc::InvalidArgument ? kUsageError : kHostFailure;
        }
        mesh.emplace(std::move(prepared.value()));
        raise_descriptor_limit();
    }
    auto nvmeof = NvmeofTargets::open(loop, options.services, log.named("nvmeof"));
    if (!nvmeof) {
        (void)give_up(nvmeof.error());
        return kUsageError;
    }
    Instance instance(loop, registry, options, log, std::move(nvmeof.value()), std::move(tap),
                      std::move(mesh));
    std::optional<CaptureControl> captures;
    if (!options.capture.path.empty() || !options.control_path.empty()) {
        auto made = make_capture(options, wall_clock, log);
        if (!made) {
            return give_up(made.error());
        }
        capture = std::move(made.value());
        capture->register_metrics(registry);
        captures.emplace(loop, *capture, log.named("capture"));
    }
    std::optional<ControlPlane> control;
    if (!options.control_path.empty()) {
        control.emplace(loop, registry, options, instance, *captures, sink);
    }
    if (!options.capture.path.empty()) {
        const Status opened = capture->open(options.capture.path, options.capture.snaplen);
        if (!opened) {
            return give_up(opened.error());
        }
    }
    if (captures) {
        captures->connect([&instance](net::Observer* observer) { instance.observe(observer); });
    }
    std::optional<StatsWriter> stats;
    if (!options.stats_file.empty()) {
        auto file = StatsFile::open(options.stats_file, registry);
        if (!file) {
            return give_up(file.error());
        }
        stats.emplace(loop, std::move(file.value()), options.stats_interval, log);
    }
    // The operators' first, so that whoever sees the VMM's socket finds this one.
    if (const Status listening = control ? control->listen() : Status(Done{}); !listening) {
        return give_up(listening.error());
    }
    if (const Status listening = instance.listen(); !listening) {
        return give_up(listening.error());
    }
    if (const Status closed = close_door(options, stats ? &*stats : nullptr, log); !closed) {
        return give_up(closed.error());
    }
    loop.run();

    const Status captured = captures ? captures->finish() : Status(Done{});
    if (stats) {
        if (const Status written = stats->finish(); !written) {
            return give_up(written.error());
        }
    }
    return captured ? 0 : give_up(captured.error());
}

}  // namespace
}  // namespace ernic::app

int main(int argc, char** argv) {
    using namespace ernic;
    app::keep_standard_descriptors();
    const auto parsed = app::parse_options({argv + 1, static_cast<std::size_t>(argc > 0 ? argc - 1 : 0)},
                                           app::Environment::of_process());
    if (const auto* farewell = std::get_if<app::Farewell>(&parsed)) {
        std::fputs(farewell->text.c_str(), farewell->exit_code == 0 ? stdout : stderr);
        return farewell->exit_code;
    }
    const auto& options = std::get<app::Options>(parsed);
    auto sink = log::open_sink(options.log_file);
    if (!sink) {
        return app::give_up(sink.error());
    }
    sink.value()->set_level(options.log_level);
    try {
        return app::serve(options, sink.value());
    } catch (const std::bad_alloc&) {
        return app::give_up("out of memory");
    }
}
