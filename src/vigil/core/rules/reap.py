"""Reap: the reaper keeps, parks or ends what runs; the first row that holds decides (DESIGN 4.5).

Pure, and a table. Rows that keep stand first, so no later row outranks a human, progress, or what is unknown (P2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from vigil.core.model.replace import replace
from vigil.core.model.session import Session
from vigil.core.model.sighting import Glimpse, ReapAction, ReapClass, ReapPolicy, ReapVerdict, Sighting, Stray
from vigil.core.model.speech import Activity
from vigil.core.model.team import Role
from vigil.core.rules.sighting import last_work, sight, unreadable_stray
from vigil.words import some, span

BUSY_CPU = 0.1  # cores: an idle terminal program takes less, also one that draws a spinner
BUSY = {  # activities that keep a session, in words; a question stays until a person answered
    Activity.STARTING: "it starts",
    Activity.WORKING: "a turn is open",
    Activity.THINKING: "the model was asked",
    Activity.TOOL: "a tool runs",
    Activity.WAITING_HUMAN: "it waits for a person",
    Activity.WAITING_TIMER: "it waits for a moment it named",
    Activity.THROTTLED: "it tries the model again",
}
MASS = 2  # so many, and over half, are rather our mistake (DESIGN 4.5); from two on: a lone orphan is always over half


class ReapRule(NamedTuple):
    kind: ReapClass
    action: ReapAction
    holds: Callable[[Sighting], bool]
    why: Callable[[Sighting], str]


def recent_s(s: Sighting) -> float:
    """Return how long after its last work the reaper's table counts a session as busy."""
    return min(s.grace_s, s.idle_ttl_s) if s.idle_ttl_s > 0 else s.grace_s


def _busy(s: Sighting) -> str:
    """Return what shows the reaper's table that a session works; empty if nothing does."""
    if not s.runs:
        return ""
    if s.activity in BUSY:
        return BUSY[Activity(s.activity)]
    if s.open:
        return s.open
    if s.cpu is not None and s.cpu >= BUSY_CPU:
        return f"its processes use {s.cpu:.2f} cores"
    return f"{s.last_work}" if s.quiet_s < recent_s(s) else ""


RULES = (  # The first row that holds decides.
    ReapRule(ReapClass.ATTACHED, ReapAction.KEEP, lambda s: s.human_clients > 0, lambda s: _people(s.human_clients)),
    ReapRule(ReapClass.BUSY, ReapAction.KEEP, lambda s: _busy(s) != "", _busy),
    ReapRule(ReapClass.UNKNOWN, ReapAction.KEEP, lambda s: s.unreadable != "", lambda s: s.unreadable),
    ReapRule(
        ReapClass.ORPHAN,
        ReapAction.KILL,
        lambda s: s.orphan != "" and s.orphan_s >= s.grace_s and not s.kept,
        lambda s: f"{s.orphan}, for {span(s.orphan_s)}",
    ),
    ReapRule(ReapClass.ORPHAN, ReapAction.KEEP, lambda s: s.orphan != "", lambda s: f"{s.orphan}; {s.kept or _in_grace(s)}"),
    ReapRule(
        ReapClass.ARCHIVED,
        ReapAction.KILL,
        lambda s: s.archived and s.runs and s.quiet_s >= s.grace_s,
        lambda s: f"it is archived and still runs; {s.last_work}",
    ),
    ReapRule(
        ReapClass.ARCHIVED,
        ReapAction.KEEP,
        lambda s: s.archived,
        lambda s: f"it is archived; {_in_grace(s) if s.runs else 'ended'}",
    ),
    ReapRule(ReapClass.IDLE, ReapAction.PARK, lambda s: is_idle(s) and s.quiet_s >= s.idle_ttl_s, lambda s: s.last_work),
    ReapRule(ReapClass.KEEP, ReapAction.KEEP, lambda _s: True, lambda s: s.kept or _until_idle(s)),
)


def is_idle(s: Sighting) -> bool:
    """Say whether the reaper's table may ever put a session to sleep."""
    return s.runs and s.idle_ttl_s > 0 and not s.kept


def classify(name: str, launch_id: str, s: Sighting) -> ReapVerdict:
    """Return the reaper's verdict on a sighting: that of the first row that holds."""
    rule = next(rule for rule in RULES if rule.holds(s))
    why = rule.why(s)
    return ReapVerdict(name, launch_id, rule.kind, rule.action, (why, *(fact for fact in _facts(s) if fact not in why)))


def _facts(s: Sighting) -> list[str]:
    """Return the facts for the reaper's report, beside the one that decided."""
    if not s.runs:
        return []
    facts = [] if s.unreadable else [_people(s.human_clients)]
    facts += [s.last_work] if s.last_work else []
    if s.activity != Activity.UNKNOWN:
        facts.append(f"its agent says: {s.activity}")
    if s.cpu is not None:
        facts.append(f"{s.cpu:.2f} cores in use")
    return facts


