# SPDX-License-Identifier: MIT
"""NVMe over Fabrics: what a target's controllers know, asked for by nvme-cli of a guest; namespaces in files."""
import base64
import json
import time

from ernic_lab import nvme, pairs
from ernic_lab.scenario import require, scenario

# Of `nvme gen-dhchap-key`'s form: a key of the bytes 0, 1, 2, .., one of zeroes, and the subsystem's.
SECRET = "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:"
WRONG = "DHHC-1:00:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAACtVQoZ:"
OWN_SECRET = "DHHC-1:00:WlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWloj0TmR:"
GROUPS = ("ffdhe2048", "ffdhe3072", "ffdhe4096", "ffdhe6144", "ffdhe8192")


def commands_on(guest, disk):
    """One command of each kind, with its outcome."""
    guest.check(f"dd if=/dev/urandom of=/tmp/data bs=4k count=8 2>/dev/null && dd if=/tmp/data of={disk} oflag=direct bs=4k 2>/dev/null")
    guest.check(f"nvme compare {disk} -s 0 -c 63 -z 32768 -d /tmp/data")
    guest.check("cp /tmp/data /tmp/other && printf x | dd of=/tmp/other bs=1 seek=20000 conv=notrunc 2>/dev/null")
    require(not guest.run(f"nvme compare {disk} -s 0 -c 63 -z 32768 -d /tmp/other").ok, "different data compare as equal")
    guest.check(f"nvme verify {disk} -s 0 -c 63 && nvme flush {disk}")
    guest.check(f"nvme copy {disk} --sdlba=1000 --slbs=0,32 --blocks=31,31")
    guest.check(f"dd if={disk} iflag=direct bs=512 skip=1000 count=64 2>/dev/null | cmp - /tmp/data")
    guest.check(f"nvme write-uncor {disk} -s 2000 -c 7")
    require(not guest.run(f"nvme read {disk} -s 2004 -c 0 -z 512 >/dev/null").ok, "uncorrectable blocks can be read")
    guest.check(f"nvme write-zeroes {disk} -s 1996 -c 15 && nvme dsm {disk} -d -s 1000 -b 64")
    for first, count in ((2000, 8), (1000, 64)):
        guest.check(f"dd if={disk} iflag=direct bs=512 skip={first} count={count} 2>/dev/null | cmp -n {512 * count} - /dev/zero")
    return "compare, verify, flush, copy, write-uncor, write-zeroes, dsm"


def reservations_on(guest, disk):
    guest.check(f"nvme resv-register {disk} --nrkey=0x10 --rrega=0 --cptpl=3 && nvme resv-acquire {disk} --crkey=0x10 --rtype=1 --racqa=0")
    report = json.loads(guest.check(f"nvme resv-report {disk} --eds -o json"))
    require(report["rtype"] == 1 and report["regctl"] == 1, f"report {report}")
    return "reservation held"


