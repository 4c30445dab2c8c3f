# SPDX-License-Identifier: MIT
"""Golden files: what a tool printed when a human last looked. ERNIC_UPDATE_GOLDEN=1 rewrites them."""
import difflib
import os
import re

from . import paths
from .scenario import Failure

FOLDER = paths.LAB / "golden"


def hide_addresses(text):
    """Replaces what differs from boot to boot: BAR addresses, MACs, GUIDs, GIDs, interrupt numbers."""
    text = re.sub(r"(Memory at )[0-9a-f]+", r"\1ADDRESS", text)
    text = re.sub(r"\b[0-9a-f]{2}(:[0-9a-f]{2}){5,7}\b", "MAC", text)
    text = re.sub(r"\b(0x)?[0-9a-f]{4}(:[0-9a-f]{4}){3}\b(?!:)", "GUID", text)
    text = re.sub(r"0x[0-9a-f]{16}", "GUID", text)
    text = re.sub(r"(GID\[\s*\d+\]:\s*)\S+", r"\1GID", text)
    text = re.sub(r"(routed to IRQ )\d+", r"\1N", text)
    return re.sub(r"[ \t]+$", "", text, flags=re.M)


def compare(name, text):
    path = FOLDER / f"{name}.txt"
    if os.environ.get("ERNIC_UPDATE_GOLDEN"):
        FOLDER.mkdir(exist_ok=True)
        path.write_text(text)
        return
    if not path.exists():
        raise Failure(f"no golden file {path}; look at the output and make it with ERNIC_UPDATE_GOLDEN=1\n{text}")
    wanted = path.read_text()
    if text != wanted:
        raise Failure(f"differs from {path}:\n" + "\n".join(difflib.unified_diff(
            wanted.splitlines(), text.splitlines(), "golden", "seen", lineterm="", n=1)))
