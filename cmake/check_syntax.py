# SPDX-License-Identifier: MIT
"""Has the compiler of a configured build folder look at every source, as it would to compile it, but makes nothing.

usage: check_syntax.py BUILD_DIR"""

import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys


def check(entry):
    words = shlex.split(entry["command"])
    command = words[next(i for i, word in enumerate(words) if "ccache" not in word):]
    return subprocess.run([*command, "-fsyntax-only"], cwd=entry["directory"], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    entries = json.loads((pathlib.Path(sys.argv[1]) / "compile_commands.json").read_text())
    # Each header by itself is the business of a test.
    entries = [entry for entry in entries if "header_check" not in entry["file"]]
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for done in pool.map(check, entries):
            sys.stdout.write(done.stdout)
            bad += done.returncode != 0
    print(f"{len(entries)} sources, {bad} refused")
    sys.exit(bad != 0 or not entries)


main()
