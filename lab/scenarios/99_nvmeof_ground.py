# SPDX-License-Identifier: MIT
"""What the nvme group of blktests looks at, by our own means: each step names the tests whose ground it covers.
docs/nvmeof-commands.md says which tests the other scenarios cover, and which cannot apply."""
import time

from ernic_lab import nvme, pairs
from ernic_lab.scenario import require, scenario

IPV6_TARGET, IPV6_GUEST = "fd00:200::1", "fd00:200::2"
FIO = "fio --name=job --direct=1 --ioengine=libaio --iodepth=16 --bs=4k --rw=randrw --size=8M"


class Ground:
    """One guest, one target, and what the steps share."""

    def __init__(self, lab):
        self.server = lab.server
        self.guest = lab.guest
        self.host = nvme.Initiator(lab.guest)
        self.controller = self.disk = None

    def connect(self, options=""):
        self.controller = self.host.connect(options=options)
        self.disk, = self.host.disks()

    def sizes(self):
        """MiB of the namespaces that the host has, by their numbers."""
        lines = self.guest.check("for d in /sys/block/nvme*n*; do echo $(cat $d/nsid $d/size 2>/dev/null); done; true").splitlines()
        return {int(words[0]): int(words[1]) >> 11 for words in map(str.split, lines) if len(words) == 2}

    def wait_for_sizes(self, wanted):
        deadline = time.monotonic() + 30
        while (sizes := self.sizes()) != wanted:
            require(time.monotonic() < deadline, f"namespaces by number, in MiB: {sizes}, not {wanted}; {self.guest.check('lsblk')}")
            self.guest.run("sleep 0.3")


def discovery_stays(ground):
    """003: a discovery controller lives by its keep-alive."""
    controller = ground.host.connect(nvme.DISCOVERY_NQN, options="--keep-alive-tmo=2")
    ground.guest.run("sleep 5")
    ground.host.wait_state(controller, "live", 0.1)
    ground.host.disconnect(nvme.DISCOVERY_NQN)


def descriptors(ground):
    """004, 026: the UUID is told, and the same again after another connect."""
    seen = set()
    for _ in range(2):
        ground.connect()
        uuid = ground.guest.check(f"cat /sys/class/block/{ground.disk[5:]}/uuid").strip()
        require(uuid in ground.guest.check(f"nvme ns-descs {ground.disk}"), f"ns-descs does not tell {uuid}")
        seen.add(uuid)
        ground.host.disconnect()
    require(len(seen) == 1, f"UUIDs {seen}")


def resets(ground):
    """005, 022: a controller reset, again and again."""
    for _ in range(3):
        ground.guest.check(f"nvme reset /dev/{ground.controller}")
        ground.host.wait_state(ground.controller, "live", 30)
        ground.host.read(ground.disk, 1)


def beyond_the_end(ground):
    """018: what is out of range is refused as that."""
    blocks = ground.host.json(f"id-ns {ground.disk}")["nsze"]
    ground.guest.check(f"nvme read {ground.disk} -s {blocks - 1} -c 0 -z 512 >/dev/null")
    for first, count in ((blocks, 0), (blocks - 1, 1), (2**64 - 1, 0)):
        done = ground.guest.run(f"nvme read {ground.disk} -s {first} -c {count} -z {512 * (count + 1)} 2>&1 >/dev/null")
        require(not done.ok and "LBA Out of Range" in done.out, f"{first}+{count}: {done.out}")


def lists_and_logs(ground):
    """021, 023, 025, 027, 028: nvme-cli's lists and logs, and a rescan."""
    require(ground.disk in ground.guest.check("nvme list"), "nvme list")
    require(nvme.NQN in ground.guest.check("nvme list-subsys"), "nvme list-subsys")
    for log in ("smart-log", "effects-log"):
        ground.guest.check(f"nvme {log} /dev/{ground.controller} >/dev/null")
    ground.guest.check(f"nvme ns-rescan /dev/{ground.controller}")
    require(ground.host.disks() == [ground.disk], "the rescan has changed the disks")


def from_user_space(ground):
    """029: reads and writes that nvme-cli itself makes, of several sizes."""
    ground.guest.check("dd if=/dev/urandom of=/tmp/user bs=1M count=1 2>/dev/null")
    for blocks in (1, 8, 129, 1024):
        size = blocks * 512
        ground.guest.check(f"nvme write {ground.disk} -s 77 -c {blocks - 1} -z {size} -d /tmp/user >/dev/null && "
                           f"nvme read {ground.disk} -s 77 -c {blocks - 1} -z {size} -d /tmp/back >/dev/null && "
                           f"cmp -n {size} /tmp/user /tmp/back")


def by_ipv6(ground):
    """IPv6: the target's other address."""
    ground.guest.check(f"ip addr add {IPV6_GUEST}/64 dev {ground.host.card.net} nodad")
    ground.guest.check(f"ping -6 -c 1 -W 5 {IPV6_TARGET}")
    records = ground.host.discover(IPV6_TARGET)
    require(IPV6_TARGET in {r["traddr"].strip() for r in records}, f"discovered {records}")
    ground.controller = ground.host.connect(target=IPV6_TARGET)
    ground.disk, = ground.host.disks()
    ground.host.read(ground.disk, 1)
    ground.host.disconnect()


