# SPDX-License-Identifier: MIT
"""Whether guests run on KVM or are emulated."""
import functools
import os
import pathlib
import tempfile
import time

from . import paths, process

KVM = ("-accel", "kvm", "-cpu", "host")
TCG = ("-accel", "tcg,thread=multi,tb-size=512", "-cpu", "max")

# What the kernel says once it has a first process, and what QEMU says when KVM cannot go on.
_ALIVE = "Run /init as init process"
_BROKEN = "KVM internal error"
# A kernel on KVM is there in a second or two; one that takes longer is worse off than an emulated one.
_PATIENCE_SECONDS = 10


@functools.cache
def accelerator(image):
    """The options of QEMU. ERNIC_ACCEL=kvm or tcg decides; without it KVM is used where it works."""
    wish = os.environ.get("ERNIC_ACCEL", "")
    if wish not in ("", "kvm", "tcg"):
        raise ValueError(f"ERNIC_ACCEL is '{wish}': write kvm or tcg")
    return KVM if wish == "kvm" or (not wish and kvm_usable(image)) else TCG


def kvm_usable(image):
    """Tried out once until the machine boots again."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    verdict = paths.cache_dir() / f"kvm-{boot}"
    if not verdict.exists():
        print("trying out KVM", flush=True)
        works = kvm_works(image)
        for old in paths.cache_dir().glob("kvm-*"):
            old.unlink(missing_ok=True)
        verdict.write_text("works\n" if works else "does not work\n")
    return verdict.read_text() == "works\n"


def kvm_works(image):
    """The device may be there, answer, and still fail at the first instruction it has to emulate (a machine
    inside a machine), so the guest's own kernel is started on it, without disk or card."""
    with tempfile.TemporaryDirectory() as folder:
        console, log_path = pathlib.Path(folder, "console"), pathlib.Path(folder, "log")
        argv = [*image.qemu(), "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-machine", "q35", *KVM,
                "-smp", 4, "-m", "1G", "-kernel", image.guest / "vmlinux", "-initrd", image.initrd,
                "-append", "console=ttyS0 loglevel=7 panic=-1", "-chardev", f"file,id=console,path={console}",
                "-serial", "chardev:console"]
        with open(log_path, "ab") as log:
            qemu = process.start(argv, log, env=image.qemu_env())
        try:
            deadline = time.monotonic() + _PATIENCE_SECONDS
            while time.monotonic() < deadline:
                ended = qemu.poll() is not None
                if console.exists() and _ALIVE in console.read_text(errors="replace"):
                    return True
                if ended or _BROKEN in log_path.read_text(errors="replace"):
                    return False
                time.sleep(0.05)
            return False
        finally:
            process.stop(qemu)
