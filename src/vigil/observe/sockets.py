"""Sockets: every connection of this network namespace in one netlink dump, by inode; descriptors say whose each is.

Raw: only this tells when the last byte came (docs/performance.md, diagnosis). Unprivileged."""

from __future__ import annotations

import errno
import os
import socket
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

SOCK_DIAG_BY_FAMILY = 20
NLMSG_ERROR, NLMSG_DONE = 2, 3
NLM_F_REQUEST, NLM_F_DUMP, NLM_F_DUMP_INTR = 0x1, 0x300, 0x10
NETLINK_SOCK_DIAG = 4
INET_DIAG_INFO = 2
UNIX_DIAG_NAME, UNIX_DIAG_PEER, UNIX_DIAG_RQLEN = 0, 2, 4
UDIAG_SHOW = 0x1 | 0x4 | 0x10  # name, peer, queues

STATES = (
    "?", "ESTABLISHED", "SYN_SENT", "SYN_RECV", "FIN_WAIT1", "FIN_WAIT2", "TIME_WAIT", "CLOSE", "CLOSE_WAIT", "LAST_ACK",
    "LISTEN", "CLOSING", "NEW_SYN_RECV",
)  # fmt: skip
TIME_WAIT = 1 << 6  # they have no owner any more
WANTED = ((1 << len(STATES)) - 1) & ~TIME_WAIT

HEADER = struct.Struct("=IHHII")  # nlmsghdr
INET_REQUEST = struct.Struct("=BBBBI48s")  # inet_diag_req_v2: family, protocol, ext, pad, states, id
UNIX_REQUEST = struct.Struct("=BBHIII8s")  # unix_diag_req
INET_ANSWER = struct.Struct("=BBBB2s2s16s16sI8sIIIII")  # inet_diag_msg, its ports and addresses in network order
UNIX_ANSWER = struct.Struct("=BBBBI8s")  # unix_diag_msg
ATTRIBUTE = struct.Struct("=HH")
QUEUES = struct.Struct("=II")
# tcp_info: what is read of it, and from where. An older kernel has a shorter one.
RETRANSMITS_AT, UNACKED_AT, LAST_SENT_AT, LAST_RECEIVED_AT, RECEIVED_AT, SENT_AT = 2, 24, 44, 52, 128, 200
U32, U64 = struct.Struct("=I"), struct.Struct("=Q")

BUFFER_BYTES = 256 << 10
DEADLINE_S = 1.0  # the kernel answers at once; a longer dump is given up
RETRIES = 2  # for a dump during which the list changed
FAMILIES = {socket.AF_INET: "inet", socket.AF_INET6: "inet6", socket.AF_UNIX: "unix"}


@dataclass(frozen=True, slots=True)
class Socket:
    """One socket; None is what its kind does not have."""

    inode: int
    family: str  # inet, inet6 or unix
    state: str
    local: str
    peer: str  # of a unix socket the inode of the other end
    recv_queue: int  # bytes not read yet; of a listener, connections that wait
    send_queue: int  # bytes not sent or not acknowledged yet
    last_recv_ms: int | None = None  # since the last byte came
    last_send_ms: int | None = None
    bytes_received: int | None = None
    bytes_sent: int | None = None
    unacked: int | None = None  # segments
    retransmits: int | None = None  # of the segment that is waited for, so far


@dataclass(frozen=True, slots=True)
class Sockets:
    """All sockets of one moment, by inode."""

    at_s: float
    by_inode: dict[int, Socket] = field(default_factory=dict)
    why: str = ""  # a part could not be read


def read_sockets(unix: bool = False) -> Sockets:
    """Dump all TCP sockets of our namespace, with `unix` those too; never raises."""
    at_s = time.clock_gettime(time.CLOCK_BOOTTIME)
    if not hasattr(socket, "AF_NETLINK"):
        return Sockets(at_s, why="this system has no netlink")
    found: dict[int, Socket] = {}
    whys = []
    for family in (socket.AF_INET, socket.AF_INET6, *((socket.AF_UNIX,) if unix else ())):
        try:
            found |= {one.inode: one for one in _dump(family)}
        except OSError as error:
            whys.append(f"{FAMILIES[family]}: {error.strerror or error}")
    return Sockets(at_s, found, "; ".join(whys))


def _dump(family: int) -> list[Socket]:
    parse = _parse_unix if family == socket.AF_UNIX else _parse_inet
    for _ in range(RETRIES):
        whole, answers = _ask(_request(family))
        if whole:
            break
    return [parse(answer) for answer in answers]  # one that changed under every dump is as good as it gets