def leaves_at_once(ground):
    """031: disconnect right after connect."""
    for _ in range(5):
        ground.host.connect(options="--nr-io-queues=1")
        ground.host.disconnect()
    require(not ground.host.controllers(), "a controller is left")


def reset_and_disconnect_under_load(ground):
    """040: resets while fio runs cost it nothing; a disconnect ends it, and nothing hangs."""
    job = ground.guest.spawn(f"{FIO} --filename={ground.disk} --time_based --runtime=6 --verify=crc32c --verify_fatal=1 "
                             ">/tmp/fio.out 2>&1; echo $? >/tmp/fio.code")
    ground.guest.run("sleep 1")
    for _ in range(3):
        ground.guest.check(f"nvme reset /dev/{ground.controller}")
        ground.host.wait_state(ground.controller, "live", 30)
        ground.guest.run("sleep 0.5")
    job.wait(60)
    require(ground.guest.check("cat /tmp/fio.code").strip() == "0", ground.guest.check("tail -5 /tmp/fio.out"))
    job = ground.guest.spawn(f"{FIO} --filename={ground.disk} --time_based --runtime=60 >/tmp/fio.out 2>&1; true")
    ground.guest.run("sleep 1")
    ground.host.disconnect()
    job.wait(30)
    require(not ground.host.controllers(), "a controller is left")


def queue_types(ground):
    """047: queues of their own for writing. (Polled ones work, too, but the driver warns: docs/limits.md.)"""
    ground.connect("--nr-io-queues=2 --nr-write-queues=1")
    ground.guest.check(f"dmesg | grep '{ground.controller}: mapped 1/2/0 default/read/poll'")
    ground.guest.check(f"fio --name=job --filename={ground.disk} --direct=1 --ioengine=pvsync2 --rw=randrw --bs=4k --size=4M "
                       "--verify=crc32c --verify_fatal=1 >/tmp/fio.out 2>&1 || { cat /tmp/fio.out; false; }")
    ground.host.disconnect()


def namespaces_under_load(ground):
    """051, 058: namespaces come, go and change their size and order while another is used."""
    job = ground.guest.spawn(f"{FIO} --filename={ground.disk} --time_based --runtime=300 --verify=crc32c --verify_fatal=1 "
                             ">/tmp/fio.out 2>&1; echo $? >/tmp/fio.code")
    for round_ in range(4):
        for nsid in (2, 3, 4):
            ground.server.ctl("nvme", "add", f"{nsid + round_}M", "--nsid", str(nsid))
        for nsid in (4, 2, 3):
            ground.server.ctl("nvme", "remove", str(nsid))
    ground.server.ctl("nvme", "add", "9M", "--nsid", "3")
    ground.server.ctl("nvme", "add", "5M", "--nsid", "2")
    # A host that finds another namespace under a number it knows lets go of the one, and takes the other at its next scan.
    ground.guest.check(f"nvme ns-rescan /dev/{ground.controller}")
    ground.wait_for_sizes({1: 64, 2: 5, 3: 9})
    for nsid in (2, 3):
        ground.server.ctl("nvme", "remove", str(nsid))
    ground.wait_for_sizes({1: 64})
    ground.guest.check("pkill -INT fio")
    job.wait(30)
    require(ground.guest.check("cat /tmp/fio.code").strip() in ("0", "128"), ground.guest.check("tail -5 /tmp/fio.out"))


def write_zeroes(ground):
    """065: the kernel takes over that zeroes can be written, and does so."""
    limit = int(ground.guest.check(f"cat /sys/block/{ground.disk[5:]}/queue/write_zeroes_max_bytes"))
    require(limit > 0, "no Write Zeroes")
    ground.guest.check(f"dd if=/tmp/user of={ground.disk} oflag=direct bs=1M 2>/dev/null && blkdiscard -z -o 0 -l 1M {ground.disk} && "
                       f"cmp -n {1 << 20} {ground.disk} /dev/zero")


@scenario("nvmeof-ground", boot="none", complaints=True)
def nvmeof_ground(lab):
    """The ground of blktests' nvme tests: resets and disconnects under load, queue types, namespaces that come and go."""
    lab.server = server = lab.start_server(backend=f"nvmeof:size=64M,ip={nvme.TARGET},ip={IPV6_TARGET}", control=True)
    lab.guest = lab.start_guest(server)
    ground = Ground(lab)
    evidence = []

    def steps(*functions):
        for step in functions:
            begin = time.monotonic()
            step(ground)
            evidence.append(f"{step.__doc__.split(':')[0]} ({time.monotonic() - begin:.1f} s)")

    steps(discovery_stays, descriptors, by_ipv6, leaves_at_once, queue_types)
    ground.connect()
    steps(resets, beyond_the_end, lists_and_logs, from_user_space, write_zeroes, namespaces_under_load,
          reset_and_disconnect_under_load)
    require(server.alive, "the server ended")
    return "blktests nvme/ " + ", ".join(evidence)
