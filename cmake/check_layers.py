#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fails when a file under src/ includes a room that cmake/layers.txt does not allow it to include."""

import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
allowed = {}
for line in (root / "cmake/layers.txt").read_text().splitlines():
    line = line.split("#")[0].strip()
    if line:
        room, _, below = line.partition(":")
        allowed[room.strip()] = set(below.split()) | {room.strip()}

bad = []
checked = 0
for path in sorted((root / "src").rglob("*")):
    if path.suffix not in (".hpp", ".cpp"):
        continue
    checked += 1
    room = path.relative_to(root / "src").parts[0]
    if room not in allowed:
        bad.append(f"{path.relative_to(root)}: room '{room}' is missing in cmake/layers.txt")
        continue
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = re.match(r'\s*#include "([^/"]+)/', line)
        if match and match.group(1) not in allowed[room]:
            bad.append(f"{path.relative_to(root)}:{number}: {room} may not include {match.group(1)}")
print("\n".join(bad) or f"layering: {checked} files, no arrow points up")
sys.exit(bool(bad) or checked == 0)
