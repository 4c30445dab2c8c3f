# SPDX-License-Identifier: MIT
"""Our own small guest programs (lab/guest/verbs/*.c), compiled on the host into the share.

The guest is newer than any supported host, so programs linked here against glibc and libibverbs
run there; the guest itself needs no compiler.
"""
import subprocess
from pathlib import Path

from . import paths

SOURCES = paths.LAB / "guest" / "verbs"


def share():
    """The folder that guests mount at /lab, with up-to-date programs in it."""
    folder = paths.cache_dir() / "share"
    folder.mkdir(parents=True, exist_ok=True)
    headers = [p.stat().st_mtime for p in SOURCES.glob("*.h")]
    for source in sorted(SOURCES.glob("*.c")):
        program = folder / source.stem
        newest = max([source.stat().st_mtime, *headers])
        if not program.exists() or program.stat().st_mtime < newest:
            compile_program(source, program)
    return folder


def compile_program(source: Path, program: Path):
    made = program.with_suffix(".tmp")
    subprocess.run(["gcc", "-O2", "-g", "-Wall", "-Wextra", "-o", made, source, "-libverbs", "-lrdmacm", "-lpthread"],
                   check=True)
    made.rename(program)
