# SPDX-License-Identifier: MIT
"""NVMe over Fabrics: the stock initiator of a guest against the target in the server."""
import json
import time

from ernic_lab import mesh, nvme, pairs
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


@scenario("nvmeof-mesh", boot="none", complaints=True)
def nvmeof_mesh(lab):
    """A target in another server of a mesh: verified IO over TCP; the server dies and comes back, the host reconnects."""
    port = mesh.free_port()

    def start_target():
        return lab.start_server(backend=f"tcp:manager:listen:{port},name=target", mac="02:00:00:00:00:02", control=True,
                                # Otherwise made from the path of the socket, which is another one each time; the
                                # guest would send to the old address until its neighbour entry has aged.
                                extra=("--target", "nvmeof:size=128M,mac=02:00:00:00:00:77"))
    target = start_target()
    lab.server = server = lab.start_server(backend=f"tcp:worker:127.0.0.1:{port},name=guest", control=True)
    mesh.wait_peers(server, 1)
    lab.guest = guest = lab.start_guest(server)
    host = nvme.Initiator(guest)
    guest.check(f"ping -c 3 -i 0.2 -W 5 {nvme.TARGET}")
    require(len(host.discover()) >= 1, "nothing discovered")
    controller = host.connect(options="--keep-alive-tmo=5 --reconnect-delay=1 --ctrl-loss-tmo=120")
    disk, = host.disks()
    verify = ("--rw=randrw --bsrange=512-256k --ioengine=libaio --iodepth=32 --size=32M --verify=crc32c "
              "--verify_fatal=1")
    job = host.fio(disk, verify)
    require(job["error"] == 0, f"fio over the mesh: {job}")
    evidence = [f"verified {job['read']['io_bytes'] >> 20} MiB over the mesh"]

    writer = guest.spawn(f"fio --name=job --filename={disk} --direct=1 --rw=randwrite --bs=4k --ioengine=libaio "
                         "--iodepth=8 --size=32M --time_based --runtime=25 >/tmp/fio.log 2>&1")
    guest.run("sleep 3")
    target.kill()
    begin = time.monotonic()
    host.wait_state(controller, "connecting", 60)
    noticed = time.monotonic() - begin
    target = start_target()
    mesh.wait_peers(server, 1)
    begin = time.monotonic()
    host.wait_state(controller, "live", 120)
    require(writer.wait(120).ok, guest.check("cat /tmp/fio.log"))
    evidence.append(f"death noticed after {noticed:.1f} s, live again {time.monotonic() - begin:.1f} s after the restart, "
                    "no error reached fio")
    job = host.fio(disk, verify)
    require(job["error"] == 0, f"fio after the restart: {job}")
    host.disconnect()
    require(target.alive and server.alive, "a server ended")
    return "; ".join(evidence)


@scenario("nvmeof-guest-dies", boot="none", complaints=True)
def nvmeof_guest_dies(lab):
    """A guest is reset, and crashes (--full), in the middle of IO; each time the next boot connects at once."""
    lab.server = server = lab.start_server(backend="nvmeof:size=128M", extra=("--stats-interval", "0.1"))
    lab.guest = guest = lab.start_guest(server)
    evidence = []
    ends = lab.rounds(["system_reset"], ["system_reset", "panic"])
    for what in [*ends, ""]:
        host = nvme.Initiator(guest)
        host.connect()
        disk, = host.disks()
        job = host.fio(disk, "--rw=randrw --bs=4k --ioengine=libaio --iodepth=32 --size=16M --verify=crc32c")
        require(job["error"] == 0, f"fio: {job}")
        if what:
            guest.spawn(f"fio --name=job --filename={disk} --direct=1 --rw=randrw --bs=64k --ioengine=libaio "
                        "--iodepth=32 --size=64M --time_based --runtime=60")
            guest.run("sleep 2")
            getattr(guest, what)()
            guest.console.mark()  # the crash we asked for is not a fault
            evidence.append(f"{what}: connected again")
    host.disconnect()
    numbers = stats(server)
    require(numbers["rdma_cm"]["ended_by_reset"] >= 5 * len(ends), f"connections outlived a reset: {numbers['rdma_cm']}")
    require(numbers["rdma_cm"]["stale"] == 0, f"a request was stale: {numbers['rdma_cm']}")
    require(server.alive, "the server ended")
    return "; ".join(evidence)


@scenario("nvmeof-shared", boot="none", tier="full")
def nvmeof_shared(lab):
    """Two guests of a mesh share a namespace: each reads what the other wrote, and reservations say who may write."""
    target = "10.77.0.100"
    fabric = mesh.Mesh(lab, extra=("--target", f"nvmeof:size=64M,ip={target}"))
    one = fabric.start(1)
    fabric.extra = ()
    two = fabric.start(2)
    lab.server = one.server
    two.wait_peers(1)
    disks = {}
    for number, node in ((1, one), (2, two)):
        host = nvme.Initiator(node.guest, node.address, number)
        host.connect(target=target)
        disks[node], = host.disks()

    def write(node, seed, block):
        """Whether it may."""
        return node.guest.run(f"head -c 65536 /dev/zero | tr '\\0' {seed} >/tmp/{seed} && "
                              f"dd if=/tmp/{seed} of={disks[node]} oflag=direct bs=64k seek={block} 2>/dev/null").ok

    def holds(node, seed, block):
        node.guest.check(f"head -c 65536 /dev/zero | tr '\\0' {seed} >/tmp/{seed} && dd if={disks[node]} iflag=direct "
                         f"bs=64k skip={block} count=1 2>/dev/null | cmp - /tmp/{seed}")

    def reserve(node, what, options):
        node.guest.check(f"nvme resv-{what} {disks[node]} {options}")

    require(write(one, "a", 0) and write(two, "b", 1), "a host may not write, and nobody has reserved")
    holds(one, "b", 1)
    holds(two, "a", 0)

    write_exclusive = "--rtype=1"
    reserve(one, "register", "--nrkey=0x11 --rrega=0")
    reserve(one, "acquire", f"--crkey=0x11 {write_exclusive} --racqa=0")
    require(write(one, "c", 0) and not write(two, "d", 1), "the reservation does not hold")
    holds(two, "c", 0)
    reserve(two, "register", "--nrkey=0x22 --rrega=0")
    require(not two.guest.run(f"nvme resv-acquire {disks[two]} --crkey=0x22 {write_exclusive} --racqa=0").ok, "two hold it")
    reserve(two, "acquire", f"--crkey=0x22 --prkey=0x11 {write_exclusive} --racqa=1")
    require(write(two, "e", 1) and not write(one, "f", 0), "the reservation was not taken over")
    holds(one, "e", 1)
    holds(one, "c", 0)
    report = json.loads(one.guest.check(f"nvme resv-report {disks[one]} --eds -o json"))
    require(report["regctl"] == 1 and report["rtype"] == 1, f"report {report}")
    reserve(two, "release", f"--crkey=0x22 {write_exclusive} --rrela=0")
    require(write(one, "g", 0), "nobody holds it, and a host may not write")
    holds(two, "g", 0)
    for node in (one, two):
        node.guest.check(f"nvme disconnect -n {nvme.NQN}", 60)
        require(node.server.alive, "a server ended")
    return "each read what the other wrote; write exclusive held, was preempted and released"
