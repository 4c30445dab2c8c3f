// SPDX-License-Identifier: MIT
//
// verbs_check: does an RDMA device move the right bytes to the right place, and fail in the right way?
//
// But for --across, one process, one device, no network: queue pairs of the same device are connected with
// each other. Every byte that is moved is compared with what it must be, and so are the bytes around it, the
// completions on both sides and, after errors, what happens to everything else that was outstanding. It only
// uses libibverbs, so the same program runs on our card and on soft-RoCE, which then serves as the second
// opinion.
//
//   verbs_check                    run all cases on the only device
//     --device NAME                on this device
//     --gid-index N                with this GID (else: the first RoCE v2 one made of an IPv4 address)
//     --only PATTERN               only cases that contain PATTERN or match it as a shell pattern
//     --skip PATTERN               all but those; both may be given several times
//     --patience MS                how long a completion may take (20000)
//     --verbose                    show how long each case took
//   verbs_check --list             name the cases; needs no device
//   verbs_check --corrupt          plant wrong bytes in the source and find them
//   verbs_check --large            messages up to the 2 GiB limit; a minute or two
//   verbs_check --across listen    transfers with another machine: this command in one, and in the other
//   verbs_check --across ADDRESS   this one, with the IPv4 address of the first; both check, both say
//   verbs_check --stress SECONDS   random requests
//     --pairs N --window N         on so many pairs of queue pairs (4), so many outstanding on each (8)
//     --seed N                     the same ones again (1)
//
// Output: one line per case, 'ok NAME', 'FAIL NAME: reason' or 'skip NAME: reason', and at the end
// 'verbs_check: N passed, N failed'. Exit code: 0 all passed, 1 something failed, 2 usage,
// 3 (--corrupt only) every planted byte was found, which is the good end of that mode.

#include <fnmatch.h>
#include <getopt.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "across.hpp"
#include "cases.hpp"
#include "check.hpp"

