"""Sentences: what each event of the log says, for a person; `vigil events -o wide` shows its fields."""

from __future__ import annotations

from collections.abc import Callable
from signal import Signals
from typing import Any

from vigil.words import few, length, some

Json = dict[str, Any]
Sentence = Callable[[Json], str]
NAMED = 4


def sentence_of(kind: str, data: Json) -> str:
    """Return one event in words; of an unknown kind, its name and fields."""
    telling = SENTENCES.get(kind)
    try:
        words = None if telling is None else telling(data)
    except (KeyError, TypeError, ValueError):  # an older daemon's event has other fields
        words = None
    return words or " ".join([kind, *(f"{key}={value}" for key, value in data.items() if value not in (None, "", []))])


def _with(words: str, data: Json, key: str = "why", mark: str = ": ") -> str:
    return f"{words}{mark}{data[key]}" if data.get(key) else words


def _state(data: Json) -> str:
    hold = f", waits for {data['hold']}" if data.get("hold") else ""
    return _with(f"{data['from']} → {data['to']}{hold}", data)


def _died(data: Json) -> str:
    status = ""
    if data.get("signal") is not None:
        status = f" by {_signal(data['signal'])}"
    elif data.get("exit_code") is not None:
        status = f" with exit {data['exit_code']}"
    up = f" after {length(data['uptime_s'])}" if data.get("uptime_s") is not None else ""
    return _with(f"died{status}{up} ({data['cause']}{', charged' if data.get('charged') else ''})", data)


def _signal(number: int) -> str:
    try:
        return Signals(number).name
    except ValueError:
        return f"signal {number}"


def _server_died(data: Json) -> str:
    return _with(f"its tmux server ({data.get('server_pid') or 'pid unknown'}) died", data)


def _wake(data: Json) -> str:
    verbs = {"fresh": "begins a new conversation", "resume": "goes on with its conversation", "refused": "is not woken"}
    return _with(f"{verbs.get(data['mode'], data['mode'])} ({data['cause']}, by {data['by']})", data)


def _stalled(data: Json) -> str:
    again = "" if data.get("count", 1) == 1 else f", told {data['count']} times"
    return _with(f"is silent for {length(data['silent_s'])}: {data['verdict']} ({data['confidence']}{again})", data)


def _notified(data: Json) -> str:
    return _with(
        f"{data.get('route', 'a route')} {data.get('state', '')}: {data.get('event', 'notice')} of {_incident(data)}", data
    )


def _incident(data: Json) -> str:
    return str(data.get("kind") or data.get("incident") or "an incident")


def _summary(data: Json) -> str:
    lived = f" lived {length(data['duration_s'])}" if data.get("duration_s") is not None else " is over"
    cost = f", cost ${data['cost_usd']:.2f}" if data.get("cost_usd") else ""
    stalls = f", silent too long {some(sum(data['stalls'].values()), 'time')}" if data.get("stalls") else ""
    return f"its launch{lived}, {some(data.get('words') or 0, 'word', none='no')} heard of it{stalls}{cost}"


def _by(words: str) -> Sentence:
    return lambda data: f"{words} by {data['actor']}" + (f": {data['reason']}" if data.get("reason") else "")


