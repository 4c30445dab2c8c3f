// SPDX-License-Identifier: MIT
#pragma once

#include <pthread.h>

#include <csignal>

namespace ernic {

/// Blocks all signals in this thread while it lives: a thread that is started meanwhile never gets one,
/// because signals are the device thread's. SIGPIPE and SIGXFSZ become error codes of write() there.
class BlockedSignals {
  public:
    BlockedSignals() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, &before_);
    }
    ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    BlockedSignals(const BlockedSignals&) = delete;
    BlockedSignals& operator=(const BlockedSignals&) = delete;

  private:
    sigset_t before_{};
};

}  // namespace ernic
