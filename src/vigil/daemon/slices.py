"""Slices: the threads that a death waits for get a core soon after they wake.

A thread that asks Linux (6.12 or later) for short slices has its turn earlier, and no more of it. What runs beside us when an
agent ends, its own shells and its server above all, then holds us up less. Where it cannot be asked for, nothing changes.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct

SLICE_NS = 100_000  # the shortest there is
SCHED_SETATTR = {"x86_64": 314, "aarch64": 274, "riscv64": 274}  # neither Python nor most C libraries know it
SCHED_OTHER = 0
RESET_ON_FORK = 1  # for this thread only: not for what it starts


def shorten_slices() -> bool:
    """Ask for short slices for the calling thread; say whether the kernel took it."""
    number = SCHED_SETATTR.get(platform.machine())
    if number is None:
        return False
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    attributes = struct.pack("=IIQiIQQQ", 48, SCHED_OTHER, RESET_ON_FORK, nice, 0, SLICE_NS, 0, 0)
    return bool(ctypes.CDLL(None).syscall(number, 0, attributes, 0) == 0)
