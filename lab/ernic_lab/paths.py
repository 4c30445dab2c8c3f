# SPDX-License-Identifier: MIT
"""Where the lab finds and keeps things."""
import os
import shutil
import tempfile
import time
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
LAB = REPO / "lab"
KEPT_RUNS = 20


def cache_dir():
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(os.environ.get("ERNIC_CACHE_DIR") or os.path.join(home, "rocm-ernic"))


def new_run_dir(label):
    """A fresh folder for logs; 'latest' points at it and the oldest ones go."""
    runs = cache_dir() / "runs"
    runs.mkdir(parents=True, exist_ok=True)
    run = runs / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{label}"
    run.mkdir()
    link = runs / "latest"
    link.unlink(missing_ok=True)
    link.symlink_to(run.name)
    for old in sorted(p for p in runs.iterdir() if p.is_dir() and not p.is_symlink())[:-KEPT_RUNS]:
        shutil.rmtree(old, ignore_errors=True)
    return run


def new_socket_dir():
    """Socket paths are limited to 107 bytes, so they do not live in the (long) run folder."""
    return Path(tempfile.mkdtemp(prefix="ernic-"))
