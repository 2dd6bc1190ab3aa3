"""Reading: a manifest's text becomes what it declares, or is refused with every problem at once."""

from __future__ import annotations

import re
from collections.abc import Mapping

from vigil.agents.kinds import ConfiguredAgents
from vigil.config.loading import LARGEST_BYTES, parse
from vigil.core.model.restart import RestartPolicy
from vigil.core.model.team import Manifest
from vigil.errors import UsageError
from vigil.manifest.building import declared_by
from vigil.manifest.checking import check
from vigil.manifest.values import DeclaredRole
from vigil.text import one_line

DEFAULTS = RestartPolicy()
MOST_PARTS = 100
# The parser's time and memory grow with the square of a key's parts: one key of a mebibyte would take all memory.
PART = r"""(?:[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
ENDLESS_KEY = re.compile(rf"(?:^|[\[{{,])[ \t]*+{PART}(?:[ \t]*+\.[ \t]*+{PART}){{{MOST_PARTS}}}", re.MULTILINE)


class ManifestRefused(UsageError):
    """The manifest is not valid, and nothing was applied; the text names all problems by line."""

    def __init__(self, path: str, problems: tuple[str, ...]) -> None:
        self.problems = tuple(one_line(f"{path}: {problem}") for problem in problems)
        super().__init__(self.problems[0])

    def __str__(self) -> str:
        text = "; ".join(self.problems)
        return f"{text} Nothing was applied." if text.endswith("?") else f"{text}. Nothing was applied."


def read_manifest(
    text: str, path: str, folder: str, agents: Mapping[str, ConfiguredAgents], defaults: RestartPolicy = DEFAULTS
) -> Manifest:
    """Return the manifest in a text; ManifestRefused with all its problems."""
    return read_declared(text, path, folder, agents, defaults).manifest


def read_declared(
    text: str, path: str, folder: str, agents: Mapping[str, ConfiguredAgents], defaults: RestartPolicy = DEFAULTS
) -> DeclaredRole:
    """Return what a text declares, with the environment of its roles.

    `path` names the file in messages, `folder` is the start of its relative folders. `agents` and `defaults` come from the
    configuration.
    """
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise ManifestRefused(path, (f"line {_line(text, error.start)}: not UTF-8",)) from None
    if len(data) > LARGEST_BYTES:
        raise ManifestRefused(path, ("is larger than 1 MiB",))
    endless = ENDLESS_KEY.search(text)
    if endless is not None:
        raise ManifestRefused(path, (f"line {_line(text, endless.end())}: a key of more than {MOST_PARTS} parts",))
    document = parse(data)
    if isinstance(document, str):
        raise ManifestRefused(path, (document,))
    file = check(document, text, agents, defaults)
    if isinstance(file, tuple):
        raise ManifestRefused(path, file)
    return declared_by(file, folder, agents, defaults)


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
