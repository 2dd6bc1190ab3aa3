"""Words: an event for a person, one row for each type. The caller puts the session's name before it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from vigil.core import events
from vigil.core.events import Event, Exited, TimerFired
from vigil.core.model.death import Exit
from vigil.core.model.reading import Fact
from vigil.home import parts_of

WORDS: dict[type[Event], Callable[[Any], str]] = {
    events.Declared: lambda e: f"declared by {e.actor}",
    events.Applied: lambda e: f"{e.actor} applied the manifest of {e.manifest.workspace}",
    events.ShiftAsked: lambda e: f"{e.actor} began to shift {', '.join(e.roles)}",
    events.ShiftAborted: lambda e: f"{e.actor} ended the shift of {', '.join(e.roles)}",
    events.MemoryRead: lambda e: (
        f"memory for {'many' if e.room is None else e.room} more launches{': ' if e.why else ''}{e.why}"
    ),
    events.Withdrawn: lambda _: "its declaration could not be stored and was taken back",
    events.Asked: lambda e: f"{e.actor} asked for {e.verb}",
    events.MessageQueued: lambda e: f"{e.message.actor} left it a message",
    events.MessageTyped: lambda e: "a message is being typed" if e.launch_id else "a message was not typed after all",
    events.MessageSent: lambda e: f"a message was {e.outcome}: {e.why}" if e.why else f"a message was {e.outcome}",
    events.Launched: lambda e: f"{'adopted' if e.adopted else 'launched'} as pid {e.process.pid}",
    events.Unordered: lambda e: f"its launch was not ordered: {e.why}",
    events.Interrupted: lambda _: "its launch was cut short by the daemon's end",
    events.LaunchFailed: lambda e: f"its launch failed{' (by Vigil itself)' if e.ours else ''}: {e.why}",
    Exited: lambda e: f"its agent ended: {ended(e.exit)}",
    events.Orphaned: lambda e: f"its agent outlived its {e.what}",
    events.Ended: lambda e: "all of its launch is gone" if e.ok else f"its launch could not be ended: {e.why}",
    events.Attended: lambda e: f"its launch was not ended: {e.why}",
    events.Sighted: lambda e: f"the reaper looked at {len(e.glimpses)} launches and {len(e.strays)} strays, for {e.actor}",
    events.Spared: lambda e: f"its launch was not reaped: {e.why}",
    events.StrayEnded: lambda e: f"stray {e.stray.launch_id} is {e.outcome}{': ' if e.why else ''}{e.why}",
    events.Recovered: lambda e: f"{len(e.sessions)} sessions were found that the store did not know: {e.why}",
    events.Adopted: lambda e: f"{e.actor} adopted {e.session.name}",
    events.Closed: lambda e: f"its runtime was closed and is {'gone' if e.gone else 'not gone'}",
    events.Observed: lambda e: f"read: {readings(e.facts)}",
    events.Swept: lambda e: f"a sweep found {len(e.observed)} of {e.looked_at} in doubt",
    events.Found: lambda e: f"its agent was found as pid {e.process.pid}",
    events.RuntimeEnded: lambda _: "the pane its dead agent left has closed",
    events.Hooked: lambda e: f"said: {e.hooks[-1].name if e.hooks else 'nothing'}",
    events.Heard: lambda e: f"said ({e.source}): {', '.join(dict.fromkeys(said.what for said in e.said)) or 'nothing'}",
    events.Weighed: lambda e: f"its processes have {e.memory_bytes / 1048576:.0f} MiB",
    events.WatchdogsSet: lambda _: "the configuration says something else of silence",
    events.Measured: lambda e: f"the CPU of {len(e.rates)} agents was measured",
    events.Diagnosed: lambda e: (
        f"its silence was looked into: state {e.evidence.state.value}, {len(e.evidence.children)} processes below"
    ),
    events.Stepped: lambda e: f"{e.step} {'is done' if e.ok else 'failed'}{': ' if e.why else ''}{e.why}",
    events.KeeperHeard: lambda e: e.trouble or "a keeper answers",
    events.Gap: lambda e: f"nobody looked for {e.lasted_s:.1f} s",
    events.Noted: lambda e: f"noted {e.kind}",
    events.Condition: lambda e: f"{e.kind} {'holds' if e.holds else 'is over'}: {e.why}",
    events.Notified: lambda e: f"a notice to {e.notice.route} is {e.notice.state}",
    events.Acked: lambda e: f"{e.actor} knows of {e.incident_id}",
    events.Reached: lambda e: f"route {e.route} delivers",
    events.Configured: lambda e: f"people are told by {', '.join(e.routes) or 'nobody'}, {len(e.reactions)} reactions",
    events.ReactionEnded: lambda e: f"reaction {e.number + 1} to {e.incident_id}: {e.outcome}",
    TimerFired: lambda e: f"its timer '{e.kind}' fired",
    events.Resumed: lambda _: "the daemon took over",
}


def words_of(event: Event) -> str:
    return WORDS[type(event)](event)


def name_of(event: Event, names: Mapping[str, str]) -> str | None:
    """Return an event's session name, from names by id; the id where it is unknown."""
    launch_id = event.exit.launch_id if isinstance(event, Exited) else getattr(event, "launch_id", None)
    session_id = getattr(event, "session_id", None) or (launch_id and (parts_of(launch_id) or ("",))[0])
    return names.get(session_id, session_id) if session_id else None


def ended(found: Exit) -> str:
    if not found.started:
        how = "it never came to life"
    elif found.signal is not None:
        how = f"signal {found.signal}"
    else:
        how = "nobody saw how" if found.exit_code is None else f"exit {found.exit_code}"
    server = ", with its server" if found.server_ended else ""
    return f"{how}{server} (seen by {found.observed_by})"


def readings(facts: tuple[Fact, ...]) -> str:
    return ", ".join(f"{fact.axis} {fact.value}" for fact in facts) or "nothing"
