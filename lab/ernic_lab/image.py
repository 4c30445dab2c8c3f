# SPDX-License-Identifier: MIT
"""The guest image on disk, made on demand by lab/image/build.sh."""
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from . import paths


@dataclass(frozen=True)
class Image:
    tools: Path
    guest: Path
    initrd: Path

    def qemu(self):
        """QEMU from the tools root with that root's own loader and libraries: this needs no
        chroot, no mounts and no privileges, and does not care how old the host is."""
        root = self.tools
        return [root / "lib64/ld-linux-x86-64.so.2", "--library-path",
                f"{root}/usr/lib/x86_64-linux-gnu", root / "usr/bin/qemu-system-x86_64",
                "-L", root / "usr/share/qemu", "-L", root / "usr/share/seabios",
                "-L", root / "usr/lib/ipxe/qemu"]

    def qemu_env(self):
        return {**os.environ, "QEMU_MODULE_DIR": f"{self.tools}/usr/lib/x86_64-linux-gnu/qemu"}


def ensure():
    """Builds what is missing (progress on stderr) and returns the parts."""
    output = subprocess.run([str(paths.LAB / "image/build.sh")], check=True,
                            stdout=subprocess.PIPE, text=True).stdout
    parts = dict(line.split("=", 1) for line in output.splitlines())
    return Image(Path(parts["TOOLS"]), Path(parts["GUEST"]), Path(parts["INITRD"]))
