"""Words: an event for a person, one row for each type. The caller puts the session's name before it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from vigil.core.events import (
    Acked,
    Adopted,
    Applied,
    Asked,
    Attended,
    Closed,
    Condition,
    Configured,
    Declared,
    Diagnosed,
    Ended,
    Event,
    Exited,
    Found,
    Gap,
    Heard,
    Hooked,
    Interrupted,
    Launched,
    LaunchFailed,
    Measured,
    MemoryRead,
    MessageQueued,
    MessageSent,
    MessageTyped,
    Noted,
    Notified,
    Observed,
    Orphaned,
    Reached,
    ReactionEnded,
    Recovered,
    Resumed,
    RuntimeEnded,
    ShiftAborted,
    ShiftAsked,
    Sighted,
    Spared,
    Stepped,
    StrayEnded,
    Swept,
    TimerFired,
    WatchdogsSet,
    Weighed,
    Withdrawn,
)
from vigil.core.model.death import Exit
from vigil.core.model.reading import Fact
from vigil.home import parts_of

WORDS: dict[type[Event], Callable[[Any], str]] = {
    Declared: lambda e: f"declared by {e.actor}",
    Applied: lambda e: f"{e.actor} applied the manifest of {e.manifest.workspace}",
    ShiftAsked: lambda e: f"{e.actor} began to shift {', '.join(e.roles)}",
    ShiftAborted: lambda e: f"{e.actor} ended the shift of {', '.join(e.roles)}",
    MemoryRead: lambda e: f"memory for {'many' if e.room is None else e.room} more launches{': ' if e.why else ''}{e.why}",
    Withdrawn: lambda _: "its declaration could not be stored and was taken back",
    Asked: lambda e: f"{e.actor} asked for {e.verb}",
    MessageQueued: lambda e: f"{e.message.actor} left it a message",
    MessageTyped: lambda e: "a message is being typed" if e.launch_id else "a message was not typed after all",
    MessageSent: lambda e: f"a message was {e.outcome}: {e.why}" if e.why else f"a message was {e.outcome}",
    Launched: lambda e: f"{'adopted' if e.adopted else 'launched'} as pid {e.process.pid}",
    Interrupted: lambda _: "its launch was cut short by the daemon's end",
    LaunchFailed: lambda e: f"its launch failed: {e.why}",
    Exited: lambda e: f"its agent ended: {ended(e.exit)}",
    Orphaned: lambda e: f"its agent outlived its {e.what}",
    Ended: lambda e: "all of its launch is gone" if e.ok else f"its launch could not be ended: {e.why}",
    Attended: lambda e: f"its launch was not ended: {e.why}",
    Sighted: lambda e: f"the reaper looked at {len(e.glimpses)} launches and {len(e.strays)} strays, for {e.actor}",
    Spared: lambda e: f"its launch was not reaped: {e.why}",
    StrayEnded: lambda e: f"stray {e.stray.launch_id} is {e.outcome}{': ' if e.why else ''}{e.why}",
    Recovered: lambda e: f"{len(e.sessions)} sessions were found that the store did not know: {e.why}",
    Adopted: lambda e: f"{e.actor} adopted {e.session.name}",
    Closed: lambda e: f"its runtime was closed and is {'gone' if e.gone else 'not gone'}",
    Observed: lambda e: f"read: {readings(e.facts)}",
    Swept: lambda e: f"a sweep found {len(e.observed)} of {e.looked_at} in doubt",
    Found: lambda e: f"its agent was found as pid {e.process.pid}",
    RuntimeEnded: lambda _: "the pane its dead agent left has closed",
    Hooked: lambda e: f"said: {e.hooks[-1].name if e.hooks else 'nothing'}",
    Heard: lambda e: f"said ({e.source}): {', '.join(dict.fromkeys(said.what for said in e.said)) or 'nothing'}",
    Weighed: lambda e: f"its processes have {e.memory_bytes / 1048576:.0f} MiB",
    WatchdogsSet: lambda _: "the configuration says something else of silence",
    Measured: lambda e: f"the CPU of {len(e.rates)} agents was measured",
    Diagnosed: lambda e: (
        f"its silence was looked into: state {e.evidence.state.value}, {len(e.evidence.children)} processes below"
    ),
    Stepped: lambda e: f"{e.step} {'is done' if e.ok else 'failed'}{': ' if e.why else ''}{e.why}",
    Gap: lambda e: f"nobody looked for {e.lasted_s:.1f} s",
    Noted: lambda e: f"noted {e.kind}",
    Condition: lambda e: f"{e.kind} {'holds' if e.holds else 'is over'}: {e.why}",
    Notified: lambda e: f"a notice to {e.notice.route} is {e.notice.state}",
    Acked: lambda e: f"{e.actor} knows of {e.incident_id}",
    Reached: lambda e: f"route {e.route} delivers",
    Configured: lambda e: f"people are told by {', '.join(e.routes) or 'nobody'}, {len(e.reactions)} reactions",
    ReactionEnded: lambda e: f"reaction {e.number + 1} to {e.incident_id}: {e.outcome}",
    TimerFired: lambda e: f"its timer '{e.kind}' fired",
    Resumed: lambda _: "the daemon took over",
}


def words_of(event: Event) -> str:
    """Return what happened, in a few words."""
    return WORDS[type(event)](event)


def name_of(event: Event, names: Mapping[str, str]) -> str | None:
    """Return an event's session name, from names by id; the id where it is unknown."""
    launch_id = event.exit.launch_id if isinstance(event, Exited) else getattr(event, "launch_id", None)
    session_id = getattr(event, "session_id", None) or (launch_id and (parts_of(launch_id) or ("",))[0])
    return names.get(session_id, session_id) if session_id else None


def ended(found: Exit) -> str:
    """Return how an agent ended."""
    if not found.started:
        how = "it never came to life"
    elif found.signal is not None:
        how = f"signal {found.signal}"
    else:
        how = "nobody saw how" if found.exit_code is None else f"exit {found.exit_code}"
    server = ", with its server" if found.server_ended else ""
    return f"{how}{server} (seen by {found.observed_by})"


def readings(facts: tuple[Fact, ...]) -> str:
    """Return what the axes showed."""
    return ", ".join(f"{fact.axis} {fact.value}" for fact in facts) or "nothing"
