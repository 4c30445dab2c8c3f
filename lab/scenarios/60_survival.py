# SPDX-License-Identifier: MIT
"""Resets, reloads and reboots, again and again, with a look at the server's footprint."""
from ernic_lab import perftest
from ernic_lab.lab import LeakWatch
from ernic_lab.scenario import require, scenario


def still_works(lab):
    """RDMA through the card, from scratch."""
    lab.forget_card()
    perftest.run(lab.guest, "ib_write_bw", lab.card.ib, lab.card.gid, "-s 65536 -n 50")


def loop(lab, action, quick=2):
    """The first round warms caches up; leaks are counted over the others."""
    rounds = lab.rounds(quick, 20)
    action()
    still_works(lab)
    watch = LeakWatch(lab.server)
    for _ in range(rounds):
        action()
    still_works(lab)
    require(lab.server.alive, "the server is gone")
    return f"{rounds} rounds, server {watch.check()}"


@scenario("survive-module-reload")
def module_reload(lab):
    """ionic_rdma and ionic are unloaded and loaded."""
    def action():
        lab.guest.check("rmmod ionic_rdma && modprobe -r ionic && modprobe ionic && udevadm settle && "
                        "modprobe ionic_rdma && udevadm settle", 120)
    return loop(lab, action)


@scenario("survive-link-flap")
def link_flap(lab):
    """The interface goes down and up."""
    net = lab.card.net
    return loop(lab, lambda: lab.guest.check(f"ip link set {net} down && ip link set {net} up"), quick=5)


@scenario("survive-rebind")
def rebind(lab):
    """The driver is unbound from the card and bound again."""
    pci = lab.card.pci
    driver = "/sys/bus/pci/drivers/ionic"
    return loop(lab, lambda: lab.guest.check(
        f"echo {pci} >{driver}/unbind && echo {pci} >{driver}/bind && udevadm settle", 120))


@scenario("survive-flr")
def function_level_reset(lab):
    """A function level reset through sysfs, below a bound driver."""
    pci = lab.card.pci
    return loop(lab, lambda: lab.guest.check(
        f"echo flr >/sys/bus/pci/devices/{pci}/reset_method && echo 1 >/sys/bus/pci/devices/{pci}/reset && "
        "udevadm settle", 120))


@scenario("survive-queue-change")
def queue_change(lab):
    """Ring sizes and channel counts change, which makes the driver rebuild its queues."""
    net = lab.card.net
    return loop(lab, lambda: lab.guest.check(
        f"ethtool -G {net} rx 512 tx 512 && ethtool -G {net} rx 1024 tx 1024 && "
        f"ethtool -L {net} combined 1 && ethtool -L {net} combined 2"))


@scenario("survive-reboot", boot="own")
def reboot(lab):
    """The guest reboots under the same server."""
    still_works(lab)
    return loop(lab, lab.guest.reboot, quick=1)


@scenario("survive-reset-button", boot="own", tier="full")
def reset_button(lab):
    """The virtual machine is reset while traffic runs."""
    def action():
        lab.forget_card()
        card = lab.card
        lab.guest.spawn(f"ib_write_bw -d {card.ib} -x {card.gid} -F -D 30 & sleep 1; "
                        f"ib_write_bw -d {card.ib} -x {card.gid} -F -D 30 localhost")
        lab.guest.run("sleep 3")
        lab.guest.system_reset()
    return loop(lab, action)


@scenario("survive-panic", boot="own", tier="full")
def panic(lab):
    """The guest's kernel crashes and boots again."""
    still_works(lab)

    def action():
        lab.guest.panic()
        lab.guest.console.mark()  # the crash we asked for is not a fault
    return loop(lab, action, quick=1)


@scenario("survive-kexec", boot="own", tier="full")
def kexec(lab):
    """A new kernel is started without any reset of the card."""
    # initrd and kernel reach the guest through the share.
    lab.share_kernel()

    def action():
        lab.guest.check("kexec -l /lab/vmlinuz --initrd=/lab/initrd --reuse-cmdline", 60)
        lab.guest.expect_reboot(lambda: lab.guest.spawn("kexec -e"))
    return loop(lab, action)
