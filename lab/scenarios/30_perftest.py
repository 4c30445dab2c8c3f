# SPDX-License-Identifier: MIT
"""perftest over all its operations, sizes and modes."""
from ernic_lab import perftest
from ernic_lab.scenario import require, scenario

OPERATIONS = ("send", "write", "read", "atomic")


def sweep(lab, kind, options):
    """Runs every operation of a kind (bw or lat); returns one short result for each."""
    results = []
    for operation in OPERATIONS:
        sizes = "" if operation == "atomic" else "-a"
        rows, _ = perftest.run(lab.guest, f"ib_{operation}_{kind}", lab.card.ib, lab.card.gid,
                               f"{sizes} {options}", timeout=600)
        if sizes:
            require(rows[0].size == 2 and rows[-1].size == 8 << 20,
                    f"ib_{operation}_{kind}: sizes {rows[0].size} to {rows[-1].size} instead of 2 B to 8 MiB")
        best = max(r.average_mbs for r in rows) if kind == "bw" else rows[0].typical_us
        results.append(f"{operation} {best:.0f} {'MB/s' if kind == 'bw' else 'us'}")
    return ", ".join(results)


@scenario("perftest-bandwidth")
def bandwidth(lab):
    """ib_{send,write,read,atomic}_bw on RC, 2 B to 8 MiB."""
    return sweep(lab, "bw", f"-n {lab.rounds(100, 1000)}")


@scenario("perftest-latency")
def latency(lab):
    """ib_{send,write,read,atomic}_lat on RC, 2 B to 8 MiB."""
    return sweep(lab, "lat", f"-n {lab.rounds(20, 500)}")


@scenario("perftest-events", tier="full")
def events(lab):
    """Bandwidth and latency again, asleep until the completion interrupt (-e; perftest has no such WRITE)."""
    results = []
    for tool, sizes in (("ib_send_bw", "-a"), ("ib_read_bw", "-a"), ("ib_atomic_bw", ""), ("ib_send_lat", "-a"),
                        ("ib_read_lat", "-a"), ("ib_atomic_lat", "")):
        rows, _ = perftest.run(lab.guest, tool, lab.card.ib, lab.card.gid, f"{sizes} -e -n 100", timeout=600)
        results.append(f"{tool} {len(rows)} sizes")
    return ", ".join(results)


@scenario("perftest-shapes")
def shapes(lab):
    """Eight queue pairs, both directions, events, datagrams: one size each."""
    results = []
    for tool, options in (("ib_write_bw", "-q 8"), ("ib_write_bw", "-b"), ("ib_send_bw", "-b -q 8"),
                          ("ib_read_bw", "-q 8"), ("ib_send_bw", "-e"), ("ib_send_bw", "-c UD -s 1024"),
                          ("ib_send_lat", "-c UD -s 64"), ("ib_send_lat", "-e -s 64")):
        size = "" if "-s" in options else "-s 65536"
        rows, _ = perftest.run(lab.guest, tool, lab.card.ib, lab.card.gid, f"{options} {size} -n 200")
        value = rows[0].average_mbs if tool.endswith("bw") else rows[0].typical_us
        results.append(f"{tool} {options}: {value:.0f}")
    return "; ".join(results)
