// SPDX-License-Identifier: MIT
#pragma once

namespace ernic::bench {

/// CPUs of the two sides. On a machine with one CPU both are 0.
int client_cpu();
int server_cpu();

/// Moves the calling thread to a CPU, and back at the end of the scope.
class OnCpu {
  public:
    explicit OnCpu(int cpu);
    ~OnCpu();
    OnCpu(const OnCpu&) = delete;
    OnCpu& operator=(const OnCpu&) = delete;
};

}  // namespace ernic::bench
