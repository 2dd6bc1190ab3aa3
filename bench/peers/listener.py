"""supervisord's event listener: notes when it could read an event, and passes pid and time on.

Run as a file, standard library only: python listener.py PIPE. It speaks the protocol of supervisord's manual on stdin and
stdout: READY, a header, a payload, RESULT.
"""

from __future__ import annotations

import os
import sys
import time


def listen(deaths: int) -> None:
    """Listen until supervisord goes."""
    while True:
        os.write(1, b"READY\n")
        header = sys.stdin.buffer.readline()
        at_ns = time.monotonic_ns()
        if not header:
            return
        fields = dict(word.split(b":", 1) for word in header.split())
        payload = dict(word.split(b":", 1) for word in sys.stdin.buffer.read(int(fields[b"len"])).split())
        os.write(deaths, b"%s %d\n" % (payload[b"pid"], at_ns))
        os.write(1, b"RESULT 2\nOK")


if __name__ == "__main__":
    listen(os.open(sys.argv[1], os.O_WRONLY))
