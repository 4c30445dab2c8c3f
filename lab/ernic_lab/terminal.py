# SPDX-License-Identifier: MIT
"""Joins the user's terminal to a shell in the guest."""
import os
import select
import shutil
import sys
import termios
import tty


def attach(guest):
    """Runs a login shell on the guest's second console until the user leaves it."""
    size = shutil.get_terminal_size()
    # The size is set by the shell's own session: the console forgets it whenever it is closed.
    job = guest.spawn(
        f"export TERM={os.environ.get('TERM', 'linux')} PS1='guest# '; "
        f"setsid -cw sh -c 'stty sane rows {size.lines} cols {size.columns}; exec bash --noprofile --norc -i' "
        "</dev/hvc0 >/dev/hvc0 2>&1")
    sock = guest.shell_socket
    stdin = sys.stdin.fileno()
    saved = termios.tcgetattr(stdin) if os.isatty(stdin) else None
    if saved:
        tty.setraw(stdin)
    prompted = False
    # The shell throws away what was typed before it was ready, so typing starts at its prompt.
    sources = [sock]
    try:
        while job.running and guest.alive:
            ready, _, _ = select.select(sources, [], [], 0.2)
            if sock in ready:
                data = sock.recv(65536)
                if not data:
                    break
                os.write(sys.stdout.fileno(), data)
                if not prompted:
                    prompted = True
                    sources.append(stdin)
            if stdin in ready:
                data = os.read(stdin, 4096)
                if not data:  # a script's standard input ended; its shell gets end-of-file too
                    sources.remove(stdin)
                    data = b"\x04"
                sock.sendall(data)
    finally:
        if saved:
            termios.tcsetattr(stdin, termios.TCSADRAIN, saved)