@scenario("nvmeof-commands", boot="none")
def nvmeof_commands(lab):
    """Every command of nvme-cli on a namespace in a file; namespaces that come, grow and go; reservations kept."""
    disk_file = lab.run_dir / "disk"
    lab.server = server = lab.start_server(backend=f"nvmeof:file={disk_file},size=64M", control=True)
    lab.guest = guest = lab.start_guest(server)
    host = nvme.Initiator(guest)
    controller = host.connect()
    disk, = host.disks()
    evidence = [commands_on(guest, disk), reservations_on(guest, disk)]
    job = host.fio(disk, "--rw=randrw --bsrange=512-256k --ioengine=libaio --iodepth=32 --size=32M --verify=crc32c --verify_fatal=1")
    require(job["error"] == 0, f"fio: {job}")
    evidence.append("fio verified on the file")

    server.ctl("nvme", "add", "32M", "--nsid", "2")
    more = host.disks(2)[1]
    size = f"blockdev --getsize64 {more}"
    require(guest.check(size).strip() == str(32 << 20), guest.check(size))
    server.ctl("nvme", "resize", "2", "48M")
    require(pairs.wait_for(guest, f"[ $({size}) = {48 << 20} ]", 10), guest.check(size))
    server.ctl("nvme", "remove", "2")
    require(pairs.wait_for(guest, f"[ ! -e {more} ]", 10), "the removed namespace is still there")
    added = lab.run_dir / "added"
    added.write_bytes(b"\x5a" * (16 << 20))
    server.ctl("nvme", "add", "--file", str(added), "--nsid", "3", "--bs", "4096")
    more = host.disks(2)[1]
    require(guest.check(f"head -c 16M {more} | tr -d Z | wc -c").strip() == "0", "the file's content is not there")
    guest.check(f"dd if=/tmp/data of={more} oflag=direct bs=32k seek=2 2>/dev/null")
    server.ctl("nvme", "remove", "3")
    require(pairs.wait_for(guest, f"[ ! -e {more} ]", 10), "the removed namespace is still there")
    data = guest.check("base64 -w0 /tmp/data")
    require(added.read_bytes()[65536:98304] == base64.b64decode(data), "the file has not what was written")
    evidence.append("a namespace came, grew and went, one in a file came and went")

    health = host.json(f"smart-log /dev/{controller}")
    require(health["host_write_commands"] > 100 and health["num_err_log_entries"] > 1, f"smart-log {health}")
    for log in ("error-log", "fw-log", "effects-log", "supported-log-pages"):
        guest.check(f"nvme {log} /dev/{controller} >/dev/null")
    host.disconnect()
    require(server.alive, "the server ended")
    return "; ".join(evidence)


@scenario("nvmeof-auth", boot="none")
def nvmeof_auth(lab):
    """Targets that want to know who connects: the right secret, a wrong one, none; both sides; Diffie-Hellman groups."""
    secrets = lab.run_dir / "secrets"
    secrets.write_text(f"# one host\n{nvme.HOST_NQN} {SECRET} {OWN_SECRET}\n")
    groups = {f"group-{group}": f"192.168.200.{10 + i}" for i, group in enumerate(GROUPS)}
    others = [word for group, (nqn, ip) in zip(GROUPS, groups.items())
              for word in ("--target", f"nvmeof:nqn={nqn},ip={ip},size=16M,auth={secrets},dhgroup={group}")]
    lab.server = server = lab.start_server(backend=f"nvmeof:size=16M,auth={secrets}", extra=others)
    lab.guest = guest = lab.start_guest(server)
    host = nvme.Initiator(guest)
    for options in (f"--dhchap-secret={WRONG}", ""):
        host.try_connect(options=options)
    host.connect(options=f"--dhchap-secret={SECRET}")
    disk, = host.disks()
    host.read(disk)
    host.disconnect()
    host.try_connect(options=f"--dhchap-secret={SECRET} --dhchap-ctrl-secret={WRONG}")
    mutual = f"--dhchap-secret={SECRET} --dhchap-ctrl-secret={OWN_SECRET}"
    controller = host.connect(options=mutual)
    disk, = host.disks()
    proofs = f"dmesg | grep -c '{controller}: qid 0: authenticated with'"
    before = int(guest.check(proofs))
    guest.check(f"echo '{SECRET}' >/sys/class/nvme/{controller}/dhchap_secret")
    require(pairs.wait_for(guest, f"[ $({proofs}) -gt {before} ]", 10), "the host did not authenticate itself anew")
    host.read(disk)
    host.disconnect()
    seconds = []
    for group, (nqn, ip) in zip(GROUPS, groups.items()):
        begin = time.monotonic()
        controller = host.connect(nqn, ip, options=f"{mutual} --nr-io-queues=1")
        seconds.append(f"{time.monotonic() - begin:.1f} s")
        # Linux says it of the admin queue only; the others would not be served otherwise.
        guest.check(f"dmesg | grep '{controller}: qid 0: authenticated with' | tail -n 1 | grep 'dhgroup {group}$'")
        disk, = host.disks()
        host.read(disk)
        host.disconnect(nqn)
    host.try_connect(nqn="group-ffdhe2048", target=groups["group-ffdhe2048"], options=f"--dhchap-secret={WRONG}")
    require(server.alive, "the server ended")
    return f"the right secret connects, a wrong one and none do not; both sides proved, and again while connected; by {', '.join(GROUPS)} in {', '.join(seconds)}"