SENTENCES: dict[str, Sentence] = {
    "session.declared": lambda d: f"declared by {d['actor']}: {d['agent']} in {d['runtime']}",
    "session.launched": lambda d: f"launched as pid {d['pid']}",
    "session.agent-found": lambda d: f"its agent runs as pid {d['pid']}",
    "session.without": lambda d: f"runs without {d['what']}",
    "session.state": _state,
    "session.died": _died,
    "session.summary": _summary,
    "session.hold-over": lambda d: _with(f"no longer waits for {d['hold']}" if d.get("hold") else "no longer waits", d),
    "session.wake": _wake,
    "session.ordered-again": lambda d: _with("its launch is ordered again", d),
    "session.unordered": lambda d: _with("its launch was not ordered", d),
    "session.removed": lambda _: "removed",
    "session.reset": _by("reset"),
    "session.respecified": _by("declared anew"),
    "session.released": _by("given back"),
    "session.adopted": _by("adopted"),
    "session.recovered": lambda d: _with("found again", d),
    "session.orphaned": lambda d: f"outlived its {d['what']}",
    "session.quarantined": lambda d: _with(f"its conversation {d['conversation']} is set aside", d),
    "session.doubted": lambda d: f"in doubt ({d['axis']}): {d['doubt']}",
    "session.health": lambda d: _with(f"{d['from']} → {d['to']}", d),
    "session.stalled": _stalled,
    "session.stall-over": lambda d: _with(f"no longer silent ({d['verdict']}, after {length(d['lasted_s'])})", d),
    "session.remedy": lambda d: _with(f"to be helped: {d['what']}", d),
    "session.remedied": lambda d: _with(f"{d['step']} {'helped' if d['ok'] else 'did not help'}", d),
    "session.reminded": lambda d: f"still asks, for {length(d['waits_s'])}",
    "session.reaping": lambda d: f"to be put away ({d['class']}): {few(d['evidence'], NAMED)}",
    "session.reaped": lambda d: _with(f"put away ({d['class']})", d),
    "session.spared": lambda d: _with(f"not ended ({d['verb']})", d),
    "session.sent": lambda d: _with(f"a prompt was {d['outcome']}", d),
    "message.queued": lambda d: f"a prompt of {some(d['characters'], 'character')} by {d['actor']} waits for it",
    "message.sent": lambda d: _with(f"a prompt by {d['actor']} was {d.get('outcome', 'sent')}", d),
    "server.died": _server_died,
    "server.socket-lost": lambda d: f"its tmux server's socket is gone: {d['what']}",
    "incident.opened": lambda d: _with(f"{_incident(d)} ({d['severity']})", d),
    "incident.resolved": lambda d: _with(f"{_incident(d)} is over", d, "resolution"),
    "incident.notified": _notified,
    "incident.acked": lambda d: f"{_incident(d)} is known to {d['actor']}",
    "incident.escalated": lambda d: _with(f"{_incident(d)} is urgent now", d),
    "role.forgotten": lambda d: f"{d['role']} is forgotten, by {d['actor']}",
    "shift.asked": lambda d: f"a shift of {few(d['roles'], NAMED)} asked for by {d['actor']}",
    "shift.begun": lambda d: f"{d['role']}: the shift begins, {few(d['old'], NAMED)} to be replaced",
    "shift.ready": lambda d: f"{d['role']}: {few(d['new'], NAMED)} ready",
    "shift.done": lambda d: _with(f"{d['role']}: the shift is done", d),
    "shift.given-up": lambda d: _with(f"{d['role']}: the shift was given up", d),
    "daemon.started": lambda d: f"the daemon started as pid {d['pid']}" if d.get("pid") else "the daemon started",
    "daemon.socket-lost": lambda d: f"the daemon's socket {d['socket']} was gone and is made anew",
    "daemon.gap": lambda d: f"nobody watched for {length(d['lasted_s'])}",
    "keeper.started": lambda d: f"a keeper started as pid {d['pid']}",
    "keeper.lost": lambda d: f"the keeper (pid {d['pid']}) is gone",
    "keeper.wedged": lambda d: _with(f"the keeper (pid {d['pid']}) does not answer", d),
    "keeper.answers": lambda d: f"the keeper (pid {d['pid']}) answers again",
    "keeper.unreachable": lambda d: _with(f"the keeper (pid {d['pid']}) cannot be reached", d),
    "keeper.refused": lambda d: _with("the keeper refused", d),
    "config.refused": lambda d: _with("the configuration was not taken in", d),
    "store.lost": lambda d: f"the database is gone from {d['file']}",
}
