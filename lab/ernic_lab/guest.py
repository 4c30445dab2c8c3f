# SPDX-License-Identifier: MIT
"""A virtual machine: boot it, run commands in it, end it in several unkind ways."""
import json
import signal
import socket
import time

from . import process
from .acceleration import accelerator
from .channel import Channel, CommandTimeout, GuestGone
from .console import Console

# Quiet and short, but warnings and worse still reach the console, where faults are looked for.
# The stall and lock-up limits are for processors that are emulated on a busy machine.
COMMAND_LINE = ("console=ttyS0 loglevel=5 panic=1 nokaslr mitigations=off no5lvl tsc=reliable "
                "lpj=8000000 init_on_alloc=0 random.trust_cpu=on audit=0 cryptomgr.notests rcupdate.rcu_expedited=1 "
                "rcupdate.rcu_cpu_stall_timeout=120 watchdog_thresh=60 net.ifnames=1")


class CommandFailed(Exception):
    pass


class Guest:
    def __init__(self, image, run_dir, server=None, memory="4G", cpus=4, append="", qemu_args=(),
                 share=None, name="guest", message_timeout_ms=60000, prefix=()):
        self.image, self.server, self.name = image, server, name
        self.memory, self.cpus, self.append, self.qemu_args = memory, cpus, append, qemu_args
        # QEMU gives up on a silent server after this long; sanitizer builds are slow.
        self.message_timeout_ms = message_timeout_ms
        self.share = share
        self.prefix = prefix  # what QEMU is started through
        self.qemu_log = run_dir / f"{name}-qemu.log"
        self.console = Console(run_dir / f"{name}-console.log")
        self.process = self.channel = self.qmp_socket = self.shell_socket = None
        self.boot_seconds = 0.0

    def argv(self, agent_fd, qmp_fd, shell_fd):
        argv = [
            *self.prefix, *self.image.qemu(), "-nodefaults", "-no-user-config", "-display", "none",
            "-machine", "q35,memory-backend=ram,usb=off,sata=off,smbus=off,vmport=off", *accelerator(self.image),
            "-smp", self.cpus, "-m", self.memory,
            # The server maps guest memory through this file; without share=on it sees only zeros.
            "-object", f"memory-backend-memfd,id=ram,size={self.memory},share=on",
            "-kernel", self.image.guest / "vmlinux", "-initrd", self.image.initrd,
            "-append", f"{COMMAND_LINE} {self.append}".strip(),
            "-drive", f"if=none,id=root,format=raw,readonly=on,file.locking=off,file={self.image.guest}/rootfs.img",
            "-device", "virtio-blk-pci,drive=root",
            "-device", "virtio-serial-pci",
            "-chardev", f"socket,id=agent,fd={agent_fd}",
            "-device", "virtserialport,chardev=agent,name=ernic.agent",
            "-chardev", f"socket,id=shell,fd={shell_fd}", "-device", "virtconsole,chardev=shell",
            "-chardev", f"socket,id=qmp,fd={qmp_fd}", "-qmp", "chardev:qmp",
            "-chardev", f"file,id=console,path={self.console.path}", "-serial", "chardev:console",
            # The link the card reports is only believed up to what the port can do.
            "-device", "pcie-root-port,id=rp0,chassis=1,slot=1,x-speed=16,x-width=16",
        ]
        if self.share:
            argv += ["-fsdev", f"local,id=lab,path={self.share},security_model=none",
                     "-device", "virtio-9p-pci,fsdev=lab,mount_tag=lab"]
        if self.server:
            argv += ["-device", json.dumps({
                "driver": "vfio-user-pci", "id": "nic0", "bus": "rp0",
                "x-msg-timeout": self.message_timeout_ms,
                "socket": {"type": "unix", "path": str(self.server.socket)}})]
        return argv + list(self.qemu_args)

    def boot(self, timeout=300):
        """Starts QEMU and waits until commands can be run and devices have settled."""
        begin = time.monotonic()
        pairs = [socket.socketpair() for _ in range(3)]
        fds = [theirs.fileno() for _, theirs in pairs]
        with open(self.qemu_log, "ab") as log:
            self.process = process.start(self.argv(*fds), log, pass_fds=fds, env=self.image.qemu_env())
        for _, theirs in pairs:
            theirs.close()
        self.channel = Channel(pairs[0][0])
        self.qmp_socket, self.shell_socket = pairs[1][0], pairs[2][0]
        try:
            self._wait_first_hello(timeout)
            self.settle()
        except BaseException:
            self.kill()
            raise
        self.boot_seconds = time.monotonic() - begin
        return self

    def _wait_first_hello(self, timeout):
        deadline = time.monotonic() + timeout
        while True:
            try:
                return self.channel.wait_hello(1)
            except CommandTimeout:
                if time.monotonic() > deadline or "Kernel panic" in self.console.text():
                    raise CommandTimeout(f"the guest did not come up; its console ends with:\n{self.console.tail()}") from None

    def settle(self, timeout=120):
        self.run("until [ -e /run/lab/settled ]; do sleep 0.05; done", timeout)

    def spawn(self, text, on_output=None):
        return self.channel.spawn(text, on_output)

    def run(self, text, timeout=60, on_output=None):
        return self.channel.spawn(text, on_output).wait(timeout)

    def check(self, text, timeout=60):
        """Like run, but a non-zero exit code is an error; returns the output."""
        result = self.run(text, timeout)
        if not result.ok:
            raise CommandFailed(f"exit code {result.rc} from: {text}\n{result.out[-3000:]}")
        return result.out

    @property
    def alive(self):
        return self.process is not None and self.process.poll() is None

    def expect_reboot(self, action, timeout=180):
        """Does something that makes the guest boot again and waits for the new boot."""
        before = self.channel.boot_id
        action()
        self.channel.wait_hello(timeout, other_than=before)
        self.settle()

    def reboot(self, timeout=180):
        self.expect_reboot(lambda: self.channel.send("power reboot"), timeout)

    def system_reset(self, timeout=180):
        """The reset button: the guest gets no chance to quiet the card."""
        self.expect_reboot(lambda: self.qmp("system_reset"), timeout)

    def panic(self, timeout=180):
        """Crashes the kernel, which then reboots (panic=1)."""
        self.expect_reboot(lambda: self.spawn("echo c >/proc/sysrq-trigger"), timeout)

    def qmp(self, command, **arguments):
        if not hasattr(self, "_qmp"):
            self._qmp = self.qmp_socket.makefile("rw")
            self._qmp.readline()  # greeting
            self._qmp_call("qmp_capabilities", {})
        return self._qmp_call(command, arguments)

    def _qmp_call(self, command, arguments):
        self._qmp.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self._qmp.flush()
        while True:
            line = self._qmp.readline()
            if not line:
                raise GuestGone("QEMU closed its monitor")
            reply = json.loads(line)
            if "error" in reply:
                raise CommandFailed(f"QMP {command}: {reply['error'].get('desc')}")
            if "return" in reply:
                return reply["return"]

    def shutdown(self, timeout=30):
        """Ends the guest from inside; falls back to the plug."""
        if self.alive:
            try:
                self.channel.send("power off")
                self.process.wait(timeout)
            except Exception:  # pylint: disable=broad-except  # whatever it is, the plug helps
                pass
        self.kill()

    def kill(self):
        """Pulls the plug."""
        if self.process:
            process.stop(self.process, signal.SIGKILL)
        for sock in (self.qmp_socket, self.shell_socket, self.channel and self.channel.sock):
            if sock:
                sock.close()
