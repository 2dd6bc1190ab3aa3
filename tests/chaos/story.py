"""Story: all that is known of one session or launch, in order of time; what a violation is understood by."""

from __future__ import annotations

import time
from collections.abc import Iterator

from tests.chaos.checks.ends import reasons
from tests.chaos.history import History, Part, session_of

Line = tuple[float, str]
OF_ALL = (Part.DAEMON, Part.KEEPER)


def tell(history: History, name: str) -> Iterator[str]:
    """Yield the story of a session (by name or id) or of a launch."""
    for at, text in sorted(_lines(history, name)):
        yield f"{clock(at)} (+{at - history.began_at:7.2f} s) {text}"


def clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at)) + f"{at % 1:.3f}"[1:]


def _lines(history: History, name: str) -> Iterator[Line]:
    launches = {
        life.launch for life in history.lives if life.launch and name in (life.session, life.launch, session_of(life.launch))
    }
    launches |= {death.launch for death in history.deaths if name in (death.session, death.launch, death.session_id)}
    names = {life.session for life in history.agents() if life.launch in launches} | {name}
    for life in history.lives:
        if life.launch in launches or life.part in OF_ALL:
            yield life.began_at, f"{life.part} {life.pid} begins {life.launch}"
            if life.ended_at is not None:
                why = f": {', '.join(reasons(history, life)) or 'nothing of ours'}" if life.part is Part.AGENT else ""
                yield life.ended_at, f"{life.part} {life.pid} ended {life.launch} with {life.ending}{why}"
    for shot in history.shots:
        if shot.launch in launches or shot.part in OF_ALL:
            yield shot.at, f"we send signal {shot.number} to {shot.part} {shot.pid} {shot.launch}"
    for command in history.commands:
        if names & set(command.words) or any(one.rpartition("/")[0] in command.words for one in names if "/" in one):
            took = f"exit {command.code} after {command.took_s:.1f} s {(command.err or command.out).strip()[-160:]!r}"
            yield command.began_at, f"vigil {' '.join(command.words[:3])}: {took}"
    for death in history.deaths:
        if death.launch in launches:
            status = f"exit {death.exit_code} signal {death.signal} charged {death.charged} by {death.observed_by}"
            yield death.at, f"RECORD {death.launch} {death.cause} {status}: {'; '.join(death.evidence)}"
    for span in history.faults:
        yield span.since, f"fault: {span.what}: {span.subject}"
    for incident in history.incidents:
        if incident.session in names:
            yield incident.opened_at, f"INCIDENT {incident.kind} {incident.id} opened, over at {incident.resolved_at}"
    for notice in history.notices:
        yield notice.at, f"NOTICE {notice.event} {notice.notice}"
