// SPDX-License-Identifier: MIT
#include "support/cpu.hpp"

#include <sched.h>

#include <array>
#include <cstddef>

namespace ernic::bench {
namespace {

/// The first and the last CPU this process may use.
std::array<int, 2> allowed() {
    cpu_set_t set;
    CPU_ZERO(&set);
    ::sched_getaffinity(0, sizeof(set), &set);
    std::array<int, 2> cpus = {-1, 0};
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (CPU_ISSET(static_cast<std::size_t>(cpu), &set)) {
            cpus[0] = cpus[0] < 0 ? cpu : cpus[0];
            cpus[1] = cpu;
        }
    }
    return cpus;
}

/// Asked before anything is bound.
const std::array<int, 2>& cpus() {
    static const std::array<int, 2> found = allowed();
    return found;
}

void bind(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<std::size_t>(cpu), &set);
    ::sched_setaffinity(0, sizeof(set), &set);
}

}  // namespace

int client_cpu() {
    return cpus()[0];
}

int server_cpu() {
    return cpus()[1];
}

OnCpu::OnCpu(int cpu) {
    (void)cpus();
    bind(cpu);
}

OnCpu::~OnCpu() {
    bind(client_cpu());
}

}  // namespace ernic::bench