def _request(family: int) -> bytes:
    if family == socket.AF_UNIX:
        body = UNIX_REQUEST.pack(family, 0, 0, 0xFFFFFFFF, 0, UDIAG_SHOW, b"")
    else:
        body = INET_REQUEST.pack(family, socket.IPPROTO_TCP, 1 << (INET_DIAG_INFO - 1), 0, WANTED, b"")
    return HEADER.pack(HEADER.size + len(body), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, 1, 0) + body


def _ask(request: bytes) -> tuple[bool, list[memoryview]]:
    """Send a request; return whether nothing changed meanwhile, and the bodies of the answers."""
    answers: list[memoryview] = []
    whole = True
    deadline = time.monotonic() + DEADLINE_S
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, NETLINK_SOCK_DIAG) as link:
        link.settimeout(DEADLINE_S)
        link.send(request)
        while time.monotonic() < deadline:
            for kind, flags, body in _messages(memoryview(link.recv(BUFFER_BYTES))):
                whole = whole and not flags & NLM_F_DUMP_INTR
                if kind == NLMSG_DONE:
                    return whole, answers
                if kind == NLMSG_ERROR:
                    code = -struct.unpack_from("=i", body)[0]
                    raise OSError(code, os.strerror(code))
                answers.append(body)
    raise TimeoutError(errno.ETIMEDOUT, "the kernel did not finish its answer")


def _messages(data: memoryview) -> Iterator[tuple[int, int, memoryview]]:
    at = 0
    while at + HEADER.size <= len(data):
        length, kind, flags, _, _ = HEADER.unpack_from(data, at)
        if length < HEADER.size:
            return
        yield kind, flags, data[at + HEADER.size : at + length]
        at += (length + 3) & ~3


def _attributes(body: memoryview, at: int) -> Iterator[tuple[int, memoryview]]:
    while at + ATTRIBUTE.size <= len(body):
        length, kind = ATTRIBUTE.unpack_from(body, at)
        if length < ATTRIBUTE.size:
            return
        yield kind, body[at + ATTRIBUTE.size : at + length]
        at += (length + 3) & ~3


def _parse_inet(body: memoryview) -> Socket:
    family, state, _, _, sport, dport, source, destination, _, _, _, received, sent, _, inode = INET_ANSWER.unpack_from(body)
    info = next((value for kind, value in _attributes(body, INET_ANSWER.size) if kind == INET_DIAG_INFO), None)
    is_connected = STATES[state] not in ("LISTEN", "CLOSE") if state < len(STATES) else False
    return Socket(
        inode,
        FAMILIES[family],
        STATES[state] if state < len(STATES) else str(state),
        _address(family, source, sport),
        _address(family, destination, dport) if is_connected else "",
        received,
        sent,
        _number(info, LAST_RECEIVED_AT, U32) if is_connected else None,
        _number(info, LAST_SENT_AT, U32) if is_connected else None,
        _number(info, RECEIVED_AT, U64),
        _number(info, SENT_AT, U64),
        _number(info, UNACKED_AT, U32),
        info[RETRANSMITS_AT] if info is not None and len(info) > RETRANSMITS_AT else None,
    )


def _number(info: memoryview | None, at: int, kind: struct.Struct) -> int | None:
    if info is None or len(info) < at + kind.size:
        return None
    found: int = kind.unpack_from(info, at)[0]
    return found


def _address(family: int, address: bytes, port: bytes) -> str:
    number = int.from_bytes(port, "big")
    if family == socket.AF_INET:
        return f"{address[0]}.{address[1]}.{address[2]}.{address[3]}:{number}"
    return f"[{socket.inet_ntop(socket.AF_INET6, address)}]:{number}"


def _parse_unix(body: memoryview) -> Socket:
    _, _, state, _, inode, _ = UNIX_ANSWER.unpack_from(body)
    name, peer, queues = "", "", (0, 0)
    for kind, value in _attributes(body, UNIX_ANSWER.size):
        if kind == UNIX_DIAG_NAME:
            name = bytes(value).replace(b"\0", b"@", 1).rstrip(b"\0").decode("utf-8", "replace")
        elif kind == UNIX_DIAG_PEER:
            peer = str(U32.unpack_from(value)[0])
        elif kind == UNIX_DIAG_RQLEN:
            queues = QUEUES.unpack_from(value)
    return Socket(inode, "unix", STATES[state] if state < len(STATES) else str(state), name, peer, queues[0], queues[1])
