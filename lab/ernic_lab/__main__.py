# SPDX-License-Identifier: MIT
"""python3 -m ernic_lab: what './dev lab' and './dev demo' call."""
import argparse
import shutil
import signal
import sys

from . import demo, image, paths, process, runner


def parse_arguments():
    parser = argparse.ArgumentParser(prog="./dev lab", description="Boot real guests against the server.")
    commands = parser.add_subparsers(dest="command", required=True)
    listing = commands.add_parser("list", help="name the scenarios")
    run = commands.add_parser("run", help="run scenarios (all quick ones, or those named)")
    for sub in (listing, run):
        sub.add_argument("names", nargs="*", metavar="NAME", help="scenario name or the start of it")
        sub.add_argument("--full", action="store_true", help="also the long ones, and loops of full length")
        sub.add_argument("--no-card", action="store_true", help="only those that need no card")
    run.add_argument("--backend", default="loopback", help="what the server is started with (default: %(default)s)")
    run.add_argument("--summary", metavar="FILE", help="write the result as JSON there instead of printing a total")
    shell = commands.add_parser("shell", help="boot a guest with the card and open a shell in it")
    shell.add_argument("--no-card", action="store_true", help="without the card")
    commands.add_parser("image", help="make the guest image if needed and say where it is")
    tour = commands.add_parser("demo", help="the tour of ./dev demo")
    tour.add_argument("--shell", action="store_true", help="leave the user in the guest at the end")
    tour.add_argument("--no-card", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def select(arguments):
    chosen = runner.load()
    if arguments.names:
        unknown = [n for n in arguments.names if not any(s.name.startswith(n) for s in chosen)]
        if unknown:
            sys.exit(f"no scenario is named {', '.join(unknown)}; see './dev lab list --full'")
        return [s for s in chosen if any(s.name.startswith(n) for n in arguments.names)]
    return [s for s in chosen
            if (arguments.full or s.tier == "quick") and not (arguments.no_card and s.card)]


def main():
    # Ended from outside, or with ./dev gone, the lab tidies up as it does after Ctrl-C.
    process.die_with_parent(signal.SIGTERM)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    arguments = parse_arguments()
    if arguments.command == "list":
        for item in select(arguments):
            print(f"{item.name:<28} {item.tier:<6} {item.purpose}")
        return 0
    if arguments.command == "image":
        parts = image.ensure()
        print(f"tools  {parts.tools}\nguest  {parts.guest}\ninitrd {parts.initrd}\nruns   {paths.cache_dir() / 'runs'}")
        return 0
    if arguments.command == "shell":
        return demo.run(shell=True, card=not arguments.no_card, tour=False)
    if arguments.command == "demo":
        return demo.run(arguments.shell, not arguments.no_card)
    runs = runner.Runner(arguments.full, arguments.backend)
    outcomes = runs.run(select(arguments))
    passed = sum(o.passed for o in outcomes)
    if arguments.summary:
        shutil.copy(runs.run_dir / "summary.json", arguments.summary)
    else:
        print(f"{passed} passed, {len(outcomes) - passed} failed")
    return 0 if passed == len(outcomes) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
