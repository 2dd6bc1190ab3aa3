"""Liveness: what the axes of a session, read apart, say together of its life (DESIGN 4.2).

What the kernel saw end is dead at once; what only looks dead is asked again; what cannot be read is doubtful, never dead (P7).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from vigil.core.model.reading import Axis, AxisValue, Doubt, DoubtKind, Reading
from vigil.core.model.replace import replace
from vigil.core.model.session import Session


class AxisSign(StrEnum):
    """What one axis says of a session's life, in one word, and how surely."""

    ALIVE = "alive"
    DEAD = "dead"  # conclusive: by the kernel or our own record, of this very launch
    GONE = "gone"  # inferred: it looks dead
    STOPPED = "stopped"
    UNCLEAR = "unclear"  # the probe ran and could not tell
    FAILED = "failed"  # the probe failed, or passed its deadline


class Cell(StrEnum):
    LIVE = "live"
    BLIND = "live, one axis cannot be read"
    DEAD = "dead"
    CONFIRM = "confirm"
    PANE = "confirm that the pane is gone"
    ORPHANED = "orphaned"
    ORACLE = "ask what cannot lie"
    UNREADABLE = "unreadable"


# Rows are readings of the runtime, columns those of the process.
COLUMNS = (AxisSign.ALIVE, AxisSign.DEAD, AxisSign.GONE, AxisSign.STOPPED, AxisSign.UNCLEAR, AxisSign.FAILED)
ROWS = {
    AxisSign.ALIVE: (Cell.LIVE, Cell.DEAD, Cell.CONFIRM, Cell.LIVE, Cell.BLIND, Cell.BLIND),
    AxisSign.DEAD: (Cell.ORPHANED, Cell.DEAD, Cell.DEAD, Cell.ORPHANED, Cell.ORACLE, Cell.ORACLE),
    AxisSign.GONE: (Cell.PANE, Cell.DEAD, Cell.CONFIRM, Cell.PANE, Cell.ORACLE, Cell.ORACLE),
    AxisSign.UNCLEAR: (Cell.BLIND, Cell.DEAD, Cell.CONFIRM, Cell.BLIND, Cell.UNREADABLE, Cell.UNREADABLE),
    AxisSign.FAILED: (Cell.BLIND, Cell.DEAD, Cell.CONFIRM, Cell.BLIND, Cell.UNREADABLE, Cell.UNREADABLE),
}
TABLE = {(runtime, process): cell for runtime, cells in ROWS.items() for process, cell in zip(COLUMNS, cells, strict=True)}


@dataclass(frozen=True, slots=True)
class DoubtPatience:
    """How long a doubt of liveness lasts before Vigil shows it, or calls a human."""

    suspect_after_s: float
    stuck_attempts: int
    stuck_after_s: float
    samples: int = 0  # equal samples that settle it; 0: samples never do
    look_every_s: float = 5.0


EPISODE_S = 300.0  # no doubt lasts longer without a human
NEVER = 1 << 30
PATIENCE = {
    DoubtKind.WEDGED: DoubtPatience(10.0, 3, 60.0),
    DoubtKind.BLIND: DoubtPatience(60.0, NEVER, EPISODE_S),
    DoubtKind.UNREADABLE: DoubtPatience(0.0, 3, 60.0),
    DoubtKind.ORACLE: DoubtPatience(0.0, 3, 60.0),
    DoubtKind.CONFIRM: DoubtPatience(0.0, NEVER, EPISODE_S, samples=2),
    DoubtKind.PANE: DoubtPatience(0.0, NEVER, EPISODE_S, samples=2),
    DoubtKind.ORPHANED: DoubtPatience(0.0, NEVER, EPISODE_S),
}
DOUBT_OF = {
    Cell.BLIND: DoubtKind.BLIND,
    Cell.DEAD: DoubtKind.CONFIRM,  # inferred: the kernel may still say otherwise
    Cell.CONFIRM: DoubtKind.CONFIRM,
    Cell.PANE: DoubtKind.PANE,
    Cell.ORPHANED: DoubtKind.ORPHANED,
    Cell.ORACLE: DoubtKind.ORACLE,
    Cell.UNREADABLE: DoubtKind.UNREADABLE,
}
SAMPLE_S = 5.0  # two readings closer together than this are one sample
QUIET_S = 60.0  # no inferred death of a session that was active within this
HANGUP_S = 1.0  # an agent may end so long after its pane


