"""Reactions: Vigil records, then does what the configuration wants about an incident; a refusal uses up budget too."""

from __future__ import annotations

from vigil.core.book import Book
from vigil.core.effects import React, SetTimer, Tell, TimerKind
from vigil.core.events import Asked, Configured, ReactionEnded
from vigil.core.handlers.incident import log, plan_reaction, resolve
from vigil.core.handlers.intent import REACTION
from vigil.core.handlers.operator import VERBS
from vigil.core.model.death import IntentVerb
from vigil.core.model.incident import PROMPT, RUN, Incident, Reacted, Reaction, ReactionOutcome, Severity
from vigil.core.model.replace import replace
from vigil.core.rules.reaction import LOOK_AGAIN_S, is_early, is_used_up, react_at, reaction_to, why_not


def configured(book: Book, event: Configured, now: float) -> None:
    """Take in the configured routes and reactions; the incident of a removed route resolves."""
    book.routes, book.reactions = event.routes, event.reactions
    for key, incident in list(book.incidents.items()):
        if incident.about and not set(incident.about) & set(event.routes):
            resolve(book, key, "there is no such route any more", now, final=True)
        else:
            plan_reaction(book, incident, now)


def react(book: Book, key: str, now: float) -> None:
    """When a reaction's timer fires: react to its incident, unless that is early or settled."""
    incident = book.incidents.get(key)
    reaction = None if incident is None else reaction_to(incident, book.reactions)
    if incident is None or reaction is None or incident.acked_at is not None or incident.escalated_at is not None:
        return
    if now < react_at(incident, reaction):
        plan_reaction(book, incident, now)
    elif is_used_up(incident, reaction):
        _escalate(book, incident, now)
    elif is_early(incident, book.sessions.get(incident.session_id or ""), reaction.do, now):
        book.do(SetTimer(key, TimerKind.REACT, now + LOOK_AGAIN_S))
    else:
        _carry_out(book, incident, reaction, now)


def _carry_out(book: Book, incident: Incident, reaction: Reaction, now: float) -> None:
    session = book.sessions.get(incident.session_id or "")
    why = why_not(session, reaction.do)
    began = ReactionOutcome.BEGUN if reaction.do in (PROMPT, RUN) else ReactionOutcome.DONE
    outcome = began if why is None else ReactionOutcome.REFUSED
    number = len(incident.reactions)
    incident = replace(incident, reactions=(*incident.reactions, Reacted(now, reaction.do, outcome, why or "")))
    book.keep_incident(incident)
    _log(book, incident, number, now)
    plan_reaction(book, incident, now)
    if outcome is ReactionOutcome.BEGUN:
        book.do(React(incident, number, reaction.do, reaction.text, reaction.command))
    elif outcome is ReactionOutcome.DONE:
        assert session is not None
        asked = Asked(IntentVerb(reaction.do), session.id, REACTION, f"incident {incident.id}")
        book.log(now, session, f"session.asked-{asked.verb}", actor=asked.actor, reason=asked.reason)
        VERBS[asked.verb](book, session, asked, now)


def ended(book: Book, event: ReactionEnded, now: float) -> None:
    """Record what became of a reaction."""
    incident = book.find_incident(event.incident_id)
    if incident is None or not 0 <= event.number < len(incident.reactions):
        return
    reactions = list(incident.reactions)
    reactions[event.number] = replace(reactions[event.number], outcome=event.outcome, why=event.why)
    incident = replace(incident, reactions=tuple(reactions))
    book.keep_incident(incident)
    _log(book, incident, event.number, now)


def _escalate(book: Book, incident: Incident, now: float) -> None:
    """When all reactions were in vain: make the incident urgent."""
    tried = incident.spent + len(incident.reactions)
    incident = replace(incident, severity=Severity.URGENT, escalated_at=now)
    book.keep_incident(incident)
    log(book, now, incident, "incident.escalated", why=f"{tried} reactions did not end it")
    book.do(Tell(incident))


def _log(book: Book, incident: Incident, number: int, now: float) -> None:
    one = incident.reactions[number]
    log(book, now, incident, "incident.reaction", do=one.do, number=number, outcome=one.outcome, why=one.why)
