"""Compare and kill: a tmux server looks once more and kills, or spares, in one command (DESIGN 4.5).

Between a look and a kill a user may attach, or the agent may print: so the server compares, acts, and says which it did.
An incomplete answer says nothing: unknown is never gone. A server that hung obeys as soon as it goes on: so each order
has a deadline, which the server compares with its own clock.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

from vigil.core.model.sighting import Guard
from vigil.runtimes.tmux.keyboard import Call

TAG = "@vigil_launch"
CLOCK = "@vigil_clock"
KILLED, SPARED, END = "killed", "spared", "end"
ORDER_S = 5  # the server refuses a kill that comes later than this
USE = (  # a line each: numbers first, names that users chose last; every separator prints in any locale
    "use #{session_id} #{pane_id} #{history_size} #{pid}",
    "tag #{" + TAG + "}",
)
CLIENT = "client #{client_pid} #{session_id} #{client_name}"
WINDOW = "window #{session_id} #{window_id} #{window_activity}"


@dataclass(frozen=True, slots=True)
class AttachedClient:
    """A client that is attached."""

    pid: int
    session: str
    name: str


@dataclass(frozen=True, slots=True)
class Use:
    """What a server says of how a session is used."""

    target: str  # its id
    pane: str
    history: int
    server_pid: int
    tag: str
    clients: tuple[AttachedClient, ...]
    printed: int  # when any window printed last, in seconds of the wall clock
    attached: str  # the server's own list of attached clients
    windows: tuple[str, ...]


async def read_use(call: Call, pane: str, whole_server: bool) -> Use | None:
    """Return how a session is used; None if the server's answer is missing or incomplete."""
    everywhere = ["-a"] if whole_server else ["-t", pane]
    words = ["display-message", "-p", "-t", pane, "\n".join(USE)]
    words += [";", "display-message", "-p", "-t", pane, f"attached {_attached(whole_server)}"]
    words += [";", "list-windows", *everywhere, "-F", WINDOW, ";", "list-clients", "-F", CLIENT]
    found = await call(*words, ";", "display-message", "-p", END)
    return None if found is None else parse_use(found.decode("utf-8", "replace"), pane, whole_server)


def parse_use(text: str, pane: str, whole_server: bool) -> Use | None:
    """Return what an answer says; None unless it is complete, of this pane, and makes sense."""
    lines = text.splitlines()
    if not lines or lines[-1] != END:
        return None
    head = next((found for line in lines if (found := re.fullmatch(r"use (\$\d+) (%\d+) (\d+) (\d+)", line))), None)
    tag = next((line.partition(" ")[2] for line in lines if line.startswith("tag ")), None)
    attached = next((line.partition(" ")[2] for line in lines if re.match(r"attached( |$)", line)), None)
    windows = [found for line in lines if (found := re.fullmatch(r"window (\$\d+) (@\d+) (\d+)", line))]
    clients = [found for line in lines if (found := re.fullmatch(r"client (\d+) (\$\d+) (.*)", line))]
    odd = [line for line in lines if line.startswith(("window ", "client "))]
    if head is None or head[2] != pane or tag is None or attached is None or len(odd) != len(windows) + len(clients):
        return None
    here = [window for window in windows if whole_server or window[1] == head[1]]
    if not here or any(window[3] == "0" for window in here):
        return None
    return Use(
        head[1],
        head[2],
        int(head[3]),
        int(head[4]),
        tag,
        tuple(AttachedClient(int(one[1]), one[2], one[3]) for one in clients if whole_server or one[2] == head[1]),
        max(int(window[3]) for window in here),
        attached,
        tuple(window[2] for window in here),
    )


def _attached(whole_server: bool) -> str:
    """Return the format that lists attached clients: of our whole server, or of one session on another's."""
    return "#{S:#{session_attached_list}/}" if whole_server else "#{session_attached_list}/#{session_group_attached_list}/"


async def compare_and_kill(call: Call, pane: str, tag: str, guard: Guard, whole_server: bool) -> tuple[str, str]:
    """Kill a session if all is as it was; return `killed`, `spared` with what differs, or `unknown`."""
    until = int(time.time()) + ORDER_S
    found = await call(*order(pane, tag, guard, whole_server, until))
    return parse_answer(found)


