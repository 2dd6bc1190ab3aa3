"""A sandbox: what a confined agent sees beside the system and its own folder."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class SandboxKind(StrEnum):
    """The program that makes a sandbox."""

    BWRAP = "bwrap"


@dataclass(frozen=True, slots=True)
class Sandbox:
    """What a role's sandbox shows its agents; paths are absolute."""

    kind: SandboxKind = SandboxKind.BWRAP
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    network: bool = True
