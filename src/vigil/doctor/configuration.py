"""The checks of the configuration: its file, its routes, whether they deliver, and who can read their secrets."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from vigil.config.finding import find_config
from vigil.doctor.finding import Finding, note, ok, problem, warning
from vigil.doctor.patient import Patient
from vigil.errors import VigilError

if TYPE_CHECKING:
    from vigil.config.values import RouteConfig

NOBODY = "nobody is told of incidents, `vigil incidents` shows them; docs/incidents.md says how to add a route"


def check_config() -> list[Finding]:
    """Check the file that a daemon started now would get."""
    from vigil.config.loading import ConfigFile, ConfigRefused  # pydantic: imported only when needed, it is slow

    try:
        path = find_config()
    except VigilError as error:
        return [problem(str(error), "correct VIGIL_CONFIG, then ask again")]
    try:
        ConfigFile(path).read()
    except ConfigRefused as refused:
        return [problem(f"{path} is not valid: {refused}", f"correct {path}, then ask again")]
    if not path.exists():
        return [ok(f"{path} does not exist: all is as by default")]
    return [ok(f"{path} is valid")]


def check_routes(patient: Patient) -> list[Finding]:
    """Check the configured routes, and what the daemon knows of them."""
    status = patient.status
    findings = [*_secrets(), *(_deliveries(status) if isinstance(status, dict) else ())]
    if findings:
        return findings
    names = [route["name"] for route in status.get("routes", ())] if isinstance(status, dict) else list(_configured())
    return [ok(f"{', '.join(names)}; vigil notify test tries one")] if names else [note(f"there is none: {NOBODY}")]


def _deliveries(status: dict[str, object]) -> Iterator[Finding]:
    routes, untold = status.get("routes"), status.get("untold")
    for route in routes if isinstance(routes, list) else ():
        if route["trouble"]:
            yield problem(str(route["trouble"]), f"correct it, then: vigil notify test {route['name']}")
    if isinstance(untold, list) and untold:
        says = f"of {len(untold)} open incidents nobody could be told, by any route"
        yield problem(says, f"vigil incidents {untold[0]} tells one of them")


def _secrets() -> Iterator[Finding]:
    for name, route in _configured().items():
        for source in (route.url, route.webhook, route.secret):
            if source is not None and source.startswith("file:"):
                yield from _file(name, os.path.expanduser(source.removeprefix("file:")))


def _file(name: str, path: str) -> Iterator[Finding]:
    try:
        found = os.stat(path)
    except OSError as error:
        yield problem(f"route {name}: {path} cannot be read: {error.strerror}", "put the secret there, 0600")
        return
    if found.st_mode & 0o077:
        yield warning(f"route {name}: {path} can be read by others", f"chmod 600 {path}")


def _configured() -> dict[str, RouteConfig]:
    from vigil.config.loading import ConfigFile  # pydantic: imported only when needed, it is slow

    try:
        return dict(ConfigFile(find_config()).read().routes)
    except VigilError:
        return {}  # the check of the configuration says so