namespace {

struct Options {
    std::string device;
    int gid_index = -1;
    std::vector<std::string> only;
    std::vector<std::string> leave_out;
    bool list = false;
    bool corrupt = false;
    bool large = false;
    bool verbose = false;
    StressOptions stress{0};
    std::string across;
};

constexpr int kUsage = 2;
constexpr int kCorruptionFound = 3;

[[noreturn]] void usage(const char* problem) {
    fprintf(stderr,
            "verbs_check: %s\nusage: verbs_check [--device NAME] [--gid-index N] [--only PATTERN] [--skip "
            "PATTERN]\n"
            "       [--list | --corrupt | --large | --across listen|ADDRESS | --stress SECONDS [--pairs N] "
            "[--window N] [--seed N]]\n"
            "       [--patience MS] [--verbose]\n",
            problem);
    exit(kUsage);
}

unsigned number(const char* text, unsigned least, unsigned most) {
    char* end = nullptr;
    const unsigned long value = strtoul(text, &end, 10);
    if (*text == '\0' || *end != '\0' || value < least || value > most) {
        usage("a number is out of range");
    }
    return static_cast<unsigned>(value);
}

Options parse(int argc, char** argv) {
    static const option known[] = {{"device", required_argument, nullptr, 'd'},
                                   {"gid-index", required_argument, nullptr, 'g'},
                                   {"only", required_argument, nullptr, 'o'},
                                   {"skip", required_argument, nullptr, 'x'},
                                   {"list", no_argument, nullptr, 'l'},
                                   {"corrupt", no_argument, nullptr, 'c'},
                                   {"large", no_argument, nullptr, 'L'},
                                   {"stress", required_argument, nullptr, 's'},
                                   {"pairs", required_argument, nullptr, 'n'},
                                   {"window", required_argument, nullptr, 'w'},
                                   {"seed", required_argument, nullptr, 'S'},
                                   {"patience", required_argument, nullptr, 'p'},
                                   {"across", required_argument, nullptr, 'a'},
                                   {"verbose", no_argument, nullptr, 'v'},
                                   {nullptr, 0, nullptr, 0}};
    Options options;
    for (int key; (key = getopt_long(argc, argv, "", known, nullptr)) != -1;) {
        switch (key) {
            case 'd':
                options.device = optarg;
                break;
            case 'g':
                options.gid_index = static_cast<int>(number(optarg, 0, 255));
                break;
            case 'o':
                options.only.emplace_back(optarg);
                break;
            case 'x':
                options.leave_out.emplace_back(optarg);
                break;
            case 'l':
                options.list = true;
                break;
            case 'c':
                options.corrupt = true;
                break;
            case 'L':
                options.large = true;
                break;
            case 's':
                options.stress.seconds = number(optarg, 1, 86400);
                break;
            case 'n':
                options.stress.pairs = number(optarg, 1, 256);
                break;
            case 'w':
                options.stress.window = number(optarg, 2, 64);
                break;
            case 'S':
                options.stress.seed = number(optarg, 0, 4294967295U);
                break;
            case 'p':
                Endpoint::patience_ms = static_cast<int>(number(optarg, 1, 3600000));
                break;
            case 'a':
                options.across = optarg;
                break;
            case 'v':
                options.verbose = true;
                break;
            default:
                usage("that is not an option");
        }
    }
    if (optind != argc) {
        usage("there are only options");
    }
    return options;
}

bool matches(const std::string& name, const std::vector<std::string>& patterns) {
    for (const std::string& pattern : patterns) {
        if (name.find(pattern) != std::string::npos || fnmatch(pattern.c_str(), name.c_str(), 0) == 0) {
            return true;
        }
    }
    return false;
}

Cases choose(const Options& options) {
    Cases all;
    if (options.corrupt) {
        add_corruption_cases(all);
    } else if (options.large) {
        add_large_cases(all);
    } else {
        add_transfer_cases(all);
        add_long_cases(all);
        add_queue_cases(all);
        add_event_cases(all);
        add_atomic_cases(all);
        add_memory_cases(all);
        add_window_cases(all);
        add_datagram_cases(all);
        add_extended_cases(all);
        add_error_cases(all);
        add_failure_cases(all);
    }
    Cases chosen;
    for (Case& item : all) {
        if ((options.only.empty() || matches(item.name, options.only)) &&
            !matches(item.name, options.leave_out)) {
            chosen.push_back(std::move(item));
        }
    }
    return chosen;
}

enum class Outcome { Passed, Failed, Skipped };

Outcome run_case(Context& context, const Case& item, bool verbose) {
    const auto begin = std::chrono::steady_clock::now();
    try {
        const char* gap = is_soft_roce(context.device()) ? soft_roce_gap(item.name) : nullptr;
        if (gap != nullptr) {
            skip("soft-RoCE: %s", gap);
        }
        item.run(context);
        const std::string left = take_undestroyed();
        require(left.empty(), "%s", left.c_str());
    } catch (const Skip& reason) {
        printf("skip %s: %s\n", item.name.c_str(), reason.what());
        return Outcome::Skipped;
    } catch (const Failure& reason) {
        printf("FAIL %s: %s\n", item.name.c_str(), reason.what());
        context.forget_pairs();
        take_undestroyed();
        return Outcome::Failed;
    }
    if (verbose) {
        const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
        printf("ok %s (%.1f ms)\n", item.name.c_str(), took.count());
    } else {
        printf("ok %s\n", item.name.c_str());
    }
    return Outcome::Passed;
}

int run_cases(const Device& device, const Cases& cases, const Options& options) {
    unsigned passed = 0;
    unsigned failed = 0;
    unsigned skipped = 0;
    {
        Context context(device);
        for (const Case& item : cases) {
            const Outcome outcome = run_case(context, item, options.verbose);
            ++(outcome == Outcome::Passed ? passed : outcome == Outcome::Failed ? failed : skipped);
        }
    }
    const std::string left = take_undestroyed();
    if (!left.empty()) {
        printf("FAIL end: %s\n", left.c_str());
        ++failed;
    }
    if (skipped != 0) {
        printf("verbs_check: %u skipped\n", skipped);
    }
    printf("verbs_check: %u passed, %u failed\n", passed, failed);
    if (failed != 0 || passed == 0) {
        return 1;
    }
    return options.corrupt ? kCorruptionFound : 0;
}

int stress(const Device& device, const StressOptions& options) {
    try {
        printf("ok stress: %s\n", run_stress(device, options).c_str());
    } catch (const Failure& reason) {
        printf("FAIL stress: %s (--seed %lu)\n", reason.what(), static_cast<unsigned long>(options.seed));
        printf("verbs_check: 0 passed, 1 failed\n");
        return 1;
    }
    printf("verbs_check: 1 passed, 0 failed\n");
    return 0;
}

int across(const Device& device, const std::string& host) {
    try {
        printf("ok across: %s\n", run_across(device, host).c_str());
    } catch (const Failure& reason) {
        printf("FAIL across: %s\n", reason.what());
        return 1;
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    setvbuf(stdout, nullptr, _IOLBF, 0);
    const Options options = parse(argc, argv);
    const Cases cases = choose(options);
    if (options.list) {
        for (const Case& item : cases) {
            puts(item.name.c_str());
        }
        return 0;
    }
    if (cases.empty()) {
        usage("no case has such a name; see --list");
    }
    try {
        const Device device(options.device, options.gid_index);
        printf("verbs_check: %s\n", device.description().c_str());
        if (!options.across.empty()) {
            return across(device, options.across);
        }
        return options.stress.seconds != 0 ? stress(device, options.stress)
                                           : run_cases(device, cases, options);
    } catch (const Failure& reason) {
        printf("FAIL start: %s\nverbs_check: 0 passed, 1 failed\n", reason.what());
        return 1;
    }
}
