"""What an operator asks for: sessions, manifests, shifts, messages."""

from __future__ import annotations

from dataclasses import dataclass

from vigil.core.model.conversation import Message, Transcript
from vigil.core.model.death import IntentVerb
from vigil.core.model.session import Spec
from vigil.core.model.team import Manifest


@dataclass(frozen=True, slots=True)
class Declared:
    """Somebody wants a session that did not exist."""

    session_id: str
    name: str
    spec: Spec
    actor: str
    account: str = ""  # whose limits it meets


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """A declaration could not be made durable and never was."""

    session_id: str


@dataclass(frozen=True, slots=True)
class Applied:
    """A manifest is to be made so; or only these of its roles, where one that is not in it is taken down."""

    manifest: Manifest
    actor: str
    at_once: bool = False  # what runs an old command is restarted
    only: tuple[str, ...] | None = None  # keys of roles
    accounts: tuple[tuple[str, str], ...] = ()  # whose limits the agents of each role meet


@dataclass(frozen=True, slots=True)
class ShiftAsked:
    """Roles of one team are to be replaced, one after the other, in this order."""

    roles: tuple[str, ...]
    actor: str
    timeout_s: float


@dataclass(frozen=True, slots=True)
class ShiftAborted:
    """The shift of these roles is to end where it is."""

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
    ticket: str = ""  # whoever waits for the answer has the other half


@dataclass(frozen=True, slots=True)
class MessageQueued:
    """Somebody has a prompt for a session that cannot take it yet; its text is on disk."""

    session_id: str
    message: Message
    transcript: Transcript | None = None  # what there is of its conversation, read just before
    ticket: str = ""


@dataclass(frozen=True, slots=True)
class MessageTyped:
    """A message is about to be typed into a launch; without one, nothing of it was typed after all."""

    session_id: str
    message_id: str
    launch_id: str


@dataclass(frozen=True, slots=True)
class MessageSent:
    """What became of a message: submitted, unsubmitted, refused or unknown."""

    session_id: str
    message_id: str
    outcome: str
    why: str


OperatorEvent = Declared | Withdrawn | Applied | ShiftAsked | ShiftAborted | Asked | MessageQueued | MessageTyped | MessageSent
