# SPDX-License-Identifier: MIT
"""NVMe over Fabrics: the stock initiator of a guest against the target in the server."""
import time

from ernic_lab import nvme, pairs
from ernic_lab.lab import LeakWatch
from ernic_lab.scenario import require, scenario

FILE_SYSTEM = """
set -e
mkfs.ext4 -q -E discard {disk}
mkdir -p /mnt/nvme
mount -o discard {disk} /mnt/nvme
cp -r /usr/bin /usr/lib/python3 /mnt/nvme/
sync
( cd /mnt/nvme && find . -type f -print0 | sort -z | xargs -0 sha256sum ) >/tmp/written
umount /mnt/nvme
fsck.ext4 -fn {disk} >/tmp/fsck 2>&1
mount {disk} /mnt/nvme
( cd /mnt/nvme && find . -type f -print0 | sort -z | xargs -0 sha256sum ) >/tmp/read
rm -rf /mnt/nvme/python3
fstrim /mnt/nvme
umount /mnt/nvme
fsck.ext4 -fn {disk} >/tmp/fsck 2>&1
cmp /tmp/written /tmp/read
wc -l </tmp/read
"""


def stats(server):
    """The statistics file, once what was done before is in it."""
    time.sleep(0.5)
    return server.stats()


@scenario("nvmeof", boot="none")
def nvmeof(lab):
    """Discover, connect, identify, IO with verification, a file system, disconnect; then all of it many times."""
    lab.server = server = lab.start_server(backend="nvmeof:size=256M", extra=("--stats-interval", "0.1"))
    lab.guest = guest = lab.start_guest(server)
    host = nvme.Initiator(guest)
    guest.check(f"ping -c 3 -i 0.2 -W 5 {nvme.TARGET}")
    evidence = []

    records = host.discover()
    offered = [(r["subnqn"], r["trsvcid"].strip(), r["traddr"].strip()) for r in records if r["subtype"] == "nvme subsystem"]
    require(offered == [(nvme.NQN, "4420", nvme.TARGET)], f"discovered {records}")
    evidence.append(f"discovered {offered[0][0]}")

    controller = host.connect()
    disk, = host.disks()
    listed = guest.check("nvme list")
    require(disk in listed, listed)
    identity = host.json(f"id-ctrl /dev/{controller}")
    require(identity["subnqn"] == nvme.NQN and identity["sgls"] & 4, f"id-ctrl {identity}")
    namespace = host.json(f"id-ns {disk}")
    require(namespace["nsze"] == 256 << 11, f"id-ns {namespace}")
    evidence.append(f"connected as {controller}, {guest.check(f'cat /sys/class/nvme/{controller}/queue_count').strip()} queues")

    for rw, size in (("randrw", "--bsrange=512-64k"), ("write", "--bs=1M"), ("randwrite", "--bs=4k")):
        job = host.fio(disk, f"--rw={rw} {size} --ioengine=libaio --iodepth=32 --size=64M --verify=crc32c "
                             "--verify_fatal=1")
        require(job["error"] == 0, f"fio {rw} {size}: {job}")
    evidence.append("fio verified")
    files = guest.check(FILE_SYSTEM.format(disk=disk), 300).strip()
    evidence.append(f"{files} files equal, fsck clean")
    complaints = nvme.kernel_complaints(guest)
    require(not complaints, complaints)
    host.disconnect()
    require(not host.controllers(), "a controller is left")

    leak = None
    rounds = lab.rounds(10, 50)
    for i in range(rounds):
        if i == 3:
            leak = LeakWatch(server)
        host.connect(options="--nr-io-queues=2")
        disk, = host.disks()
        guest.check(f"dd if=/dev/urandom of=/tmp/block bs=64k count=1 2>/dev/null && "
                    f"dd if=/tmp/block of={disk} oflag=direct bs=64k seek={i} 2>/dev/null && "
                    f"dd if={disk} iflag=direct bs=64k skip={i} count=1 2>/dev/null | cmp - /tmp/block")
        host.disconnect()
    require(pairs.wait_for(guest, "[ -z \"$(ls /sys/class/nvme)\" ]", 5), "a controller is left")
    leak.check()
    evidence.append(f"{rounds} times connected, written, read and disconnected")
    numbers = stats(server)["nvmeof"]
    require(numbers["transport"]["lost"] == 0, f"connections were lost: {numbers}")
    require(server.alive, "the server ended")
    return "; ".join(evidence)
