"""The acts of a script, as frozen values. A bare value stands for the first field: `wait = 2` is `wait = { seconds = 2 }`."""

from dataclasses import dataclass

from vigil.fake_agent import values as v


@dataclass(frozen=True)
class Act:
    """What a script has its agent do."""


@dataclass(frozen=True)
class Print(Act):
    """Write a line: text, or `size` bytes of filler; or raw bytes (`hex`), to which no newline is added."""

    text: v.MaybeText = None
    hex: v.MaybeBytes = None
    size: v.MaybeWhole = None
    stderr: v.Flag = False


@dataclass(frozen=True)
class Event(Act):
    """Write the table as one line of JSON on stdout."""

    payload: v.Table


@dataclass(frozen=True)
class HookStep(Act):
    """Put the table into the spool as a hook would; nothing without VIGIL_SPOOL."""

    payload: v.Table


@dataclass(frozen=True)
class Append(Act):
    """Add a line to a file, and make its folder where that is missing."""

    path: v.Text
    text: v.Text


@dataclass(frozen=True)
class Wait(Act):
    """Do nothing."""

    seconds: v.Seconds


@dataclass(frozen=True)
class Burn(Act):
    """Use CPU, all the time or this fraction of it."""

    seconds: v.Seconds
    fraction: v.Fraction = 1.0


@dataclass(frozen=True)
class MemoryStep(Act):
    """Take memory, touch it, and hold it."""

    mb: v.Whole


@dataclass(frozen=True)
class Listen(Act):
    """Listen on free ports of 127.0.0.1, and hold the sockets."""

    count: v.Whole = 1


@dataclass(frozen=True)
class Connect(Act):
    """Connect to a port of 127.0.0.1 (to the own listener, if none is given) and hold it; `send` goes out every so often."""

    port: v.MaybePort = None
    send: v.MaybeText = None
    every: v.Seconds = 1.0


@dataclass(frozen=True)
class ChildStep(Act):
    """Start children: a command, or a scenario. Without `wait` they are left behind and never waited for."""

    argv: v.MaybeArgv = None
    scenario: v.MaybeText = None
    set: v.MaybeSets = None
    count: v.Whole = 1
    new_session: v.Flag = False
    ignore_hup: v.Flag = False
    wait: v.Flag = False


@dataclass(frozen=True)
class Ignore(Act):
    """Ignore these signals from here on."""

    signals: v.Catchables


@dataclass(frozen=True)
class Handle(Act):
    """Answer this signal by leaving with `exit`, `after` seconds later."""

    signal: v.Catchable
    exit: v.Code = 0
    after: v.Seconds = 0.0


@dataclass(frozen=True)
class Ask(Act):
    """Write the prompt and read a line. If it is `expect`, leave with `then`; else go on. At end of input wait for ever."""

    prompt: v.Text
    expect: v.MaybeText = None
    then: v.Code = 0
    echo: v.Flag = False
    at_eof: v.MaybeCode = None


@dataclass(frozen=True)
class ExitStep(Act):
    """Leave with this code, or by this signal."""

    code: v.MaybeCode = None
    signal: v.MaybeSignal = None


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