class LifeVerdict(StrEnum):
    LIVE = "live"
    SUSPECT = "suspect"
    STUCK = "stuck"
    ORPHANED = "orphaned"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict on liveness, its doubt, and the next look (None: at the next sweep)."""

    verdict: LifeVerdict
    doubt: Doubt | None = None
    look_at: float | None = None


WELL = Judgement(LifeVerdict.LIVE)
DEAD = Judgement(LifeVerdict.DEAD)


SIGNS: dict[str, AxisSign] = {
    AxisValue.ALIVE: AxisSign.ALIVE,
    AxisValue.STOPPED: AxisSign.STOPPED,
    AxisValue.FAILED: AxisSign.FAILED,
}


def sign_of(reading: Reading | None) -> AxisSign:
    """Return what one axis says of a session's life, in one word."""
    if reading is None:
        return AxisSign.UNCLEAR
    if reading.value == AxisValue.DEAD:
        return AxisSign.DEAD if reading.conclusive else AxisSign.GONE
    return SIGNS.get(reading.value, AxisSign.UNCLEAR)


def runtime_sign(axes: Mapping[Axis, Reading]) -> AxisSign:
    """Return whether a session's pane lives: a dead server took it, a stopped root stays."""
    server = axes.get(Axis.SERVER)
    if server is not None and server.value == AxisValue.DEAD and server.conclusive:
        return AxisSign.DEAD
    sign = sign_of(axes.get(Axis.RUNTIME))
    return AxisSign.ALIVE if sign is AxisSign.STOPPED else sign


def judge(
    axes: Mapping[Axis, Reading],
    doubt: Doubt | None,
    now: float,
    active_at: float | None = None,
    breaker_until: float = 0.0,
    stuck: bool = False,
) -> Judgement:
    """Decide whether a session lives by its axes and doubt; under breakers samples settle nothing."""
    runtime, process = runtime_sign(axes), sign_of(axes.get(Axis.PROCESS))
    cell = TABLE[runtime, process]
    if cell is Cell.DEAD and process is AxisSign.DEAD:
        return DEAD
    found = _doubt_of(cell, axes)
    if found is None:
        return WELL
    if stuck and cell is Cell.ORPHANED and _hung_and_died(doubt, axes):
        return Judgement(LifeVerdict.ORPHANED, _sample(None, *found, _evidence(axes), now, stuck=False), now + SAMPLE_S)
    if stuck and doubt is not None and doubt.axis is not found[1] and _axis_is_well(doubt.axis, axes):
        doubt, stuck = None, False  # its cause is over; this is another doubt
    doubt = _sample(doubt, *found, _evidence(axes), now, stuck)
    if cell is Cell.DEAD and not stuck and now - doubt.since < EPISODE_S:
        return Judgement(LifeVerdict.DEAD, doubt, doubt.sampled_at + SAMPLE_S)
    return _weigh(doubt, axes, now, active_at, breaker_until, stuck)


def _doubt_of(cell: Cell, axes: Mapping[Axis, Reading]) -> tuple[DoubtKind, Axis] | None:
    """Return which doubt of a session's life its axes raise, and which axis ends it."""
    server = axes.get(Axis.SERVER)
    if cell is Cell.LIVE:
        if server is None or server.value == AxisValue.ALIVE:
            return None
        return (DoubtKind.WEDGED if server.value == AxisValue.WEDGED else DoubtKind.BLIND), Axis.SERVER
    if cell is Cell.BLIND and server is not None and server.value == AxisValue.WEDGED:
        return DoubtKind.WEDGED, Axis.SERVER  # the server is why the rest cannot be read
    of_runtime = cell in (Cell.PANE, Cell.ORPHANED) or (cell is Cell.BLIND and _axis_is_well(Axis.PROCESS, axes))
    return DOUBT_OF[cell], Axis.RUNTIME if of_runtime else Axis.PROCESS


