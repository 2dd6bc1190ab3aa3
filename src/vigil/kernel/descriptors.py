"""Descriptors: what a process has open, and our own by number. Reads only; OSError for what is gone or may not be read."""

from __future__ import annotations

import errno
import os
import re
import stat as modes
from typing import NamedTuple

from vigil.kernel.proc import PROC, folder_of

MOST = 4096  # that are looked at; all are counted
NAMED = re.compile(r"(socket|pipe|anon_inode):\[?(.*?)\]?$")
TERMINALS = ("/dev/pts/", "/dev/tty", "/dev/console", "/dev/ptmx")


class Pipe(NamedTuple):
    """One end of a pipe that a process has open."""

    fd: int
    inode: int
    reads: bool
    writes: bool


class OpenFile(NamedTuple):
    """What a process has open."""

    total: int
    kinds: dict[str, int]
    sockets: tuple[int, ...]  # inodes
    pipes: tuple[Pipe, ...]
    stdin: str  # the kind of descriptor 0; empty without one


def read_open(pid: int, proc: str = PROC, thread: int = 0) -> OpenFile:
    folder = f"{folder_of(pid, proc, thread)}/fd"
    names = os.listdir(folder)
    kinds: dict[str, int] = {}
    sockets: list[int] = []
    pipes: list[Pipe] = []
    stdin = ""
    for name in names[:MOST]:
        path = f"{folder}/{name}"
        try:
            target = os.readlink(path)
            kind = kind_of(target)
            if kind == "socket":
                sockets.append(_inode(target))
            elif kind == "pipe":
                mode = os.lstat(path).st_mode
                pipes.append(Pipe(int(name), _inode(target), bool(mode & modes.S_IRUSR), bool(mode & modes.S_IWUSR)))
        except (OSError, ValueError):
            continue  # it was closed meanwhile
        kinds[kind] = kinds.get(kind, 0) + 1
        if name == "0":
            stdin = kind
    return OpenFile(len(names), kinds, tuple(dict.fromkeys(sockets)), tuple(pipes), stdin)


def kind_of(target: str) -> str:
    """Return what a descriptor leads to, in one word."""
    match = NAMED.match(target)
    if match is not None:
        return match[2] if match[1] == "anon_inode" else match[1]
    if target.startswith(TERMINALS):
        return "terminal"
    return "device" if target.startswith("/dev/") else "file"


def _inode(target: str) -> int:
    return int(target.partition("[")[2].rstrip("]"))


def read_network(pid: int | str = "self", proc: str = PROC, thread: int = 0) -> str:
    """Read the network namespace of a process, by default our own."""
    return os.readlink(f"{folder_of(pid, proc, thread)}/ns/net")


def path_of(fd: int) -> str:
    """Return a path to the very file that we have open, whatever has its name by now."""
    return f"{PROC}/self/fd/{fd}"


def read_place(fd: int) -> str:
    """Return the real path of a file that we have open, free of links and races."""
    try:
        return os.readlink(path_of(fd))
    except FileNotFoundError as error:  # the file is there, /proc is not
        raise OSError(errno.EIO, "the kernel does not say where it lies: is /proc mounted?") from error
