# SPDX-License-Identifier: MIT
"""The stock NVMe over Fabrics initiator of a guest, and nvme-cli."""
import json
import re

from . import card, pairs
from .scenario import require

TARGET, GUEST = "192.168.200.1", "192.168.200.2"
NQN = "nvmet-test"
DISCOVERY_NQN = "nqn.2014-08.org.nvmexpress.discovery"


def host_id(number):
    return f"00000000-0000-4000-8000-{number:012}"


def host_nqn(number):
    return f"nqn.2014-08.org.nvmexpress:uuid:{host_id(number)}"


HOST_NQN = host_nqn(1)


class Initiator:
    """Brings the guest's card up in the target's subnet and loads the transport. Its `number` is who it is."""

    def __init__(self, guest, address=GUEST, number=1):
        self.guest, self.number = guest, number
        self.card = card.bring_up(guest, address)
        guest.check("modprobe -a nvme-rdma ext4", 60)

    def identity(self):
        return f"--hostnqn={host_nqn(self.number)} --hostid={host_id(self.number)}"

    def discover(self, target=TARGET, port=4420, options=""):
        """The discovery log's records."""
        out = self.guest.check(f"nvme discover -t rdma -a {target} -s {port} {self.identity()} {options} -o json", 60)
        return json.loads(out)["records"]

    def connect(self, nqn=NQN, target=TARGET, port=4420, options=""):
        """Connects, waits for the namespaces, and returns the controller's name (nvme0)."""
        before = set(self.controllers())
        self.guest.check(f"nvme connect -t rdma -a {target} -s {port} -n {nqn} {self.identity()} {options}", 120)
        new = sorted(set(self.controllers()) - before)
        require(len(new) == 1, f"connect made the controllers {new}")
        return new[0]

    def try_connect(self, nqn=NQN, target=TARGET, port=4420, options=""):
        """What nvme-cli says to a connection that fails."""
        done = self.guest.run(f"nvme connect -t rdma -a {target} -s {port} -n {nqn} {self.identity()} {options} 2>&1", 120)
        require(not done.ok, f"connect succeeded: {done.out}")
        return done.out

    def disconnect(self, nqn=NQN):
        self.guest.check(f"nvme disconnect -n {nqn}", 60)

    def controllers(self):
        return self.guest.check("ls /sys/class/nvme 2>/dev/null; true").split()

    def wait_state(self, controller, state, timeout=60):
        path = f"/sys/class/nvme/{controller}/state"
        require(pairs.wait_for(self.guest, f'[ "$(cat {path})" = {state} ]', timeout),
                f"{controller} is {self.guest.run(f'cat {path}').out.strip()}, not {state}: {self.guest.check('dmesg | tail -15')}")

    def read(self, disk, mib=4):
        """Reads the beginning of the disk, past the page cache."""
        self.guest.check(f"dd if={disk} of=/dev/null iflag=direct bs=1M count={mib} 2>/dev/null")

    def disks(self, count=1, timeout=20):
        """The block devices of all namespaces, once there are `count`."""
        listing = "ls /dev | grep -E '^nvme[0-9]+n[0-9]+$'"
        found = pairs.wait_for(self.guest, f"[ $({listing} | wc -l) -ge {count} ]", timeout)
        disks = [f"/dev/{name}" for name in self.guest.check(f"{listing}; true").split()]
        require(found, f"{len(disks)} of {count} namespaces came: {disks} {self.guest.check('dmesg | tail -20')}")
        return disks

    def json(self, command, timeout=60):
        return json.loads(self.guest.check(f"nvme {command} -o json", timeout))

    def fio(self, disk, options, timeout=300):
        """One fio job's JSON."""
        out = self.guest.check(f"fio --name=job --filename={disk} --direct=1 --output-format=json {options}", timeout)
        return json.loads(out[out.index("{"):])["jobs"][0]


def speed(job):
    """IOPS and bytes per second, both ways together."""
    return (job["read"]["iops"] + job["write"]["iops"], job["read"]["bw_bytes"] + job["write"]["bw_bytes"])


def kernel_complaints(guest):
    out = guest.check("dmesg | grep -iE 'nvme.*(error|fail|timeout|bogus|invalid)|I/O error|EXT4-fs error'; true")
    return re.sub(r"^\[[^]]*\] ", "", out, flags=re.M).strip()


# Linux's own target on soft-RoCE, with a RAM disk behind it.
_NVMET = """
set -e
modprobe -a nvmet nvmet-rdma
modprobe brd rd_nr=1 rd_size=262144 max_part=0
mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config
cd /sys/kernel/config/nvmet
mkdir -p subsystems/linux-nvmet && echo 1 >subsystems/linux-nvmet/attr_allow_any_host
mkdir -p subsystems/linux-nvmet/namespaces/1
echo -n /dev/ram0 >subsystems/linux-nvmet/namespaces/1/device_path
echo 1 >subsystems/linux-nvmet/namespaces/1/enable
mkdir -p ports/1
echo rdma >ports/1/addr_trtype; echo ipv4 >ports/1/addr_adrfam
echo {address} >ports/1/addr_traddr; echo 4420 >ports/1/addr_trsvcid
ln -s /sys/kernel/config/nvmet/subsystems/linux-nvmet ports/1/subsystems/linux-nvmet
"""
LINUX_NQN = "linux-nvmet"


def start_nvmet(guest, address):
    guest.check(_NVMET.format(address=address), 60)


def disk_of(guest, controller):
    """The block device of a controller's first namespace; with native multipath its name is the subsystem's."""
    return "/dev/" + guest.check(
        f"for d in /sys/class/nvme/{controller}/nvme*n1 /sys/class/nvme/{controller}/subsystem/nothing; do "
        "[ -e $d ] && basename $d | sed 's/c[0-9]*n/n/'; done; true").split()[0]
