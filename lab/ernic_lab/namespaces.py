# SPDX-License-Identifier: MIT
"""Network namespaces of the host with a TAP interface in one of them. Needs root.

    guest == server == TAP 10.78.0.1  [near]  10.79.0.1 ==== 10.79.0.2  [far]
                         fd78::1                fd79::1        fd79::2

The near one forwards. Between the two, checksums and segments are completed in software, so that the
far one sees packets as a wire would carry them.
"""
import os
import subprocess
import sys

from .scenario import require

TAP = "tap0"
NEAR, NEAR6 = "10.78.0.1", "fd78::1"
GUEST, GUEST6 = "10.78.0.2", "fd78::2"
FAR, FAR6 = "10.79.0.2", "fd79::2"

# Switches transmit checksums and segmentation of an interface off (SIOCETHTOOL), as ethtool -K would.
_OFFLOADS_OFF = """
import array, fcntl, socket, struct, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for command in (0x1f, 0x24, 0x17):  # STSO, SGSO, STXCSUM
    value = array.array("B", struct.pack("II", command, 0))
    fcntl.ioctl(s, 0x8946, struct.pack("16sP", sys.argv[1].encode(), value.buffer_info()[0]))
"""


def run(*argv, timeout=30):
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=timeout, check=False)
    require(done.returncode == 0, f"{' '.join(map(str, argv))}: {done.stdout}{done.stderr}")
    return done.stdout


class Namespaces:
    def __init__(self, mtu=9000, queues=False):
        require(os.geteuid() == 0, "this needs root: it makes network namespaces and a TAP interface")
        self.near, self.far = (f"ernic-{os.getpid()}-{end}" for end in ("near", "far"))
        self.mtu = mtu
        self.kind = "tap multi_queue" if queues else "tap"

    def __enter__(self):
        try:
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in (self.near, self.far):
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)

    def _make(self):
        for name in (self.near, self.far):
            run("ip", "netns", "add", name)
            self.ip(name, "link set lo up")
        for switch in ("net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"):
            path = f"/proc/sys/{switch.replace('.', '/')}"
            run(*self.inside(self.near), sys.executable, "-c", f"open('{path}', 'w').write('1')")
        self.ip(self.near, f"link add wire0 mtu {self.mtu} type veth peer name wire1 mtu {self.mtu} netns {self.far}")
        self.ip(self.near, "addr add 10.79.0.1/24 dev wire0")
        self.ip(self.near, "addr add fd79::1/64 dev wire0 nodad")
        self.ip(self.far, f"addr add {FAR}/24 dev wire1")
        self.ip(self.far, f"addr add {FAR6}/64 dev wire1 nodad")
        self.ip(self.near, "link set wire0 up")
        self.ip(self.far, "link set wire1 up")
        self.ip(self.far, "route add default via 10.79.0.1")
        self.ip(self.far, "-6 route add default via fd79::1")
        run(*self.inside(self.near), sys.executable, "-c", _OFFLOADS_OFF, "wire0")
        self.make_tap()

    def make_tap(self):
        self.ip(self.near, f"tuntap add dev {TAP} mode {self.kind}")
        self.ip(self.near, f"link set {TAP} mtu {self.mtu} up")
        self.ip(self.near, f"addr add {NEAR}/24 dev {TAP}")
        self.ip(self.near, f"addr add {NEAR6}/64 dev {TAP} nodad")

    def set_mtu(self, mtu):
        self.mtu = mtu
        self.ip(self.near, f"link set {TAP} mtu {mtu}")

    @staticmethod
    def inside(name):
        """What to put in front of a command for it to run there."""
        return ["ip", "netns", "exec", name]

    @staticmethod
    def ip(name, words):
        return run("ip", "-n", name, *words.split())

    def spawn(self, name, *argv):
        return subprocess.Popen([*self.inside(name), *map(str, argv)], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