def _people(count: int) -> str:
    if not count:
        return "nobody is attached"
    return "a person is attached" if count == 1 else f"{count} people are attached"


def _in_grace(s: Sighting) -> str:
    left_s = s.grace_s - (s.orphan_s if s.orphan else s.quiet_s)
    return f"ended in {span(max(left_s, 0.0))} if it stays so"


def _until_idle(s: Sighting) -> str:
    if s.idle_ttl_s <= 0:
        return "it is never put to sleep (idle_ttl is 0)"
    return f"{s.last_work}; put to sleep after {span(s.idle_ttl_s)}"


def judge(
    sessions: Iterable[Session],
    roles: Mapping[str, Role],
    glimpses: Iterable[Glimpse],
    strays: Iterable[Stray],
    policy: ReapPolicy,
    now: float,
) -> tuple[list[ReapVerdict], list[tuple[ReapVerdict, Stray]], str]:
    """Decide by the reaper's table on every session and stray, and why orphans are kept."""
    seen, strays = {glimpse.launch_id: glimpse for glimpse in glimpses}, tuple(strays)
    sightings = [
        (session, sight(session, seen.get(session.launch.id) if session.launch else None, policy, roles, now))
        for session in sorted(sessions, key=lambda session: session.name)
    ]
    why = _why_kept(sightings, strays)
    verdicts = [_classify(session, sighting, why) for session, sighting in sightings]
    if policy.pressure:
        verdicts = _relieve(verdicts, sightings, policy)
    return verdicts, [(_classify_stray(stray, policy, why), stray) for stray in strays], why


def _why_kept(sightings: list[tuple[Session, Sighting]], strays: tuple[Stray, ...]) -> str:
    """Return why the reaper ends no orphan: one predates the store, or most are orphans."""
    strays = tuple(stray for stray in strays if not stray.unproven)
    older = [stray for stray in strays if stray.older_than_store]
    homeless = sum(1 for _, sighting in sightings if sighting.runs and sighting.orphan)
    orphans = homeless + len(strays)
    all_of_them = sum(1 for _, sighting in sightings if sighting.runs) + len(strays)
    if older:
        return f"{some(len(older), 'launch', 'launches')} the store does not know, older than the store itself"
    if orphans >= MASS and 2 * orphans > all_of_them:
        return f"{orphans} of {all_of_them} would be orphans"
    return ""


def _classify(session: Session, sighting: Sighting, why_kept: str) -> ReapVerdict:
    launch_id = session.launch.id if session.launch is not None else ""
    if why_kept and sighting.orphan and sighting.runs:
        sighting = replace(sighting, kept=f"kept: {why_kept}")
    return classify(session.name, launch_id, sighting)


def _classify_stray(stray: Stray, policy: ReapPolicy, why_kept: str) -> ReapVerdict:
    glimpse = stray.glimpse
    printed_at = glimpse.printed_at if glimpse is not None else None
    worked = {} if glimpse is None or printed_at is None else {"screen": printed_at}
    quiet_s, words = last_work(worked, glimpse.at if glimpse is not None else 0.0)
    pids = ", ".join(str(process.pid) for process in stray.all_processes[:5])
    what = f"launch {stray.launch_id} belongs to no session (pid {pids})"
    unproven = f"an agent left it to the keeper (pid {pids}), and which one cannot be told" if stray.unproven else ""
    sighting = Sighting(
        human_clients=(glimpse.clients or 0) if glimpse is not None else 0,
        cpu=glimpse.cpu if glimpse is not None else None,
        unreadable=unproven or unreadable_stray(glimpse),
        orphan=what,
        orphan_s=stray.age_s,
        quiet_s=quiet_s if worked else stray.age_s,
        last_work=words if worked else "",
        idle_ttl_s=policy.grace_s,
        grace_s=policy.grace_s,
        kept=f"kept: {why_kept}" if why_kept else "",
    )
    return classify(stray.name or stray.launch_id, stray.launch_id, sighting)


def _relieve(verdicts: list[ReapVerdict], sightings: list[tuple[Session, Sighting]], policy: ReapPolicy) -> list[ReapVerdict]:
    """Change verdicts so that the reaper parks the longest idle session while memory is short."""
    if any(verdict.action is ReapAction.PARK for verdict in verdicts):
        return verdicts
    able = [
        (sighting.quiet_s, number)
        for number, ((_, sighting), verdict) in enumerate(zip(sightings, verdicts, strict=True))
        if verdict.kind is ReapClass.KEEP and sighting.runs and not sighting.kept and sighting.quiet_s >= recent_s(sighting)
        if sighting.idle_ttl_s > 0
    ]
    if not able:
        return verdicts
    quiet_s, number = max(able)
    before = verdicts[number]
    words = f"memory is short ({policy.pressure}), and it is the longest idle ({span(quiet_s)})"
    verdicts[number] = replace(before, kind=ReapClass.IDLE, action=ReapAction.PARK, evidence=(words, *before.evidence))
    return verdicts