def path_numbers(guest):
    """By address: the kernel's name of the path's disk, its ANA state, and how many commands it has completed."""
    script = ("for c in /sys/class/nvme/nvme*; do for d in $c/nvme*c*n1; do [ -e $d ] || continue; "
              "echo $(sed 's/.*traddr=\\([^,]*\\).*/\\1/' $c/address) $(basename $d) $(cat $d/ana_state) "
              "$(awk '{print $1 + $5}' $d/stat); done; done")
    return {address: (name, state, int(done))
            for address, name, state, done in (line.split() for line in guest.check(script).splitlines())}


@scenario("nvmeof-multipath", boot="none")
def nvmeof_multipath(lab):
    """Two paths to one subsystem: their states change and one is lost under fio; every byte is right, no error."""
    first, second = nvme.TARGET, "192.168.200.3"
    lab.server = server = lab.start_server(
        backend="nvmeof:size=128M", control=True,
        extra=("--target", f"nvmeof:path-of={nvme.NQN},ip={second},ana=non-optimized"))
    lab.guest = guest = lab.start_guest(server)
    host = nvme.Initiator(guest)
    offered = {r["traddr"].strip() for r in host.discover() if r["subtype"] == "nvme subsystem"}
    require(offered == {first, second}, f"discovered {offered}")
    controllers = {address: host.connect(target=address) for address in (first, second)}
    disk, = host.disks()
    states = {address: state for address, (_, state, _) in path_numbers(guest).items()}
    require(states == {first: "optimized", second: "non-optimized"}, f"{states}")

    def waits_for_state(address, state):
        path = f"/sys/class/nvme/{controllers[address]}/{path_numbers(guest)[address][0]}/ana_state"
        require(pairs.wait_for(guest, f"[ $(cat {path}) = {state} ]", 10), f"{address}: {path_numbers(guest)}")

    def moves(address):
        """I/O goes by this path, and by no other."""
        guest.run("sleep 0.3")
        before = path_numbers(guest)
        guest.run("sleep 1")
        after = path_numbers(guest)
        done = {a: after[a][2] - before[a][2] for a in after}
        require(done[address] > 10 and sum(done.values()) == done[address], f"I/O should go by {address}: {done}")
        return done[address]

    job = guest.spawn(f"fio --name=job --filename={disk} --direct=1 --rw=randrw --bs=4k --ioengine=libaio --iodepth=8 "
                      "--size=32M --time_based --runtime=300 --verify=crc32c --verify_fatal=1 --output-format=json "
                      ">/tmp/fio.json 2>&1")
    guest.run("sleep 2")
    evidence = [f"by {first} {moves(first)} I/Os in a second"]
    server.ctl("nvme", "ana", first, "inaccessible")
    waits_for_state(first, "inaccessible")
    evidence.append(f"then by {second} {moves(second)}")
    server.ctl("nvme", "ana", second, "change")
    waits_for_state(second, "change")
    guest.run("sleep 1")
    server.ctl("nvme", "ana", second, "optimized")
    waits_for_state(second, "optimized")
    moves(second)
    for state in ("persistent-loss", "optimized"):
        server.ctl("nvme", "ana", first, state)
        waits_for_state(first, state)
    server.ctl("nvme", "ana", second, "non-optimized")
    waits_for_state(second, "non-optimized")
    evidence.append(f"and by {first} again {moves(first)}")
    require(job.running, f"fio has ended: {guest.check('tail -c 2000 /tmp/fio.json')}")
    guest.check(f"nvme disconnect -d {controllers[first]}", 60)
    guest.run("sleep 2")
    require(set(path_numbers(guest)) == {second}, f"{path_numbers(guest)}")
    require(job.running, f"fio has ended: {guest.check('tail -c 2000 /tmp/fio.json')}")
    guest.check("pkill -INT -o -x fio")
    job.wait(30)
    text = guest.check("cat /tmp/fio.json")
    done = json.loads(text[text.index("{"):])["jobs"][0]
    require(done["error"] == 0 and done["read"]["total_ios"] > 100, f"fio: {done}")
    evidence.append(f"{first} disconnected; fio verified {done['read']['total_ios']} reads without an error")
    host.disconnect()
    require(server.alive, "the server ended")
    return "; ".join(evidence)
