"""How many processes a process starts: told by the kernel, fork by fork, so that none is too short-lived to be seen.

The process connector is for root; without it the answer is that nobody knows.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from collections import Counter

NETLINK_CONNECTOR = 11
CN_IDX_PROC = CN_VAL_PROC = 1
LISTEN = 1
FORK = 1
EVENT_AT = 36  # after the headers of netlink and connector
BUFFER_BYTES = 4 << 20


def count_forks(parents: list[int], for_s: float) -> Counter[int] | None:
    """Wait so long and return how many children each of these started meanwhile; None if the kernel does not say."""
    until = time.monotonic() + for_s
    try:
        with _subscribe() as sock:
            return _count(sock, frozenset(parents), until)
    except OSError:
        time.sleep(max(0.0, until - time.monotonic()))
        return None


def _subscribe() -> socket.socket:
    sock = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, NETLINK_CONNECTOR)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
    sock.bind((os.getpid(), CN_IDX_PROC))
    body = struct.pack("=IIIIHHI", CN_IDX_PROC, CN_VAL_PROC, 0, 0, 4, 0, LISTEN)
    sock.send(struct.pack("=IHHII", 16 + len(body), 3, 0, 0, os.getpid()) + body)
    return sock


def _count(sock: socket.socket, parents: frozenset[int], until: float) -> Counter[int]:
    started: Counter[int] = Counter()
    while (left_s := until - time.monotonic()) > 0:
        sock.settimeout(left_s)
        try:
            message = sock.recv(4096)
        except TimeoutError:
            break
        (what,) = struct.unpack_from("=I", message, EVENT_AT)
        if what == FORK:
            _, parent, child, group = struct.unpack_from("=IIII", message, EVENT_AT + 16)
            if parent in parents and child == group:  # a thread is no process
                started[parent] += 1
    return started