def _hung_and_died(doubt: Doubt | None, axes: Mapping[Axis, Reading]) -> bool:
    """Say of a session in doubt whether its hung server died and will never answer."""
    return doubt is not None and doubt.axis is Axis.SERVER and sign_of(axes.get(Axis.SERVER)) is AxisSign.DEAD


def _axis_is_well(axis: Axis, axes: Mapping[Axis, Reading]) -> bool:
    return sign_of(axes.get(axis)) in (AxisSign.ALIVE, AxisSign.STOPPED)


def _sample(before: Doubt | None, kind: DoubtKind, axis: Axis, evidence: str, now: float, stuck: bool) -> Doubt:
    """Return a liveness doubt with one more sample; other evidence restarts the count only."""
    if before is None:
        return Doubt(kind, axis, now, 1, evidence, now)
    if stuck:  # it keeps its cause, whatever else is read
        return before if now - before.sampled_at < SAMPLE_S else replace(before, sampled_at=now)
    if (before.kind, before.evidence) != (kind, evidence):
        return Doubt(kind, axis, before.since, 1, evidence, now)
    if now - before.sampled_at < SAMPLE_S:
        return before
    return Doubt(kind, axis, before.since, before.attempts + 1, evidence, now)


def _weigh(
    doubt: Doubt, axes: Mapping[Axis, Reading], now: float, active_at: float | None, breaker_until: float, stuck: bool
) -> Judgement:
    patience = PATIENCE[doubt.kind]
    lasted_s = now - doubt.since
    look_at = doubt.sampled_at + SAMPLE_S
    quiet = active_at is None or now - active_at >= QUIET_S
    settled = 0 < patience.samples <= doubt.attempts and quiet and now >= breaker_until
    tried = doubt.attempts >= patience.stuck_attempts and lasted_s >= patience.stuck_after_s
    if stuck or tried or lasted_s >= EPISODE_S:  # also where samples say dead and the kernel does not
        return Judgement(LifeVerdict.STUCK, doubt)
    if settled and doubt.kind is DoubtKind.CONFIRM:
        return Judgement(LifeVerdict.DEAD, doubt, look_at)
    if doubt.kind is DoubtKind.ORPHANED:
        closed_at = _closed_at(axes)
        if now - closed_at < HANGUP_S:
            return Judgement(LifeVerdict.LIVE, doubt, closed_at + HANGUP_S)
    if doubt.kind is DoubtKind.ORPHANED or settled:
        return Judgement(LifeVerdict.ORPHANED, doubt, look_at)
    return Judgement(LifeVerdict.SUSPECT if lasted_s >= patience.suspect_after_s else LifeVerdict.LIVE, doubt, look_at)


def rested(doubt: Doubt, now: float) -> Doubt:
    """Return a liveness doubt for a new daemon: it did not age while none looked."""
    sampled_at = min(now, max(doubt.sampled_at, now - SAMPLE_S))
    return replace(doubt, sampled_at=sampled_at, since=doubt.since + sampled_at - doubt.sampled_at)


def _closed_at(axes: Mapping[Axis, Reading]) -> float:
    """Return since when an axis shows the pane or its server gone."""
    return min(axes[axis].since for axis in (Axis.SERVER, Axis.RUNTIME) if axis in axes and axes[axis].value == AxisValue.DEAD)


def _evidence(axes: Mapping[Axis, Reading]) -> str:
    """Return the axes' readings without times, so that equal evidence of life compares equal."""
    read = [(axis, axes[axis]) for axis in (Axis.SERVER, Axis.RUNTIME, Axis.PROCESS) if axis in axes]
    return ", ".join(
        f"{axis} {sign_of(reading)}" if axis is not Axis.SERVER else f"server {reading.value}" for axis, reading in read
    )


def leaves_its_pane(session: Session) -> bool:
    """Say whether a dead agent's pane lives on: people may look, and it closes itself."""
    launch = session.launch
    if launch is None or launch.ended_at is None or launch.closed or launch.found in (None, launch.process):
        return False
    return session.vitals.shows(Axis.RUNTIME) == AxisValue.ALIVE
