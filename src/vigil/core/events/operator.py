"""Events of operators: what they ask of sessions, manifests, shifts and messages."""

from __future__ import annotations

from dataclasses import dataclass

from vigil.core.model.conversation import Message, Transcript
from vigil.core.model.death import IntentVerb
from vigil.core.model.session import Spec
from vigil.core.model.team import Manifest


@dataclass(frozen=True, slots=True)
class Declared:
    """An operator wants a new session."""

    session_id: str
    name: str
    spec: Spec
    actor: str
    account: str = ""  # whose limits it meets


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """An operator's declaration of a session never became durable."""

    session_id: str


@dataclass(frozen=True, slots=True)
class Applied:
    """An operator applies a manifest, or some roles; undeclared ones are taken down."""

    manifest: Manifest
    actor: str
    at_once: bool = False  # what runs an old command is restarted
    only: tuple[str, ...] | None = None  # keys of roles
    accounts: tuple[tuple[str, str], ...] = ()  # whose limits the agents of each role meet


@dataclass(frozen=True, slots=True)
class ShiftAsked:
    """An operator wants a team's roles replaced, one after the other, in this order."""

    roles: tuple[str, ...]
    actor: str
    timeout_s: float


@dataclass(frozen=True, slots=True)
class ShiftAborted:
    """An operator wants the shift of these roles to end where it is."""

    roles: tuple[str, ...]
    actor: str


@dataclass(frozen=True, slots=True)
class Asked:
    """An operator's command on a session: stop, start, restart, rm, reset, hibernate, wake."""

    verb: IntentVerb
    session_id: str
    actor: str
    reason: str = ""
    mode: str = ""  # of a wake: fresh, resume, or as the table says
    transcript: Transcript | None = None  # what there is of its conversation, read just before
    ticket: str = ""  # the caller waits for the answer under this


@dataclass(frozen=True, slots=True)
class MessageQueued:
    """An operator has a prompt for a session; its text is on disk."""

    session_id: str
    message: Message
    transcript: Transcript | None = None  # what there is of its conversation, read just before
    ticket: str = ""


@dataclass(frozen=True, slots=True)
class MessageTyped:
    """Vigil now types an operator's message into a launch; without one, it typed nothing."""

    session_id: str
    message_id: str
    launch_id: str


@dataclass(frozen=True, slots=True)
class MessageSent:
    """An operator's message has its outcome: submitted, unsubmitted, refused or unknown."""

    session_id: str
    message_id: str
    outcome: str
    why: str


OperatorEvent = Declared | Withdrawn | Applied | ShiftAsked | ShiftAborted | Asked | MessageQueued | MessageTyped | MessageSent
