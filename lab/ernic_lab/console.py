# SPDX-License-Identifier: MIT
"""The guest's serial console: kept in a file, searched for kernel faults."""
import re

# Any of these is a failure, whatever the scenario looked for.
FAULTS = re.compile(
    r"BUG: |WARNING: |Oops|Kernel panic|general protection|Call Trace:|Unable to handle|"
    r"blocked for more than|self-detected stall|detected stalls|soft lockup|UBSAN|KASAN|"
    r"refcount_t: |list_(add|del) corruption|unregister_netdevice: waiting")
# What the card's own drivers complain about; scenarios that provoke it say so.
COMPLAINTS = re.compile(r"ionic.*(time[d]? ?out|fail|error|invalid|unexpected|stuck|bad )", re.I)


class Console:
    def __init__(self, path):
        self.path = path
        self.position = 0

    def text(self, start=0):
        try:
            with open(self.path, "rb") as file:
                file.seek(start)
                return file.read().decode("utf-8", "replace").replace("\r", "")
        except FileNotFoundError:
            return ""

    def tail(self, lines=25):
        return "\n".join(self.text().splitlines()[-lines:])

    def mark(self):
        """Forgets what was said until now."""
        self.position = self.path.stat().st_size if self.path.exists() else 0

    def faults(self):
        return [line for line in self.text(self.position).splitlines() if FAULTS.search(line)]

    def complaints(self):
        return [line for line in self.text(self.position).splitlines() if COMPLAINTS.search(line)]
