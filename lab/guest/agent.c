// SPDX-License-Identifier: MIT
//
// The guest's end of the command channel: runs what the host asks for, several at a time.
// C and static, because starting Python costs two seconds of every boot on an emulated processor.
//
// One message per line over a virtio serial port; in text, newline and backslash are escaped, so a
// line cut by a reboot spoils nothing behind it.
//   host:  run ID TEXT      kill ID SIGNAL      power off|reboot
//   guest: hello BOOT_ID    out ID TEXT         end ID EXIT_CODE (or minus the signal)
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/reboot.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kMaxJobs = 64, kChunk = 16384, kMaxLine = 1 << 20 };

struct Job {
    long id;
    pid_t pid;
    int output;  // -1 once the command has closed it
    bool used;
};

static struct Job jobs[kMaxJobs];
static int port;
static sigset_t original_mask;

static void send_bytes(const char* data, size_t size) {
    while (size > 0) {
        ssize_t written = write(port, data, size);
        if (written < 0 && errno != EINTR && errno != EAGAIN) return;
        if (written > 0) data += written, size -= (size_t)written;
    }
}

static void send_output(long id, const char* data, size_t size) {
    static char line[2 * kChunk + 64];
    size_t used = (size_t)sprintf(line, "out %ld ", id);
    for (size_t i = 0; i < size; i++) {
        if (data[i] == '\n' || data[i] == '\\') {
            line[used++] = '\\';
            line[used++] = data[i] == '\n' ? 'n' : '\\';
        } else {
            line[used++] = data[i];
        }
    }
    line[used++] = '\n';
    send_bytes(line, used);
}

static void unescape(char* text) {
    char* to = text;
    for (char* from = text; *from != '\0'; from++) {
        if (*from == '\\' && from[1] != '\0') {
            from++;
            *to++ = *from == 'n' ? '\n' : *from;
        } else {
            *to++ = *from;
        }
    }
    *to = '\0';
}

static struct Job* find_job(long id) {
    for (int i = 0; i < kMaxJobs; i++)
        if (jobs[i].used && jobs[i].id == id) return &jobs[i];
    return NULL;
}

static void end_job(struct Job* job, int code) {
    char line[64];
    send_bytes(line, (size_t)sprintf(line, "end %ld %d\n", job->id, code));
    if (job->output >= 0) close(job->output);
    job->used = false;
}

// False at the end of the stream or when there is nothing to read for now.
static bool forward_output(struct Job* job) {
    char data[kChunk];
    ssize_t size = read(job->output, data, sizeof data);
    if (size > 0) send_output(job->id, data, (size_t)size);
    if (size == 0) {
        close(job->output);
        job->output = -1;
    }
    return size > 0;
}

static void run(long id, char* text) {
    struct Job* job = jobs;
    while (job < jobs + kMaxJobs && job->used) job++;
    int ends[2];
    if (job == jobs + kMaxJobs || pipe2(ends, O_CLOEXEC) != 0) {
        static const char refused[] = "agent: too many commands\n";
        struct Job stub = {.id = id, .output = -1};
        send_output(id, refused, sizeof refused - 1);
        end_job(&stub, 127);
        return;
    }
    *job = (struct Job){.id = id, .output = ends[0], .used = true};
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    job->pid = fork();
    if (job->pid == 0) {
        sigprocmask(SIG_SETMASK, &original_mask, NULL);
        setsid();
        dup2(open("/dev/null", O_RDONLY), 0);
        dup2(ends[1], 1);
        dup2(ends[1], 2);
        execl("/bin/sh", "sh", "-c", text, NULL);
        _exit(127);
    }
    close(ends[1]);
}

static void handle(char* line) {
    char* rest = NULL;
    if (strncmp(line, "run ", 4) == 0) {
        long id = strtol(line + 4, &rest, 10);
        if (*rest == ' ') rest++;
        unescape(rest);
        run(id, rest);
    } else if (strncmp(line, "kill ", 5) == 0) {
        struct Job* job = find_job(strtol(line + 5, &rest, 10));
        if (job != NULL) kill(-job->pid, (int)strtol(rest, NULL, 10));
    } else if (strcmp(line, "power off") == 0) {
        reboot(RB_POWER_OFF);  // nothing is worth syncing: all that was written is in memory
    } else if (strcmp(line, "power reboot") == 0) {
        reboot(RB_AUTOBOOT);
    }
}

static void read_port(void) {
    static char pending[kMaxLine];
    static size_t used;
    ssize_t size = read(port, pending + used, sizeof pending - used);
    if (size <= 0) {
        usleep(100000);  // the host is not connected
        return;
    }
    used += (size_t)size;
    char* start = pending;
    for (char* end; (end = memchr(start, '\n', used - (size_t)(start - pending))) != NULL; start = end + 1) {
        *end = '\0';
        handle(start);
    }
    used -= (size_t)(start - pending);
    memmove(pending, start, used);
    if (used == sizeof pending) used = 0;
}

// The agent is nobody's init, so every child that ends is a job.
static void reap(void) {
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        for (struct Job* job = jobs; job < jobs + kMaxJobs; job++) {
            if (!job->used || job->pid != pid) continue;
            while (job->output >= 0 && forward_output(job)) {
            }
            end_job(job, WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status));
        }
    }
}

static int open_port(const char* wanted) {
    DIR* folder = opendir("/sys/class/virtio-ports");
    for (struct dirent* entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        char path[512], name[64] = "";
        snprintf(path, sizeof path, "/sys/class/virtio-ports/%s/name", entry->d_name);
        FILE* file = fopen(path, "r");
        if (file == NULL) continue;
        if (fgets(name, sizeof name, file) != NULL) name[strcspn(name, "\n")] = '\0';
        fclose(file);
        if (strcmp(name, wanted) != 0) continue;
        snprintf(path, sizeof path, "/dev/%s", entry->d_name);
        return open(path, O_RDWR | O_CLOEXEC);
    }
    return -1;
}

static void say_hello(void) {
    char boot_id[64] = "?\n";
    FILE* file = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (file != NULL && fgets(boot_id, sizeof boot_id, file) != NULL) fclose(file);
    send_bytes("\nhello ", 7);
    send_bytes(boot_id, strlen(boot_id));
}

int main(void) {
    port = open_port("ernic.agent");
    if (port < 0 || chdir("/root") != 0) return 1;

    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, &original_mask);
    int signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    say_hello();

    for (;;) {
        struct pollfd polls[kMaxJobs + 2] = {{port, POLLIN, 0}, {signals, POLLIN, 0}};
        for (int i = 0; i < kMaxJobs; i++)
            polls[i + 2] = (struct pollfd){jobs[i].used ? jobs[i].output : -1, POLLIN, 0};
        if (poll(polls, kMaxJobs + 2, -1) < 0) continue;
        for (int i = 0; i < kMaxJobs; i++)
            if (polls[i + 2].revents != 0) forward_output(&jobs[i]);
        if (polls[1].revents != 0) {
            struct signalfd_siginfo info;
            while (read(signals, &info, sizeof info) > 0) {
            }
            reap();
        }
        if (polls[0].revents != 0) read_port();
    }
}
