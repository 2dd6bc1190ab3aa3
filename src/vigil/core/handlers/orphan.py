"""Orphans: Vigil shows an agent that outlived its pane or server, and ends it only for a replacement (P1, P2)."""

from __future__ import annotations

from vigil.core.book import DOUBTED, Book
from vigil.core.effects import SetTimer, TimerKind
from vigil.core.events import Orphaned
from vigil.core.handlers.intent import intend
from vigil.core.handlers.transition import become
from vigil.core.model.death import Cause, IntentVerb
from vigil.core.model.reading import Axis, AxisValue, Doubt, DoubtKind, Fact
from vigil.core.model.replace import replace
from vigil.core.model.session import Session, State, with_vitals
from vigil.core.rules.liveness import AxisSign, runtime_sign
from vigil.core.rules.restart import COMES_BACK

LOOK_S = 5.0  # how often Vigil looks at an orphan
CAUSES = {"server": Cause.SERVER_DIED, "pane": Cause.PANE_CLOSED}  # by what an agent outlived


def orphaned(book: Book, event: Orphaned, now: float) -> None:
    """When a living agent loses its pane or server: take it in as an orphan."""
    session = book.living(event.launch_id)
    if session is None or session.state not in DOUBTED or (session.state is State.STUCK and session.vitals.doubt is None):
        return
    facts = [Fact(Axis.RUNTIME, AxisValue.DEAD, "pidfd", event.at, conclusive=True)]
    if event.what == "server":
        facts.append(Fact(Axis.SERVER, AxisValue.DEAD, "keeper", event.at, conclusive=True))
    orphan(book, book.read_axes(session, tuple(facts)), event.what, now, event.exit_code, event.signal)


def orphan(
    book: Book, session: Session, what: str, now: float, exit_code: int | None = None, signal: int | None = None
) -> None:
    """Show an orphan, an agent without its pane; only a replacement ends it (P1, P2)."""
    words = f"orphaned: the agent outlived its {what}"
    if what == "server":
        session = tell_of_server(book, session, now, exit_code, signal)
    if session.state not in (State.SUSPECT, State.STUCK):
        book.log(now, session, "session.orphaned", what=what, exit_code=exit_code, signal=signal)
    doubt = session.vitals.doubt or Doubt(DoubtKind.ORPHANED, Axis.RUNTIME, now, 1, words, now)
    session = with_vitals(session, doubt=doubt)
    sure = runtime_sign(session.vitals.axes) is AxisSign.DEAD
    if not sure or CAUSES[what] not in COMES_BACK[session.spec.restart.when]:
        state = State.STUCK if session.state is State.STUCK else State.SUSPECT
        become(book, session, now, state, f"{words}; vigil stop {session.name} ends it", hold=None)
        book.do(SetTimer(session.id, TimerKind.LOOK, now + LOOK_S))
        return
    assert session.launch is not None
    intent = intend(book, session, IntentVerb.REPLACE, CAUSES[what], "policy", words, now)
    become(book, session, now, State.ENDING, f"{words} and is ended before its replacement", after=None, intent=intent)
    book.end_all(session.launch)


def tell_of_server(
    book: Book, session: Session, now: float, exit_code: int | None = None, signal: int | None = None
) -> Session:
    """Log once that a server ended and left its agent an orphan."""
    launch = session.launch
    if launch is None or launch.server_told:
        return session
    pid = launch.server.pid if launch.server is not None else None
    why = "its tmux server ended, and its agent lives on"
    book.log(now, session, "server.died", server_pid=pid, exit_code=exit_code, signal=signal, why=why)
    return book.keep(replace(session, launch=replace(launch, server_told=True)))  # durable together with the log line
