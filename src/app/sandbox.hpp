// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"

/// What the process gives up once it listens, so that a guest or VMM that takes it over finds little to use:
/// - no new privileges: set-user-ID programs and file capabilities mean nothing any more;
/// - capabilities: all dropped, but the two that let root remove its socket from somebody else's directory
/// (only kept
///   when a directory makes them necessary);
/// - not dumpable: no core file with guest memory in it, no debugger of the same user;
/// - seccomp: system calls outside a list kill the process.
///
/// Killing, not EPERM: this program has no code path that needs another call, so one that appears is an
/// intruder's or a bug. EPERM would let the first go on probing and turn the second into odd behaviour far
/// from its cause. The kernel names the call in its audit log ("type=1326 .. syscall=N"), and `--sandbox off`
/// is the way round it.
namespace ernic::app {

/// What this run still has to do after the door has closed.
struct SandboxNeeds {
    /// Files are created in or removed from these directories at run time (socket, statistics).
    std::vector<std::string> directories;
    /// A statistics file is rewritten: allows creating new files, never opening existing ones.
    bool creates_files = false;
    /// A TAP interface is attached to again when it was deleted and made anew.
    bool tap = false;
    /// Connections to other servers are made.
    bool mesh = false;
    /// Files that are open already are synchronised, and holes are made in them; a ring of io_uring that was
    /// made and restricted before is used.
    bool storage = false;
};

/// Empty when this build can be sandboxed, else why not ("address sanitizer"): such builds make calls of
/// their own.
[[nodiscard]] const char* sandbox_obstacle();

/// Enters the sandbox; there is no way back. Everything that opens files lazily (time zone, group database,
/// log) must have been used before. The system call filter and "no new privileges" reach all threads, but
/// capabilities are each thread's own: others must have called drop_thread_capabilities() before. Thread: the
/// main one. Fails: Unsupported or Io with one sentence; the process is then partly restricted and should
/// end.
[[nodiscard]] Status enter_sandbox(const SandboxNeeds& needs);

/// Gives up all capabilities of the calling thread. For a thread that starts before the sandbox and needs
/// open descriptors only. Thread: any. Fails: never (giving up is always allowed).
void drop_thread_capabilities();

}  // namespace ernic::app
