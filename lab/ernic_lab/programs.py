# SPDX-License-Identifier: MIT
"""Our own guest program (lab/guest/verbs_check), compiled on the host into the share.

The guest is newer than any supported host, so a program linked here against glibc and libibverbs
runs there; the guest itself needs no compiler.
"""
import subprocess

from . import paths

SOURCE = paths.LAB / "guest" / "verbs_check"


def share():
    """The folder that guests mount at /lab, with an up-to-date program in it."""
    folder = paths.cache_dir() / "share"
    folder.mkdir(parents=True, exist_ok=True)
    made = subprocess.run(["make", "-s", "-j2", "-C", SOURCE, f"OUT={folder}/verbs_check"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if made.returncode != 0:
        raise RuntimeError(f"lab/guest/verbs_check does not compile:\n{made.stdout[-3000:]}")
    return folder
