"""What daemon and keeper say to each other: every message once, for both ends; `wire` writes and reads them.

Either end may be older: a field it does not send needs a default, one that it demands must have none. Standard library only."""
# Without postponed annotations: `wire` checks every field by its annotation.

from typing import NamedTuple

VERSION = 5  # the daemon asks a keeper of a lower version to exec itself anew

Process = tuple[int, int]  # pid, start ticks
ORDER = "launch.json"  # in a launch's folder; the daemon takes it away from an order that it gives up
BEGAN = "began"  # beside it, made just before its agent begins


# What the daemon asks


class PingRequest(NamedTuple):
    """Say which keeper you are."""


class SpawnRequest(NamedTuple):
    """Launch what the folder's launch.json says."""

    launch: str
    folder: str


class LaunchOrder(NamedTuple):
    """The keeper's part of a launch.json."""

    runtime: str
    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: str
    stdin: str | None  # `fifo` where the agent reads prompts
    umask: int = 0o022
    mark: int | None = None  # inherited by all that descends from it
    cgroup: str = ""  # a folder to be born in
    limited: bool = False  # not without it
    sandboxed: bool = False  # headless: the program is bwrap, the agent is below it


class Watch(NamedTuple):
    """One process of one launch."""

    launch: str
    folder: str
    role: str
    pid: int
    start_ticks: int


class WatchRequest(NamedTuple):
    """Watch these processes too."""

    watches: tuple[Watch, ...]


class ForgetRequest(NamedTuple):
    """Stop watching a launch; write nothing into a folder that is being removed."""

    launch: str
    removing: bool = False


class CloseInputRequest(NamedTuple):
    """Let a headless agent read the end of its input."""

    launch: str


class QuitRequest(NamedTuple):
    """End."""


class UpgradeRequest(NamedTuple):
    """Exec the keeper that is installed now."""


# What the keeper answers


class PingAnswer(NamedTuple):
    """Which keeper it is, and how many processes it watches."""

    version: int
    pid: int
    watching: int


class Born(NamedTuple):
    """The processes of a new launch; its born.json says the same."""

    agent: Process
    root: Process | None = None
    server: Process | None = None
    pane: str | None = None


class ForgetAnswer(NamedTuple):
    """The peak memory of the launch's largest process, if the keeper knows."""

    peak_kb: int | None


class DoneAnswer(NamedTuple):
    """The keeper did it."""


class RefusedAnswer(NamedTuple):
    """The keeper did not do it, and why; `short` if the host lacked processes, descriptors, memory or room."""

    why: str
    short: bool = False


# What the keeper tells unasked


class KillFacts(NamedTuple):
    """What the kernel's counters and its log say of a process that ended by SIGKILL."""

    named: bool | None  # the log names the process; None: the keeper may not read it
    line: str | None
    cgroup: str | None
    cgroup_kills: int | None
    host_kills: int | None
    elsewhere: int | None = None  # of the host's, those in other launches' cgroups; None: not counted


class ExitWord(NamedTuple):
    """A process of a launch ended; its record on disk says the same."""

    launch: str
    role: str
    pid: int
    start_ticks: int
    status: int | None
    source: str
    at: float
    boot_s: float | None  # of a clock that does not jump
    core: bool = False
    oom: KillFacts | None = None
    unrecorded: str = ""  # why the disk did not take the record


class SnapshotWord(NamedTuple):
    """The keeper has written a snapshot after an end in a launch."""

    launch: str


# What a keeper hands to the one that it becomes


class Handover(NamedTuple):
    """What it watches, and the inputs that it holds open: descriptors, by launch."""

    watches: tuple[Watch, ...]
    inputs: dict[str, int] = {}  # noqa: RUF012


Request = PingRequest | SpawnRequest | WatchRequest | ForgetRequest | CloseInputRequest | QuitRequest | UpgradeRequest
Answer = PingAnswer | Born | ForgetAnswer | DoneAnswer | RefusedAnswer
Word = ExitWord | SnapshotWord

EXCHANGES: tuple[tuple[str, type[Request], type[Answer]], ...] = (  # a name, its request, the answer if it is not refused
    ("ping", PingRequest, PingAnswer),
    ("spawn", SpawnRequest, Born),
    ("watch", WatchRequest, DoneAnswer),
    ("forget", ForgetRequest, ForgetAnswer),
    ("close-input", CloseInputRequest, DoneAnswer),
    ("quit", QuitRequest, DoneAnswer),
    ("upgrade", UpgradeRequest, DoneAnswer),
)
REQUESTS = {name: request for name, request, _ in EXCHANGES}
ANSWERS = {request: answer for _, request, answer in EXCHANGES}
WORDS: dict[str, type[Word]] = {"exit": ExitWord, "snapshot": SnapshotWord}
NAMES: dict[type, str] = {kind: name for name, kind in (*REQUESTS.items(), *WORDS.items())}
