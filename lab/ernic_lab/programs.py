# SPDX-License-Identifier: MIT
"""Our own guest program (lab/guest/verbs_check), compiled on the host into the share.

The guest is newer than any supported host, so a program linked here against glibc and libibverbs
runs there; the guest itself needs no compiler.
"""
import fcntl
import hashlib
import subprocess

from . import paths

SOURCE = paths.LAB / "guest" / "verbs_check"


def share():
    """The folder that guests mount at /lab, with an up-to-date program in it."""
    # One per tree: two trees would build theirs over each other.
    tree = hashlib.sha256(str(paths.REPO).encode()).hexdigest()[:12]
    folder = paths.cache_dir() / f"share-{tree}"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "w") as lock:  # nor do two runs of one tree build at once
        fcntl.flock(lock, fcntl.LOCK_EX)
        _make(folder)
    return folder


def _make(folder):
    made = subprocess.run(["make", "-s", "-j2", "-C", SOURCE, f"OUT={folder}/verbs_check"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if made.returncode != 0:
        raise RuntimeError(f"lab/guest/verbs_check does not compile:\n{made.stdout[-3000:]}")
