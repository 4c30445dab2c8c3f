# SPDX-License-Identifier: MIT
"""Golden lspci: the config space as lspci renders it, without QEMU.

`python3 -m unittest test_lspci.py` compares; `ERNIC_UPDATE_GOLDEN=1` in the environment rewrites the golden file.
"""

import difflib
import os
import pathlib
import shutil
import subprocess
import unittest

from harness import *

GOLDEN = pathlib.Path(__file__).with_name("golden_lspci.txt")

# What must be there whatever lspci's version prints around it.
ESSENTIAL = (
    "Memory at 3800000000 (64-bit, prefetchable)",
    "Capabilities: [40] Power Management version 3",
    "Capabilities: [50] MSI-X: Enable+",
    "Capabilities: [60] Express (v2) Endpoint",
    "FLReset+",
    "LnkCap:\tPort #0, Speed 16GT/s, Width x16",
    "LnkSta:\tSpeed 16GT/s",
    "Advanced Error Reporting",
    "Device Serial Number 00-00-02-00-00-00-00-01",
)


def hex_dump(config):
    """The format of lspci -xxxx, which lspci -F reads."""
    lines = ["01:00.0 Ethernet controller: golden"]
    for at in range(0, len(config), 16):
        lines.append(f"{at:02x}: " + " ".join(f"{byte:02x}" for byte in config[at:at + 16]))
    return "\n".join(lines) + "\n"


@unittest.skipUnless(shutil.which("lspci"), "lspci is not installed")
class Lspci(ProtocolTest):
    def rendered(self):
        self.client.write_u(CONFIG, 0x10, 0x3800000000, 8)
        self.client.write_u(CONFIG, 0x18, 0x3800400000, 8)
        self.client.enable()
        dump = os.path.join(self.server.folder, "config.hex")
        pathlib.Path(dump).write_text(hex_dump(self.client.read(CONFIG, 0, 4096)), encoding="ascii")
        done = subprocess.run(["lspci", "-F", dump, "-nvvv"], capture_output=True, text=True, check=True)
        return done.stdout

    def test_rendering_equals_the_golden_file(self):
        version = subprocess.run(["lspci", "--version"], capture_output=True, text=True, check=True).stdout.strip()
        text = self.rendered()
        if os.environ.get("ERNIC_UPDATE_GOLDEN"):
            GOLDEN.write_text(f"# SPDX-License-Identifier: MIT\n# {version}\n{text}", encoding="utf-8")
        _, made_by, golden = GOLDEN.read_text(encoding="utf-8").split("\n", 2)
        for line in ESSENTIAL:
            self.assertIn(line, text)
        if made_by != f"# {version}":
            self.skipTest(f"golden file made by {made_by[2:]}, this is {version}; essential lines are right")
        if golden != text:
            self.fail("".join(difflib.unified_diff(golden.splitlines(True), text.splitlines(True), "golden", "now")))


if __name__ == "__main__":
    unittest.main()
