# SPDX-License-Identifier: MIT
"""NVMe over Fabrics beside what else a guest can have: Linux's target over soft-RoCE, QEMU's own NVMe disk."""
import json
from pathlib import Path

from ernic_lab import nvme, soft_roce
from ernic_lab.scenario import require, scenario

KINDS = (("4 KiB reads, depth 1 [IOPS]", "--rw=randread --bs=4k --iodepth=1", 0),
         ("4 KiB reads, depth 32, 4 jobs [IOPS]", "--rw=randread --bs=4k --iodepth=32 --numjobs=4 --group_reporting", 0),
         ("4 KiB writes, depth 32, 4 jobs [IOPS]", "--rw=randwrite --bs=4k --iodepth=32 --numjobs=4 --group_reporting", 0),
         ("1 MiB reads, depth 8 [MB/s]", "--rw=read --bs=1M --iodepth=8", 1))
# How many times (Linux's target over soft-RoCE, QEMU's disk).
GOALS = ((5, 0.6), (5, 0.6), (None, None), (20, 1.0))
SIZE = 256


@scenario("nvmeof-speed", boot="none", tier="full")
def nvmeof_speed(lab):
    """fio on the target, on Linux's target over soft-RoCE and on QEMU's NVMe disk, in turns in one boot."""
    backing = Path("/dev/shm") / f"ernic-nvme-{lab.run_dir.name}.img"
    backing.write_bytes(b"")
    with open(backing, "r+b") as file:
        file.truncate(SIZE << 20)
    try:
        lab.server = server = lab.start_server(backend=f"nvmeof:size={SIZE}M")
        lab.guest = guest = lab.start_guest(server, qemu_args=(
            "-drive", f"if=none,id=nvm,format=raw,file={backing}", "-device", "nvme,drive=nvm,serial=qemu"))
        rows = measure(lab, guest)
    finally:
        backing.unlink(missing_ok=True)
    (lab.run_dir / "nvmeof-speed.json").write_text(json.dumps(rows, indent=2) + "\n")
    lines = "\n".join(f"     {row['what']:<38} target {row['target']:>9.0f}   nvmet {row['nvmet']:>9.0f} (x{row['nvmet_factor']})   "
                      f"QEMU {row['qemu']:>9.0f} (x{row['qemu_factor']}){row['missed']}" for row in rows)
    require(server.alive, "the server ended")
    return f"table in {lab.run_dir}/nvmeof-speed.json\n{lines}"


def measure(lab, guest):
    host = nvme.Initiator(guest)
    rxe = soft_roce.add(guest)
    nvme.start_nvmet(guest, rxe.address)
    guest.check("modprobe nvme && udevadm settle", 60)
    disks = {"target": nvme.disk_of(guest, host.connect()),
             "nvmet": nvme.disk_of(guest, host.connect(nqn=nvme.LINUX_NQN, target=rxe.address))}
    pci, = [name for name in host.controllers()
            if guest.check(f"cat /sys/class/nvme/{name}/transport").strip() == "pcie"]
    disks["qemu"] = nvme.disk_of(guest, pci)
    rows = []
    for (what, options, pick), goals in zip(KINDS, GOALS):
        best = {name: 0 for name in disks}
        for _ in range(lab.rounds(2, 3)):
            for name, disk in disks.items():
                job = host.fio(disk, f"{options} --ioengine=libaio --time_based --runtime=5 --ramp_time=1", 60)
                best[name] = max(best[name], nvme.speed(job)[pick] / (1e6 if pick else 1))
        factors = [round(best["target"] / best[name], 2) for name in ("nvmet", "qemu")]
        missed = [f"{goal}" for factor, goal in zip(factors, goals) if goal and factor < goal]
        rows.append({"what": what, **best, "nvmet_factor": factors[0], "qemu_factor": factors[1],
                     "missed": f"  MISSED: {', '.join(missed)}" if missed else ""})
    for nqn in (nvme.NQN, nvme.LINUX_NQN):
        host.disconnect(nqn)
    return rows
