"""The acts of a script, as frozen values. A bare value stands for the first field: `wait = 2` is `wait = { seconds = 2 }`."""

from dataclasses import dataclass

from vigil.fake_agent.values import (
    Catchable,
    Catchables,
    Code,
    Flag,
    Fraction,
    MaybeArgv,
    MaybeBytes,
    MaybeCode,
    MaybePort,
    MaybeSets,
    MaybeSignal,
    MaybeText,
    MaybeWhole,
    Seconds,
    Table,
    Text,
    Whole,
)


@dataclass(frozen=True)
class Print:
    """Write a line: text, or `size` bytes of filler; or raw bytes (`hex`), to which no newline is added."""

    text: MaybeText = None
    hex: MaybeBytes = None
    size: MaybeWhole = None
    stderr: Flag = False


@dataclass(frozen=True)
class Event:
    """Write the table as one line of JSON on stdout."""

    payload: Table


@dataclass(frozen=True)
class HookStep:
    """Put the table into the spool as a hook would; nothing without VIGIL_SPOOL."""

    payload: Table


@dataclass(frozen=True)
class Append:
    """Add a line to a file, and make its folder where that is missing."""

    path: Text
    text: Text


@dataclass(frozen=True)
class Wait:
    """Do nothing."""

    seconds: Seconds


@dataclass(frozen=True)
class Burn:
    """Use CPU, all the time or this fraction of it."""

    seconds: Seconds
    fraction: Fraction = 1.0


@dataclass(frozen=True)
class MemoryStep:
    """Take memory, touch it, and hold it."""

    mb: Whole


@dataclass(frozen=True)
class Listen:
    """Listen on free ports of 127.0.0.1, and hold the sockets."""

    count: Whole = 1


@dataclass(frozen=True)
class Connect:
    """Connect to a port of 127.0.0.1 (to the own listener, if none is given) and hold it; `send` goes out every so often."""

    port: MaybePort = None
    send: MaybeText = None
    every: Seconds = 1.0


@dataclass(frozen=True)
class ChildStep:
    """Start children: a command, or a scenario. Without `wait` they are left behind and never waited for."""

    argv: MaybeArgv = None
    scenario: MaybeText = None
    set: MaybeSets = None
    count: Whole = 1
    new_session: Flag = False
    ignore_hup: Flag = False
    wait: Flag = False


@dataclass(frozen=True)
class Ignore:
    """Ignore these signals from here on."""

    signals: Catchables


@dataclass(frozen=True)
class Handle:
    """Answer this signal by leaving with `exit`, `after` seconds later."""

    signal: Catchable
    exit: Code = 0
    after: Seconds = 0.0


@dataclass(frozen=True)
class Ask:
    """Write the prompt and read a line. If it is `expect`, leave with `then`; else go on. At end of input wait for ever."""

    prompt: Text
    expect: MaybeText = None
    then: Code = 0
    echo: Flag = False
    at_eof: MaybeCode = None


@dataclass(frozen=True)
class ExitStep:
    """Leave with this code, or by this signal."""

    code: MaybeCode = None
    signal: MaybeSignal = None


Act = (
    Print
    | Event
    | HookStep
    | Append
    | Wait
    | Burn
    | MemoryStep
    | Listen
    | Connect
    | ChildStep
    | Ignore
    | Handle
    | Ask
    | ExitStep
)
KINDS: dict[str, type[Act]] = {
    "print": Print,
    "event": Event,
    "hook": HookStep,
    "append": Append,
    "wait": Wait,
    "burn": Burn,
    "memory": MemoryStep,
    "listen": Listen,
    "connect": Connect,
    "child": ChildStep,
    "ignore": Ignore,
    "handle": Handle,
    "ask": Ask,
    "exit": ExitStep,
}
EXACTLY_ONE: dict[type, frozenset[str]] = {
    Print: frozenset({"text", "hex", "size"}),
    ChildStep: frozenset({"argv", "scenario"}),
    ExitStep: frozenset({"code", "signal"}),
}
NEEDS: dict[type, dict[str, str]] = {  # a key that would mean nothing without another
    ChildStep: {"set": "scenario"},
    Connect: {"every": "send"},
    Ask: {"then": "expect"},
}