def order(pane: str, tag: str, guard: Guard, whole_server: bool, until: int) -> list[str]:
    """Return the one command that compares and kills."""
    target = guard.target
    act = f"display-message -p {KILLED} ; kill-session -t '{target}'"
    told = f"{SPARED} tag #{{{TAG}}} session #{{session_id}} clock #{{T:{CLOCK}}} until {until}"
    told += f" printed {_newest(whole_server)}/ attached {_attached(whole_server)}"
    spare = f"display-message -p -t '{pane}' '{told}'"
    # Only in the session's own options: other sessions on its server do not see it.
    clock = ["set-option", "-t", target, CLOCK, "%s", ";"]
    return [*clock, "if-shell", "-F", "-t", pane, condition(tag, guard, whole_server, until), act, spare]


def condition(tag: str, guard: Guard, whole_server: bool, until: int) -> str:
    """Return what the server compares: its owner, the clock, the attached clients, and that nothing was printed."""
    tests = [
        _equal(f"#{{{TAG}}}", tag),
        _equal("#{session_id}", guard.target),
        f"#{{e|<:#{{T:{CLOCK}}},{until}}}",
        _equal(_attached(whole_server), guard.clients),
    ]
    if guard.history is not None:
        tests.append(_equal("#{history_size}", str(guard.history)))
    else:
        tests.append(_equal(_each_window(f"#{{?#{{e|>=:#{{window_activity}},{guard.cutoff}}},1,}}", whole_server), ""))
    joined = tests[0]
    for test in tests[1:]:
        joined = f"#{{&&:{joined},{test}}}"
    return joined


def _equal(one: str, other: str) -> str:
    return f"#{{==:{one},{other.replace('#', '##').replace(',', '#,').replace('}', '#}')}}}"


def _each_window(what: str, whole_server: bool) -> str:
    return f"#{{S:#{{W:{what}}}}}" if whole_server else f"#{{W:{what}}}"


def _newest(whole_server: bool) -> str:
    return _each_window("#{window_activity}.", whole_server)


def parse_answer(found: bytes | None) -> tuple[str, str]:
    """Return what a server did, and what it said of it; any other answer is unknown."""
    said = found.decode("utf-8", "replace").strip() if found is not None else ""
    if said == KILLED:
        return KILLED, ""
    if said.startswith(f"{SPARED} "):
        return SPARED, said.removeprefix(f"{SPARED} ")
    return "unknown", "its tmux server gave no answer" if not said else f"its tmux server said: {said[:80]}"


def why_spared(said: str, tag: str, guard: Guard) -> str:
    """Return in words what had changed, from the server's own answer."""
    found = re.fullmatch(r"tag (.*) session (.*) clock (\d*) until (\d+) printed ([\d.]*)/ attached (.*)", said)
    if found is None:
        return f"its tmux server spared it: {said[:120]}"
    if found[1] != tag or found[2] != guard.target:
        return "its tmux server holds another session by now, or none"
    if not found[3] or int(found[3]) >= int(found[4]):
        return "its tmux server answered too late"
    if found[6] != guard.clients:
        return "a person attached in the moment of the kill"
    if any(int(second) >= guard.cutoff for second in found[5].split(".") if second):
        return "it printed in the moment of the kill"
    return f"its tmux server spared it: {said[:120]}"


async def kill_tagged(call: Call, target: str, tag: str) -> bool:
    """Kill a session with our tag, attached or not, as the operator asked; say whether it worked."""
    test = f"#{{&&:{_equal('#{' + TAG + '}', tag)},{_equal('#{session_id}', target)}}}"
    act = f"display-message -p {KILLED} ; kill-session -t '{target}'"
    said = await call("if-shell", "-F", "-t", f"{target}:", test, act, f"display-message -p {SPARED}")
    return said is not None and said.strip() == KILLED.encode()


async def tag_session(call: Call, target: str, tag: str) -> bool:
    """Mark a session as watched by us; say whether the mark is there."""
    said = await call("set-option", "-t", target, TAG, tag, ";", "display-message", "-p", "-t", f"{target}:", f"#{{{TAG}}}")
    return said is not None and said.decode("ascii", "replace").strip() == tag


async def untag_session(call: Call, target: str, pane: str, tag: str) -> bool:
    """Remove our marks from a session, if they are ours; say whether none is left."""
    unset = f"set-option -u -t '{target}' {TAG} ; set-option -u -t '{target}' {CLOCK} ; display-message -p {END}"
    test = f"#{{&&:{_equal('#{' + TAG + '}', tag)},{_equal('#{session_id}', target)}}}"
    said = await call("if-shell", "-F", "-t", pane, test, unset, f"display-message -p {SPARED}")
    return said is not None and said.strip() == END.encode()
